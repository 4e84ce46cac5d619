"""What happens on the server to mails that have landed: nothing, a flag, a move, a deletion. Only after the commit."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from ops_mail.core.ids import Uid, UidValidity
from ops_mail.imap import ImapSession, Refused
from ops_mail.listener.tools import ListenerOptions, ListenerTools
from ops_mail.settings import AfterAction

log = structlog.get_logger("ops_mail.listener")

_AT_ONCE = 500


class AfterLandingActions:
    """The actions of one session.

    What is due stands in the rows, so a crash in between only repeats it, by UID: a flag set twice is one flag, and
    a mail that has moved or gone is passed over by the server.
    """

    def __init__(self, tools: ListenerTools, options: ListenerOptions) -> None:
        self._tools = tools
        self._key = options.key
        self._label = options.label
        self._policy = options.after_landing
        self._refused = False

    @property
    def configured(self) -> bool:
        """False for `keep`: the server's copy stays as it is."""
        return self._policy.action is not AfterAction.KEEP

    async def run(self, session: ImapSession, uid_validity: UidValidity) -> None:
        """Act on all that is due. A refusal by the server is told and tried again in the next session: landing goes on.

        Raises ImapError when the session breaks, StoreError.
        """
        if not self.configured or self._refused:
            return
        # A mail whose bytes are not all in the store must never leave the folder: only there can it be fetched again.
        complete_only = self._policy.action in (AfterAction.MOVE, AfterAction.DELETE)
        while uids := await self._tools.store.due_actions(
            self._key, uid_validity, complete_only=complete_only, limit=_AT_ONCE
        ):
            try:
                await self._act(session, uids)
            except Refused as error:
                self._refused = True
                self._count("refused", len(uids))
                log.error("after_action_refused", action=str(self._policy), mails=len(uids), error=str(error))
                return
            await self._tools.store.mark_acted(self._key, uid_validity, uids)
            self._count("done", len(uids))

    async def _act(self, session: ImapSession, uids: Sequence[Uid]) -> None:
        match self._policy.action:
            case AfterAction.SEEN:
                await session.store_flags(uids, [r"\Seen"])
            case AfterAction.MOVE:
                assert self._policy.folder is not None  # noqa: S101 - the settings' own promise for MOVE
                await session.move(uids, self._policy.folder)
            case AfterAction.DELETE:
                await session.delete(uids)
            case AfterAction.KEEP:
                return

    def _count(self, outcome: str, mails: int) -> None:
        self._tools.metrics.after_actions.labels(mailbox=self._label, outcome=outcome).inc(mails)

"""From time to time the listener proves to itself that nothing is missing, and lands what is."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from ops_mail.core.audit_action import AuditAction
from ops_mail.core.mail import Listed
from ops_mail.imap import ImapSession
from ops_mail.listener.comparison import Scope, compare
from ops_mail.listener.sync import Syncer
from ops_mail.listener.tools import ListenerOptions, ListenerTools

log = structlog.get_logger("ops_mail.listener")

_FETCHED_AGAIN = 200
"""How many mails without content are asked for again in one verification, those that wait longest first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one whole comparison found. `recovered` of the `missing` were landed."""

    on_server: int
    missing: int
    extra: int
    recovered: int


class Verifier:
    """Compares at most once an interval, over all sessions of the listener; 0 seconds = never."""

    def __init__(self, tools: ListenerTools, options: ListenerOptions) -> None:
        self._tools = tools
        self._key = options.key
        self._label = options.label
        self._interval_seconds = options.verify_interval_seconds
        self._max_message_bytes = options.limits.max_message_bytes
        self._next_mono: float | None = None
        self._fetched_again_mono: float | None = None

    @property
    def due(self) -> bool:
        """True after the first drained sync of the process, then once an interval."""
        if self._interval_seconds <= 0:
            return False
        return self._next_mono is None or self._tools.clock.boot() >= self._next_mono

    async def run(self, session: ImapSession, syncer: Syncer) -> None:
        """Compare, land what is missing, tell. Raises ImapError, StoreError; then it stays due."""
        scope = syncer.scope
        await self._fetch_again(session, syncer, scope)
        verdict = await self._compare_and_recover(session, syncer, scope)
        if verdict is None:
            return
        self._next_mono = self._tools.clock.boot() + self._interval_seconds
        self._tools.metrics.verified(self._label, verdict.missing, verdict.recovered, self._tools.clock.now())
        tell = log.error if verdict.missing else log.info
        tell(
            "verified",
            on_server=verdict.on_server,
            missing=verdict.missing,
            recovered=verdict.recovered,
            extra=verdict.extra,
        )

    async def _fetch_again(self, session: ImapSession, syncer: Syncer, scope: Scope) -> None:
        """Ask once more for what the server once did not give: its fault may have been a passing one (promise P4)."""
        now = self._tools.clock.boot()
        if self._fetched_again_mono is not None and now < self._fetched_again_mono + self._interval_seconds:
            return
        self._fetched_again_mono = now  # before the attempt: a mail that breaks the session breaks but one an interval
        uids = await self._tools.store.incomplete_uids(
            self._key, scope.uid_validity, self._max_message_bytes, _FETCHED_AGAIN
        )
        if uids and (mails := await session.list_uids(uids)):
            completed = await syncer.complete(list(mails.values()))
            log.info("fetched_again", mails=len(mails), completed=completed)

    async def _compare_and_recover(self, session: ImapSession, syncer: Syncer, scope: Scope) -> Verdict | None:
        on_server = missing = extra = recovered = 0
        async for page in compare(self._tools.store, session, self._key, scope):
            if self._tools.stop.is_set():
                return None
            on_server += page.on_server
            missing += len(page.missing)
            extra += page.extra
            recovered += await self._recover(syncer, page.missing)
        return Verdict(on_server, missing, extra, recovered)

    async def _recover(self, syncer: Syncer, missing: tuple[Listed, ...]) -> int:
        if not missing:
            return 0
        landed = await syncer.land_missing(missing)
        detail = {"uids": [mail.uid for mail in missing[:100]], "missing": len(missing), "landed": landed}
        await self._tools.store.audit("system", AuditAction.RECOVERED, self._key.mailbox, None, detail)
        return landed

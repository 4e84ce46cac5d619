"""Stage one of a batch: from the listing to raw bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import structlog

from ops_mail.core.batching import Batch, BatchKind, BatchLimits
from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed, RawMail
from ops_mail.core.poison import FetchPlan, FetchRecord
from ops_mail.errors import ImapError
from ops_mail.imap import Expunged, ImapSession
from ops_mail.listener.spool import Spool, TooLarge

log = structlog.get_logger("ops_mail.listener")

_HEADER_LIMIT_BYTES = 1024 * 1024


class Suspects:
    """Mails whose fetching broke a session; lives as long as the listener, across sessions."""

    def __init__(self) -> None:
        self._records: dict[Uid, FetchRecord] = {}
        self._row = 0
        self._last: ImapError | None = None

    def __contains__(self, uid: object) -> bool:
        return uid in self._records

    def __iter__(self) -> Iterator[Uid]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def plan(self, batch: Batch) -> FetchPlan:
        """How to fetch a batch: only a batch of one mail can be anything but TOGETHER."""
        record = self._records.get(batch.mails[0].uid) if len(batch.mails) == 1 else None
        return record.plan if record else FetchPlan.TOGETHER

    def blame(self, batch: Batch, plan: FetchPlan, error: ImapError) -> None:
        """The session broke while this batch was fetched under `plan`."""
        self._row += plan is not FetchPlan.TOGETHER
        self._last = None if plan is FetchPlan.TOGETHER else error
        for mail in batch.mails:
            self._records[mail.uid] = self._records.get(mail.uid, FetchRecord()).after(error.failure, plan)

    def failures_in_a_row(self, error: Exception) -> int | None:
        """How often fetching has failed since the server last handed out any content; None when `error` is not about
        a suspect. A server that hands out nothing at all is so asked ever more slowly.
        """
        return self._row if error is self._last else None

    def forget(self) -> None:
        """The numbers mean other mails now."""
        self._records.clear()

    def clear(self, batch: Batch, *, answered: bool) -> None:
        """This batch is done with; `answered` when the server gave content for it."""
        if answered:
            self._row = 0
        for mail in batch.mails:
            self._records.pop(mail.uid, None)


async def fetch(
    session: ImapSession,
    batch: Batch,
    plan: FetchPlan,
    limits: BatchLimits,
    spool: Spool,
    beat: Callable[[], None],
) -> tuple[list[RawMail], list[Listed]]:
    """The raw mails of a batch in order, and those whose bytes the server will not give (`GIVE_UP`).

    Mails expunged since the listing are in neither. `beat` is called before each command.
    Raises ImapError; the session is dead then, except after Refused.
    """
    beat()
    match plan, batch.kind:
        case FetchPlan.GIVE_UP, _:
            return [], list(batch.mails)
        case (FetchPlan.HEADER_ONLY, _) | (_, BatchKind.OVERSIZE):
            return await _header_only(session, batch.mails[0]), []
        # A suspect is read in pieces whatever its size: RFC822.SIZE may be the very lie that broke its batch.
        case (FetchPlan.ALONE, _) | (_, BatchKind.LARGE):
            return await _in_pieces(session, batch.mails[0], limits, spool, beat), []
    bodies = await session.fetch_small(batch.mails)
    return [RawMail(mail, bodies[mail.uid]) for mail in batch.mails if mail.uid in bodies], []


async def _header_only(session: ImapSession, mail: Listed) -> list[RawMail]:
    header = await session.fetch_header(mail.uid, _HEADER_LIMIT_BYTES)
    return [] if header is None else [RawMail(mail, header, oversize=True)]


async def _in_pieces(
    session: ImapSession, mail: Listed, limits: BatchLimits, spool: Spool, beat: Callable[[], None]
) -> list[RawMail]:
    try:
        path = await spool.write(session.fetch_pieces(mail.uid), limits.max_message_bytes, beat)
    except Expunged:
        return []
    except TooLarge:  # RFC822.SIZE said less; some servers only guess it
        beat()
        log.warning("size_was_understated", uid=mail.uid, told_bytes=mail.size_bytes)
        return await _header_only(session, mail)
    return [RawMail(mail, path)]

"""One sync: list what is new, then batch by batch fetch → prepare → land, until the folder is drained."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from ops_mail.core.batching import Batch, BatchKind, plan_batches
from ops_mail.core.health import Pulse
from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed, MessageStatus, ParsedMail, PreparedMail, RawMail
from ops_mail.core.poison import FetchPlan
from ops_mail.errors import ImapError, StoreRefused
from ops_mail.imap import ImapSession, Refused
from ops_mail.listener.after_landing import AfterLandingActions
from ops_mail.listener.board import Board
from ops_mail.listener.comparison import Scope
from ops_mail.listener.fetching import Suspects, fetch
from ops_mail.listener.reconcile import Position
from ops_mail.listener.spool import Spool
from ops_mail.listener.tools import Landed, ListenerOptions, ListenerTools
from ops_mail.store import LANDING_SECONDS, LandingBatch, Lease
from ops_mail.waiting import sleep_or_stop

log = structlog.get_logger("ops_mail.listener")

_MARGIN_SECONDS = 5.0
_VAIN_HINTS = 5
"""So many hints in a row may turn out to be about nothing, for one because another client took the mail away."""
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SyncResult:
    """`found` new mails were listed; `hinted` tells whether the server had announced anything; `drained` is
    False when a stop cut the sync short.
    """

    found: int
    hinted: bool
    drained: bool


class Syncer:
    """The syncs of one session under one lease. `last_uid` follows what is committed."""

    def __init__(
        self,
        tools: ListenerTools,
        options: ListenerOptions,
        board: Board,
        session: ImapSession,
        lease: Lease,
        spool: Spool,
        suspects: Suspects,
        pulse: Pulse,
        position: Position,
    ) -> None:
        self._tools = tools
        self._options = options
        self._board = board
        self._session = session
        self._lease = lease
        self._spool = spool
        self._suspects = suspects
        self._pulse = pulse
        self._uid_validity = position.uid_validity
        self._earliest = position.earliest
        self._start_uid = position.start_uid
        self.last_uid = position.last_uid
        self._after_landing = AfterLandingActions(tools, options)
        self._hint_at: float | None = None
        self._new_rows = 0
        self._vain_hints = 0

    @property
    def scope(self) -> Scope:
        """Which mails should have a row by now."""
        return Scope(self._uid_validity, self._start_uid, self.last_uid, self._earliest)

    async def run(self) -> SyncResult:
        """Land everything new. Raises ImapError, StoreError or OSError; what was landed stays landed."""
        found, hinted = 0, False
        await self._act()  # what an earlier session committed and could not act on any more
        while True:
            await self._pause_after_vain_hints()
            self._hint_at = self._session.hint_at
            hinted = hinted or self._hint_at is not None
            self._session.clear_hint()
            self._pulse.expect(self._listing_seconds(), "listing new mail")
            listing = await self._session.list_after(self.last_uid)
            found += len(listing.entries)
            self._board.positioned(self.last_uid, len(listing.entries) + listing.remaining_estimate)
            await self._process(listing.entries, listing.remaining_estimate)
            if self._tools.stop.is_set():
                return SyncResult(found, hinted, drained=False)
            self._vain_hints = 0 if listing.entries or self._hint_at is None else self._vain_hints + 1
            if listing.complete and (self._session.hint_at is None or self._vain_hints > _VAIN_HINTS):
                return SyncResult(found, hinted, drained=True)

    async def _pause_after_vain_hints(self) -> None:
        """Some servers announce mail with every answer: without a pause each listing would call for another one."""
        if self._vain_hints > _VAIN_HINTS:
            seconds = min(_LONGEST_PAUSE_SECONDS, 0.1 * 2 ** min(self._vain_hints - _VAIN_HINTS, 16))
            await sleep_or_stop(seconds, self._tools.stop, self._beat_fetch)

    async def land_missing(self, mails: Sequence[Listed]) -> int:
        """Land mails from before the cursor; how many rows were new. Raises ImapError, StoreError or OSError."""
        before = self._new_rows
        for batch in plan_batches(mails, self._options.limits, self._suspects):
            if self._tools.stop.is_set():
                break
            await self._process_batch(batch)
        return self._new_rows - before

    async def complete(self, mails: Sequence[Listed]) -> int:
        """Land the content of mails whose rows lack it; how many had it now. Raises ImapError, StoreError, OSError."""
        before = self._new_rows
        for mail in sorted(mails, key=lambda mail: mail.uid):
            if self._tools.stop.is_set():
                break
            batch = Batch(BatchKind.LARGE, (mail,))
            try:
                raws, _ = await fetch(
                    self._session, batch, FetchPlan.ALONE, self._options.limits, self._spool, self._beat_fetch
                )
            except Refused as error:
                log.info("still_refused", uid=mail.uid, error=str(error))
                continue
            whole = [raw for raw in raws if not raw.oversize]
            if whole:
                await self._prepare_and_land(whole, [], mail.uid, completes=True)
        return self._new_rows - before

    async def _process(self, entries: Sequence[Listed], behind_these: int) -> None:
        wanted = list(filter(self.scope.recent_enough, entries))
        left = len(wanted) + behind_these
        for batch in plan_batches(wanted, self._options.limits, self._suspects):
            if self._tools.stop.is_set():
                return
            await self._process_batch(batch)
            left -= len(batch.mails)
            self._board.positioned(self.last_uid, left)
        if entries and entries[-1].uid > self.last_uid:  # the tail was before IMAP_START: only the cursor moves
            await self._land([], entries[-1].uid)

    async def _process_batch(self, batch: Batch) -> None:
        plan = self._suspects.plan(batch)
        try:
            raws, hopeless = await fetch(
                self._session, batch, plan, self._options.limits, self._spool, self._beat_fetch
            )
        except ImapError as error:
            self._suspects.blame(batch, plan, error)
            if isinstance(error, Refused) and len(batch.mails) > 1:  # the session is still good: find the culprit
                log.warning("batch_refused_by_server", mails=len(batch.mails), error=str(error))
                for mail in batch.mails:
                    await self._process_batch(Batch(batch.kind, (mail,)))
                return
            raise
        await self._prepare_and_land(raws, hopeless, batch.last_uid)
        self._suspects.clear(batch, answered=bool(raws))

    async def _prepare_and_land(
        self, raws: list[RawMail], hopeless: list[Listed], last_uid: Uid, *, completes: bool = False
    ) -> None:
        self._pulse.expect(self._tools.parsers.limit_seconds(len(raws)), f"parsing up to uid {last_uid}")
        prepared = await self._tools.parsers.prepare(raws, self._spool.path) if raws else []
        prepared += [_without_bytes(mail) for mail in hopeless]
        if completes:
            await self._land(prepared, last_uid, completes=True)
        else:
            await self._land_or_isolate(prepared, last_uid)
        await self._spool.discard(raws, prepared)

    async def _land_or_isolate(self, mails: list[PreparedMail], advance_to: Uid) -> None:
        try:
            await self._land(mails, advance_to)
        except StoreRefused as error:
            if not mails:
                raise
            log.warning("batch_refused", mails=len(mails), error=str(error))
        else:
            return
        for mail in mails:
            await self._land_alone(mail)
        if advance_to > self.last_uid:
            await self._land([], advance_to)

    async def _land_alone(self, mail: PreparedMail) -> None:
        try:
            await self._land([mail], mail.listed.uid)
        except StoreRefused as error:
            log.error("mail_refused", uid=mail.listed.uid, error=str(error))
            await self._land([_bare(mail, str(error))], mail.listed.uid)

    async def _land(self, mails: list[PreparedMail], advance_to: Uid, *, completes: bool = False) -> None:
        now = self._tools.clock.now()
        advance_to = max(advance_to, self.last_uid)  # what was missing lies before the cursor
        self._pulse.expect(LANDING_SECONDS + _MARGIN_SECONDS, f"landing up to uid {advance_to}")
        batch = LandingBatch(
            self._uid_validity,
            tuple(mails),
            advance_to,
            now,
            action_due=self._after_landing.configured,
            completes=completes,
        )
        result = await self._tools.store.land(self._lease, batch)
        self.last_uid = advance_to
        self._new_rows += result.landed
        latency_seconds = self._latency_seconds()
        new = [mail for mail in mails if mail.listed.uid in result.new_uids]
        self._board.landed(new, latency_seconds)
        if result.rekeyed or result.duplicates:
            log.info("already_known", rekeyed=result.rekeyed, duplicates=result.duplicates, last_uid=advance_to)
        for mail in new:
            self._tools.on_landed(Landed(self._lease.key, mail, latency_seconds))
        if new:
            await self._act()

    async def _act(self) -> None:
        """Carry out what is due on the server, strictly after the commit (promise P2)."""
        self._beat_fetch()
        await self._after_landing.run(self._session, self._uid_validity)

    def _beat_fetch(self) -> None:
        self._pulse.expect(self._options.session.command_timeout_seconds + _MARGIN_SECONDS, "fetching")

    def _listing_seconds(self) -> float:
        """A folder of millions is found by bisection: some thirty commands at the worst."""
        return 30 * self._options.session.command_timeout_seconds + _MARGIN_SECONDS

    def _latency_seconds(self) -> float | None:
        return None if self._hint_at is None else asyncio.get_running_loop().time() - self._hint_at


def _without_bytes(mail: Listed) -> PreparedMail:
    """A mail that is on the server but that the server fails to hand out: its row says so, for ever visible."""
    return PreparedMail(
        listed=mail,
        mail=ParsedMail(defects=("unfetchable",)),
        raw_sha256=None,
        raw_size_bytes=mail.size_bytes,
        attachments=(),
        blobs=(),
        status=MessageStatus.QUARANTINED,
        error="the server fails whenever this mail is fetched",
    )


def _bare(mail: PreparedMail, error: str) -> PreparedMail:
    """The same mail with nothing in it that a database could refuse: its raw bytes and the reason."""
    return PreparedMail(
        listed=Listed(mail.listed.uid, mail.listed.size_bytes, mail.listed.internal_date, ()),
        mail=ParsedMail(defects=("refused",)),
        raw_sha256=mail.raw_sha256,
        raw_size_bytes=mail.raw_size_bytes,
        attachments=(),
        blobs=mail.blobs[:1],
        status=MessageStatus.QUARANTINED,
        error=f"the database refused the parsed record: {error}",
    )

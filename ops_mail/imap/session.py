"""One session with one mailbox, from a login that succeeded to its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime

import structlog

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed
from ops_mail.core.providers import Keepalive, ProviderProfile, provider_for
from ops_mail.errors import ImapError
from ops_mail.imap import actions, fetching, folders, idling, listing
from ops_mail.imap.channel import Channel
from ops_mail.imap.connect import connect
from ops_mail.imap.folders import SelectedFolder
from ops_mail.imap.idling import IdleOutcome
from ops_mail.imap.listing import Listing
from ops_mail.imap.login import log_in
from ops_mail.imap.options import SessionOptions
from ops_mail.imap.tls import expiry

log = structlog.get_logger("ops_mail.imap")

# A server that ends IDLE by itself this soon would have the caller sync without a pause.
SHORT_IDLE_SECONDS = 10.0


class ImapSession:
    """A session that is logged in; made by `open_session` only.

    Every method raises ImapError. After an error, a time limit or a cancellation the connection is cut and the object
    refuses further use; the exceptions are Refused, Unfetchable and Expunged, which leave it `usable`.
    """

    def __init__(self, channel: Channel, options: SessionOptions, capabilities: frozenset[str]) -> None:
        self.capabilities = capabilities
        self.provider: ProviderProfile = provider_for(options.host, capabilities)
        self.address = options.address
        self._channel = channel
        self._view = channel.protocol.view
        self._folder: str | None = None
        self._idles = "IDLE" in capabilities and self.provider.idle_trusted

    @property
    def can_idle(self) -> bool:
        """The server has IDLE, its provider is not known to lie about it, and it has not refused it in this session."""
        return self._idles

    @property
    def usable(self) -> bool:
        """False once the connection is cut."""
        return self._channel.usable

    @property
    def exists(self) -> int:
        """How many mails the selected folder has, as far as the server has told."""
        return self._view.exists

    @property
    def hint_at(self) -> float | None:
        """`loop.time()` of the oldest hint of new mail since `clear_hint`, whichever command it came in."""
        return self._view.hint_at

    @property
    def pushed_in_idle(self) -> bool:
        """True when a hint since `clear_hint` came while IDLE ran: the server pushed."""
        return self._view.pushed_in_idle

    @property
    def certificate_expires_at(self) -> datetime | None:
        """When the server's certificate ends, UTC; None without TLS."""
        return expiry(self._channel.protocol.transport.get_extra_info("peercert"))

    def on_life(self, tell: Callable[[], None]) -> None:
        """`tell` is called as each command begins, and while data flow: a command that lasts is not a stuck one.

        From one call to the next it takes at most the command time limit, but in IDLE, which has a `beat` of its own.
        """
        self._channel.on_life = tell

    def clear_hint(self) -> None:
        """To be called before a sync: hints that come while it runs call for another one."""
        self._channel.protocol.clear_hint()

    async def select(self, folder: str, *, read_only: bool = False) -> SelectedFolder:
        """Selects a folder by its plain Unicode name. Raises ImapError(FOLDER) when the server refuses.

        With `read_only` it is opened by EXAMINE, which changes nothing there, not even who saw a mail first.
        """
        selected = await folders.select(self._channel, folder, read_only=read_only)
        self._folder = folder
        return selected

    async def list_folders(self) -> list[str]:
        """The Unicode names of all folders, for people to choose from. Raises Refused."""
        return await folders.list_folders(self._channel)

    async def highest_uid(self) -> Uid | None:
        """The highest UID in the folder, None when it is empty."""
        return await listing.highest_uid(self._channel)

    async def list_after(self, last: Uid) -> Listing:
        """Mails with a UID above `last`, ascending. Memory is bounded: at most 5,000 at once, then `complete` is false.

        No mail is ever skipped; a gap of a million UIDs costs about twenty round trips.
        """
        return await listing.list_after(self._channel, last)

    async def list_uids(self, uids: Iterable[Uid]) -> dict[Uid, Listed]:
        """The listing of just these UIDs; those not in the folder are missing."""
        return await listing.list_uids(self._channel, uids)

    async def fetch_small(self, listed: Sequence[Listed]) -> dict[Uid, bytes]:
        """The content of these mails; one that is missing was expunged meanwhile. The caller bounds the sum of sizes.

        Raises Unfetchable when a mail is there but its content is not given or far larger than listed, Refused when
        the server says NO to the batch (one mail may be to blame), ImapError(PROTOCOL) when an answer is malformed.
        """
        return await fetching.fetch_small(self._channel, listed)

    def fetch_pieces(self, uid: Uid, piece_bytes: int = 1024 * 1024) -> AsyncIterator[bytes]:
        """The content of one mail in pieces, whatever its size was said to be.

        Raises Expunged, Unfetchable, Refused.
        """
        return fetching.fetch_pieces(self._channel, uid, piece_bytes)

    async def fetch_header(self, uid: Uid, max_bytes: int) -> bytes | None:
        """At most the first `max_bytes` of the header block; None when the mail was expunged. Raises Refused."""
        return await fetching.fetch_header(self._channel, uid, max_bytes)

    async def idle(
        self, seconds: float, wake: asyncio.Event, beat: Callable[[], None], begun: Callable[[], None] = lambda: None
    ) -> IdleOutcome:
        """Waits in IDLE for at most `seconds`; `beat` is called at least every 5 s meanwhile.

        `begun` is called once the server has accepted it: from then on it owes a push.

        Returns PUSH at once when a hint is already there. When the server refuses IDLE or ends it within seconds,
        `can_idle` is false from then on and the outcome is TIMEOUT.
        """
        started = asyncio.get_running_loop().time()
        try:
            outcome = await idling.idle(self._channel, seconds, wake, beat, begun)
        except idling.IdleRefused as refused:
            self._idles = False
            log.warning("idle_refused", address=self.address, answer=str(refused))
            return IdleOutcome.TIMEOUT
        lasted = asyncio.get_running_loop().time() - started
        if outcome is IdleOutcome.TIMEOUT and lasted < min(seconds, SHORT_IDLE_SECONDS):
            self._idles = False
            log.warning("idle_ended_by_server", address=self.address, after_seconds=round(lasted, 3))
        return outcome

    async def poll(self) -> None:
        """Lets the server tell what is new, for one without IDLE; hints show in `hint_at`."""
        if self.provider.keepalive is Keepalive.STATUS and self._folder is not None:
            exists = await folders.messages_by_status(self._channel, self._folder)
            if exists > self._view.exists:
                self._view.hint(asyncio.get_running_loop().time())
        await self._channel.must("NOOP", what="NOOP", collect=False)

    async def store_flags(self, uids: Iterable[Uid], add: Sequence[str]) -> None:
        r"""Adds flags such as `\Seen`. UIDs that are gone are passed over. Raises Refused."""
        await actions.store_flags(self._channel, uids, add)

    async def move(self, uids: Iterable[Uid], folder: str) -> None:
        r"""Moves mails: MOVE, else COPY, `\Deleted`, UID EXPUNGE; without UIDPLUS they stay, marked `\Deleted`.

        Raises Refused, for one when the folder does not exist.
        """
        await actions.move(self._channel, self.capabilities, uids, folder)

    async def delete(self, uids: Iterable[Uid]) -> None:
        r"""Deletes mails: `\Deleted` and UID EXPUNGE; without UIDPLUS they are only marked. Raises Refused."""
        await actions.delete(self._channel, self.capabilities, uids)

    async def append(self, folder: str, raw: bytes) -> Uid | None:
        """Stores a mail; its UID where the server tells it (UIDPLUS). Raises Refused."""
        return await actions.append(self._channel, folder, raw)

    async def logout(self, timeout_seconds: float) -> None:
        """Says goodbye if that is possible within the time; never raises, and the connection is closed in any case."""
        protocol = self._channel.protocol
        try:
            if self.usable:
                protocol.leaving = True
                async with asyncio.timeout(timeout_seconds):
                    await self._channel.run("LOGOUT", collect=False)
        except (ImapError, TimeoutError) as error:
            log.info("logout_failed", address=self.address, error=str(error) or "timeout")
        finally:
            self.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await protocol.closed.wait()

    def abort(self) -> None:
        """Cuts the connection at once. May be called at any time, more than once."""
        self._channel.abort()


async def open_session(options: SessionOptions) -> ImapSession:
    """Connects, secures, logs in, asks for the capabilities and sends ID. Raises ImapError, with nothing left open."""
    protocol = await connect(options)
    channel = Channel(protocol, options.address, options.command_timeout_seconds, options.source)
    try:
        capabilities = await log_in(channel, options)
    except BaseException:
        channel.abort()
        raise
    return ImapSession(channel, options, capabilities)

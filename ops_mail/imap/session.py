"""One session with one mailbox, from a login that succeeded to its end."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from ops_mail.core.ids import Uid, UidValidity
from ops_mail.core.mail import Listed
from ops_mail.core.providers import Keepalive, ProviderProfile, provider_for
from ops_mail.errors import Failure, ImapError
from ops_mail.imap import actions, fetching, idling, listing
from ops_mail.imap.channel import Channel
from ops_mail.imap.connect import connect
from ops_mail.imap.idling import IdleOutcome
from ops_mail.imap.listing import Listing
from ops_mail.imap.login import log_in
from ops_mail.imap.names import decode_folder, folder_argument
from ops_mail.imap.options import SessionOptions
from ops_mail.imap.protocol import SELECTED
from ops_mail.imap.tls import expiry

log = structlog.get_logger("ops_mail.imap")

# A server that ends IDLE by itself this soon would have the caller sync without a pause.
SHORT_IDLE_SECONDS = 10.0

_CODE = re.compile(rb"\* OK \[(UIDVALIDITY|UIDNEXT) (\d+)\]", re.IGNORECASE)
_STATUS_ITEM = re.compile(rb"\b(UIDVALIDITY|MESSAGES) (\d+)", re.IGNORECASE)
_LISTED_FOLDER = re.compile(rb'\* LIST \([^)]*\) (?:"(?:\\?.)"|NIL) (?:"((?:[^"\\]|\\.)*)"|(\S+))$', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SelectedFolder:
    """What SELECT told. `uid_next` is for people only: some servers leave it out, others get it wrong."""

    uid_validity: UidValidity
    exists: int
    uid_next: Uid | None
    read_only: bool


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

    def clear_hint(self) -> None:
        """To be called before a sync: hints that come while it runs call for another one."""
        self._channel.protocol.clear_hint()

    async def select(self, folder: str, *, read_only: bool = False) -> SelectedFolder:
        """Selects a folder by its plain Unicode name. Raises ImapError(FOLDER) when the server refuses.

        With `read_only` it is opened by EXAMINE, which changes nothing there, not even who saw a mail first.
        """
        channel = self._channel
        try:
            name = folder_argument(folder)
        except ValueError:
            message = "the folder's name holds a line break: check OPS_MAIL_IMAP_FOLDER"
            raise ImapError(Failure.FOLDER, message) from None
        self._view.begin_select()
        self.clear_hint()
        reply = await channel.run("EXAMINE" if read_only else "SELECT", name)
        self._view.end_select()
        if not reply.ok:
            raise await self._not_selected(folder, reply.result, reply.text)
        channel.protocol.state = SELECTED
        self._folder = name
        codes: dict[bytes, int] = {}
        for response in reply.responses:
            if found := _CODE.match(response.first):
                codes[found.group(1).upper()] = int(found.group(2))
        validity = codes.get(b"UIDVALIDITY") or await self._uid_validity_by_status(name)
        if not validity:
            raise channel.broken(f"{self.address} gives no UIDVALIDITY for {folder!r}: its mails have no lasting UIDs")
        uid_next = codes.get(b"UIDNEXT")
        return SelectedFolder(
            UidValidity(validity), self._view.exists, Uid(uid_next) if uid_next else None, reply.has_code("READ-ONLY")
        )

    async def list_folders(self) -> list[str]:
        """The Unicode names of the folders that can be selected or not, for people to choose from."""
        reply = await self._channel.may("LIST", '""', '"*"', what="to list the folders")
        names: list[str] = []
        for response in reply.responses:
            if found := _LISTED_FOLDER.match(response.first):
                raw = re.sub(rb"\\(.)", rb"\1", found.group(1)) if found.group(1) is not None else found.group(2)
                names.append(decode_folder(raw.decode("utf-8", "replace")))
            elif len(response.literals) == 1 and response.literals[0] is not None:
                names.append(decode_folder(response.literals[0].decode("utf-8", "replace")))
        return names

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

    async def idle(self, seconds: float, wake: asyncio.Event, beat: Callable[[], None]) -> IdleOutcome:
        """Waits in IDLE for at most `seconds`; `beat` is called at least every 5 s meanwhile.

        Returns PUSH at once when a hint is already there. When the server refuses IDLE or ends it within seconds,
        `can_idle` is false from then on and the outcome is TIMEOUT.
        """
        started = asyncio.get_running_loop().time()
        try:
            outcome = await idling.idle(self._channel, seconds, wake, beat)
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
            reply = await self._channel.must("STATUS", self._folder, "(MESSAGES)", what="STATUS")
            if _status_items(reply.responses).get(b"MESSAGES", 0) > self._view.exists:
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

    async def _uid_validity_by_status(self, name: str) -> int | None:
        reply = await self._channel.must("STATUS", name, "(UIDVALIDITY)", what="STATUS")
        return _status_items(reply.responses).get(b"UIDVALIDITY")

    async def _not_selected(self, folder: str, result: str, text: str) -> ImapError:
        hint = "check OPS_MAIL_IMAP_FOLDER"
        if "unsafe login" in text.lower():
            hint = "the provider wants IMAP to be switched on and the client to be allowed in its web mail"
        elif result == "NO":
            with contextlib.suppress(ImapError):
                names = await self.list_folders()
                if folder not in names and names:
                    hint += f"; the mailbox has {', '.join(repr(name) for name in names[:10])}"
        failure = Failure.FOLDER if result == "NO" else Failure.PROTOCOL
        message = f"{self.address} refused to open the folder {folder!r}: {text}: {hint}"
        self._channel.abort(failure, message)
        return ImapError(failure, message)


def _status_items(responses: Iterable[object]) -> dict[bytes, int]:
    items: dict[bytes, int] = {}
    for response in responses:
        texts = getattr(response, "texts", ())
        if texts and texts[0][:9].upper() == b"* STATUS ":
            items |= {name.upper(): int(value) for name, value in _STATUS_ITEM.findall(texts[-1])}
    return items


async def open_session(options: SessionOptions) -> ImapSession:
    """Connects, secures, logs in, asks for the capabilities and sends ID. Raises ImapError, with nothing left open."""
    protocol = await connect(options)
    channel = Channel(protocol, options.address, options.command_timeout_seconds)
    try:
        capabilities = await log_in(channel, options)
    except BaseException:
        channel.abort()
        raise
    return ImapSession(channel, options, capabilities)

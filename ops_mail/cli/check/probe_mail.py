"""The mail of `check --send-test`: how it looks, how it gets into a folder, and how it gets out again, in any case."""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed
from ops_mail.imap import ImapSession, Refused, SessionOptions, open_session

SUBJECT = "Test by ops-mail check: it is deleted at once"
_ADDRESS = "ops-mail check <check@ops-mail.invalid>"
_HEADER_BYTES = 65_536
_LOGOUT_SECONDS = 2.0
_SECOND_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ProbeMail:
    """`message_id` is this mail's alone: by it, and by nothing else, it is known again."""

    message_id: str
    raw: bytes

    @classmethod
    def new(cls) -> ProbeMail:
        """A small one that says what it is, to people and to programs."""
        message_id = f"<{secrets.token_hex(16)}@ops-mail.invalid>"
        mail = EmailMessage(policy=SMTP)
        mail["From"] = mail["To"] = _ADDRESS
        mail["Subject"] = SUBJECT
        mail["Date"] = format_datetime(datetime.now(UTC))
        mail["Message-ID"] = message_id
        mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody is to answer it
        mail["X-Ops-Mail-Test"] = "yes"
        mail.set_content("`ops-mail check --send-test` times with this mail how soon the server announces new ones.\n")
        return cls(message_id, bytes(mail))

    def is_headed_by(self, header: bytes) -> bool:
        """Whether this header block is its own; a reply that only mentions it is another mail."""
        own = re.compile(
            rb"^Message-ID:\s*" + re.escape(self.message_id.encode()) + rb"\s*$", re.IGNORECASE | re.MULTILINE
        )
        return own.search(header) is not None


class Courier:
    """Puts one test mail into a folder, finds it there, and takes it out. All methods raise ImapError."""

    def __init__(self, options: SessionOptions, folder: str, mail: ProbeMail) -> None:
        self.folder = folder
        self.mail = mail
        self.sent = False
        """From here on it may be in the folder, and has to be looked for."""
        self.stored = False
        """The server has said that it is."""
        self._options = options
        self._session: ImapSession | None = None
        self._uid: Uid | None = None
        self._highest_before = Uid(0)

    async def open(self) -> None:
        """A session with the folder open for writing."""
        self._session = session = await open_session(self._options)
        await session.select(self.folder)
        self._highest_before = await session.highest_uid() or Uid(0)

    async def put(self) -> None:
        """Raises Refused when the account may not."""
        session = await self._usable()
        self.sent = True
        try:
            self._uid = await session.append(self.folder, self.mail.raw)
        except Refused:
            self.sent = False
            raise
        self.stored = True

    async def take_out(self) -> tuple[Listed | None, bool]:
        """(the mail as it was listed, whether it is gone); None = it was not in the folder any more.

        Gone is False on a server without UIDPLUS, where it is only marked as deleted.
        """
        session = await self._usable()
        found = await self._find(session)
        if found is None and not self.stored:  # cut off while it was sent: the server may be about to store it
            await asyncio.sleep(_SECOND_LOOK_SECONDS)
            found = await self._find(session)
        if found is not None:
            await session.delete([found.uid])
        return found, "UIDPLUS" in session.capabilities

    async def close(self) -> None:
        """Never raises."""
        if self._session is not None:
            await self._session.logout(_LOGOUT_SECONDS)

    async def _usable(self) -> ImapSession:
        """The session, or a new one after its connection was cut."""
        if self._session is not None and self._session.usable:
            return self._session
        self._session = session = await open_session(self._options)
        await session.select(self.folder)
        return session

    async def _find(self, session: ImapSession) -> Listed | None:
        """By its Message-ID among what came since, the UID that the server gave it first. No SEARCH: some ignore it."""
        listing = await session.list_after(self._highest_before)
        for listed in sorted(listing.entries, key=lambda one: (one.uid != self._uid, -one.uid)):
            header = await session.fetch_header(listed.uid, _HEADER_BYTES)
            if header is not None and self.mail.is_headed_by(header):
                return listed
        return None

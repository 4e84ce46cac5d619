"""What the IMAP side raises beyond a plain `ImapError`."""

from __future__ import annotations

from collections.abc import Iterable

from ops_mail.core.ids import Uid
from ops_mail.errors import Failure, ImapError


class Refused(ImapError):
    """The server answered one command with NO. The session is still in step and may be used further."""

    def __init__(self, message: str) -> None:
        super().__init__(Failure.PROTOCOL, message)


class Unfetchable(Refused):
    """The mails `uids` exist, but the server did not hand them over (no body, or far larger than it had listed).

    The session may be used further. A mail that is larger than listed can still be read by `fetch_pieces`.
    """

    def __init__(self, message: str, uids: Iterable[Uid]) -> None:
        super().__init__(message)
        self.uids = frozenset(uids)


class Expunged(Refused):
    """The mail was removed from the folder while it was being read. The session may be used further."""

    def __init__(self, message: str, uid: Uid) -> None:
        super().__init__(message)
        self.uid = uid

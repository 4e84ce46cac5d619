"""Every UID on the server against the tables: the proof that nothing is missing. Used by the listener and `verify`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import Listed
from ops_mail.imap import ImapSession
from ops_mail.store import CursorState, Store

_TABLE_WINDOW = 50_000
"""UIDs asked of the table at once where the server has none: memory stays bounded in a folder of any size."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What counts: UIDs above `start_uid` up to `last_uid` (the cursor), INTERNALDATE not before `earliest`."""

    uid_validity: UidValidity
    start_uid: Uid
    last_uid: Uid
    earliest: datetime | None

    def wants(self, mail: Listed) -> bool:
        """Should this mail have a row by now?"""
        in_range = self.start_uid < mail.uid <= self.last_uid
        return in_range and self.recent_enough(mail)

    def recent_enough(self, mail: Listed) -> bool:
        """Is it from IMAP_START or later?"""
        return self.earliest is None or mail.internal_date >= self.earliest


def scope_of(cursor: CursorState, uid_validity: UidValidity, earliest: datetime | None) -> Scope:
    """What a cursor vouches for under the folder's present numbering; nothing yet when it knows another one."""
    last_uid = cursor.last_uid if cursor.uid_validity == uid_validity else Uid(0)
    return Scope(uid_validity, max(Uid(0), cursor.start_uid), last_uid, earliest)


@dataclass(frozen=True, slots=True)
class Page:
    """One stretch of the comparison. `missing`: on the server, no row. `extra`: a row, no longer on the server
    (expunged after landing; nothing is wrong). `pending`: beyond the cursor, the next sync lands them.
    """

    on_server: int
    missing: tuple[Listed, ...]
    extra: int
    pending: int


async def compare(store: Store, session: ImapSession, key: FolderKey, scope: Scope) -> AsyncIterator[Page]:
    """Walk the selected folder from end to end, a few thousand mails at a time. Raises ImapError, StoreError."""
    position = Uid(0)
    complete = False
    while not complete:
        listing = await session.list_after(position)
        complete = listing.complete
        upper = listing.entries[-1].uid if listing.entries else position
        if complete:
            upper = max(upper, scope.last_uid)
        known: set[Uid] = set()
        for low in range(position, upper, _TABLE_WINDOW):
            known |= await store.known_uids(key, scope.uid_validity, Uid(low + 1), Uid(min(upper, low + _TABLE_WINDOW)))
        on_server = {mail.uid for mail in listing.entries}
        yield Page(
            on_server=len(on_server),
            missing=tuple(mail for mail in listing.entries if scope.wants(mail) and mail.uid not in known),
            extra=len(known - on_server),
            pending=sum(mail.uid > scope.last_uid for mail in listing.entries),
        )
        position = upper

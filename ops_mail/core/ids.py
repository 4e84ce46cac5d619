"""The numbers and names that identify a mail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

Uid = NewType("Uid", int)
"""IMAP UID, 1 to 2**32-1, ascending within one UIDVALIDITY (RFC 3501 section 2.3.1.1). 0 = before the first."""

UidValidity = NewType("UidValidity", int)
"""IMAP UIDVALIDITY, 1 to 2**32-1. Negative values mark rows retired from a numbering that the server took back."""

Epoch = NewType("Epoch", int)
"""Fencing token: grows by one each time an instance takes the guard of a folder."""


@dataclass(frozen=True, slots=True)
class FolderKey:
    """One folder of one mailbox: the unit that is guarded, synced and fenced."""

    mailbox: str
    folder: str

    def __str__(self) -> str:
        return f"{self.mailbox}/{self.folder}"


def stable_key(key: FolderKey, uid_validity: UidValidity, uid: Uid) -> str:
    """The key handlers see: `mailbox/folder/uidvalidity/uid`, the same at every attempt."""
    return f"{key.mailbox}/{key.folder}/{uid_validity}/{uid}"

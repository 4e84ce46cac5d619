"""The name of the lock that guards one folder on MySQL and MariaDB."""

from __future__ import annotations

import hashlib
import re

from ops_mail.core.ids import FolderKey

MAX_LENGTH = 64  # MySQL refuses longer ones
_SAFE = re.compile(r"[a-z0-9_.@/:+-]*")


def guard_name(schema: str, key: FolderKey) -> str:
    """At most 64 characters, different for every (schema, mailbox, folder): lock names are valid server-wide.

    Readable when it can be. Otherwise it ends in a hash: lock names know neither upper case nor all of Unicode, so
    two folders that differ there alone would share a lock.
    """
    plain = f"ops_mail:{schema}:{key.mailbox}/{key.folder}"
    if len(plain) <= MAX_LENGTH and _SAFE.fullmatch(plain):
        return plain
    digest = hashlib.sha256(f"{schema}\0{key.mailbox}\0{key.folder}".encode("utf-8", "surrogatepass")).hexdigest()
    readable = re.sub(r"[^a-z0-9_.@+-]+", "-", key.mailbox.lower())[:22]
    return f"ops_mail:{readable}:{digest[:32]}"

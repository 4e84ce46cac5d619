r"""Changes on the server: what runs after landing, and a test mail's way in and out. All by UID.

No plain EXPUNGE is ever sent: it would also remove mails that somebody else has marked as deleted. On a server without
UIDPLUS the mails are therefore only marked `\Deleted` and stay until somebody expunges them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import structlog

from ops_mail.core.ids import Uid
from ops_mail.imap.channel import Channel
from ops_mail.imap.names import folder_argument, uid_sets

log = structlog.get_logger("ops_mail.imap")

_FLAG = re.compile(r"\\?[A-Za-z0-9$_.-]+$")
_APPENDUID = re.compile(r"\[APPENDUID \d+ (\d+)\]", re.IGNORECASE)


async def store_flags(channel: Channel, uids: Iterable[Uid], add: Sequence[str]) -> None:
    """See `ImapSession.store_flags`."""
    if not add or not all(_FLAG.match(flag) for flag in add):
        raise ValueError(f"not flags: {add}")
    for uid_set in uid_sets(uids):
        await channel.may("STORE", uid_set, "+FLAGS.SILENT", f"({' '.join(add)})", prefix="UID", what="to set flags",
                          collect=False)  # fmt: skip


async def move(channel: Channel, capabilities: frozenset[str], uids: Iterable[Uid], folder: str) -> None:
    """See `ImapSession.move`."""
    wanted = sorted(uids)
    what = f"to move mails to {folder!r} (does the folder exist? see {channel.source.names('after_landing')})"
    if "MOVE" in capabilities:  # RFC 6851: atomic for each mail
        for uid_set in uid_sets(wanted):
            await channel.may("MOVE", uid_set, folder_argument(folder), prefix="UID", what=what, collect=False)
        return
    for uid_set in uid_sets(wanted):
        await channel.may("COPY", uid_set, folder_argument(folder), prefix="UID", what=what, collect=False)
        await _remove(channel, capabilities, uid_set)


async def delete(channel: Channel, capabilities: frozenset[str], uids: Iterable[Uid]) -> None:
    """See `ImapSession.delete`."""
    for uid_set in uid_sets(uids):
        await _remove(channel, capabilities, uid_set)


async def _remove(channel: Channel, capabilities: frozenset[str], uid_set: str) -> None:
    await channel.may("STORE", uid_set, "+FLAGS.SILENT", r"(\Deleted)", prefix="UID", what="to mark mails as deleted",
                      collect=False)  # fmt: skip
    if "UIDPLUS" in capabilities:  # RFC 4315
        await channel.may("EXPUNGE", uid_set, prefix="UID", what="to expunge mails", collect=False)
    else:
        log.warning("expunge_left_out", address=channel.address, reason="the server has no UIDPLUS", uids=uid_set)


async def append(channel: Channel, folder: str, raw: bytes) -> Uid | None:
    """See `ImapSession.append`."""
    reply = await channel.may("APPEND", folder_argument(folder), f"{{{len(raw)}}}", answers=[raw],
                              what=f"to store a mail in {folder!r}", collect=False)  # fmt: skip
    found = _APPENDUID.search(reply.text)
    return Uid(int(found.group(1))) if found else None

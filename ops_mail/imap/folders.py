"""Opening a folder, and the names of those there are."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ops_mail.core.ids import Uid, UidValidity
from ops_mail.errors import Failure, ImapError
from ops_mail.imap.channel import Channel, Reply
from ops_mail.imap.names import decode_folder, folder_argument
from ops_mail.imap.protocol import SELECTED
from ops_mail.imap.wire import Response

_FOLDERS_TOLD = 10
_CODE = re.compile(rb"\* OK \[(UIDVALIDITY|UIDNEXT) (\d{1,10})\]", re.IGNORECASE)
_STATUS_ITEM = re.compile(rb"\b(UIDVALIDITY|MESSAGES) (\d{1,10})\b", re.IGNORECASE)
_LISTED = re.compile(rb'\* LIST \([^)]*\) (?:"(?:\\?.)"|NIL) (?:"((?:[^"\\]|\\.)*)"|(\S+))$', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SelectedFolder:
    """What SELECT told. `uid_next` is for people only: some servers leave it out, others get it wrong."""

    uid_validity: UidValidity
    exists: int
    uid_next: Uid | None
    read_only: bool


async def select(channel: Channel, folder: str, *, read_only: bool) -> SelectedFolder:
    """See `ImapSession.select`."""
    try:
        name = folder_argument(folder)
    except ValueError:
        message = f"the folder's name holds a line break: check {channel.source.names('folder')}"
        raise ImapError(Failure.FOLDER, message) from None
    view = channel.protocol.view
    view.begin_select()
    channel.protocol.clear_hint()
    reply = await channel.run("EXAMINE" if read_only else "SELECT", name)
    view.end_select()
    if not reply.ok:
        raise await _refused(channel, folder, reply)
    channel.protocol.state = SELECTED
    codes: dict[bytes, int] = {}
    for response in reply.responses:
        if found := _CODE.match(response.first):
            codes[found.group(1).upper()] = int(found.group(2))
    validity = codes.get(b"UIDVALIDITY") or await _uid_validity_by_status(channel, name)
    if not validity:
        raise channel.broken(f"{channel.address} gives no UIDVALIDITY for {folder!r}: its mails have no lasting UIDs")
    uid_next = codes.get(b"UIDNEXT")
    return SelectedFolder(
        UidValidity(validity), view.exists, Uid(uid_next) if uid_next else None, reply.has_code("READ-ONLY")
    )


async def messages_by_status(channel: Channel, folder: str) -> int:
    """How many mails STATUS tells of, 0 when it does not tell (NetEase: `* STATUS "INBOX" ()`)."""
    reply = await channel.must("STATUS", folder_argument(folder), "(MESSAGES)", what="STATUS")
    return _status_items(reply.responses).get(b"MESSAGES", 0)


async def list_folders(channel: Channel) -> list[str]:
    """See `ImapSession.list_folders`."""
    reply = await channel.may("LIST", '""', '"*"', what="to list the folders")
    names: list[str] = []
    for response in reply.responses:
        if found := _LISTED.match(response.first):
            raw = re.sub(rb"\\(.)", rb"\1", found.group(1)) if found.group(1) is not None else found.group(2)
            names.append(decode_folder(raw.decode("utf-8", "replace")))
        elif len(response.literals) == 1 and response.literals[0] is not None:
            names.append(decode_folder(response.literals[0].decode("utf-8", "replace")))
    return names


async def _uid_validity_by_status(channel: Channel, name: str) -> int | None:
    reply = await channel.must("STATUS", name, "(UIDVALIDITY)", what="STATUS")
    return _status_items(reply.responses).get(b"UIDVALIDITY")


async def _refused(channel: Channel, folder: str, reply: Reply) -> ImapError:
    hint = f"check {channel.source.names('folder')}"
    if "unsafe login" in reply.text.lower():
        hint = "the provider wants IMAP to be switched on and the client to be allowed in its web mail"
    elif reply.result == "NO":
        with contextlib.suppress(ImapError):  # the refusal is what matters; this is a courtesy
            names = await list_folders(channel)
            if folder not in names and names:
                hint += f"; the mailbox has {', '.join(repr(name) for name in names[:_FOLDERS_TOLD])}"
    failure = Failure.FOLDER if reply.result == "NO" else Failure.PROTOCOL
    message = f"{channel.address} refused to open the folder {folder!r}: {reply.text}: {hint}"
    channel.abort(failure, message)
    return ImapError(failure, message)


def _status_items(responses: Iterable[Response]) -> dict[bytes, int]:
    items: dict[bytes, int] = {}
    for response in responses:
        if response.first[:9].upper() == b"* STATUS ":  # the name may be a literal: the items are at the end
            items |= {name.upper(): int(value) for name, value in _STATUS_ITEM.findall(response.texts[-1])}
    return items

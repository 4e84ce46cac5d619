"""EXAMINE (RFC 3501 section 6.3.2): looks into a folder without changing a flag in it, not even its recent ones."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

from ops_mail.errors import Failure, ImapError
from ops_mail.imap import ImapSession
from ops_mail.imap.names import folder_argument

_EXISTS = re.compile(rb"\* (\d{1,10}) EXISTS", re.IGNORECASE)
_UID_VALIDITY = re.compile(rb"\* OK \[UIDVALIDITY (\d{1,10})\]", re.IGNORECASE)
_FOLDERS_TOLD = 10


@dataclass(frozen=True, slots=True)
class Examined:
    """What the server told of the folder; `uid_validity` 0 when it told none."""

    exists: int
    uid_validity: int


async def examine(session: ImapSession, folder: str) -> Examined:
    """Opens `folder` for reading alone. Raises ImapError; a folder that is not there is told with those that are."""
    channel = session._channel  # noqa: SLF001 - the listener never examines, so the session has no method for it
    reply = await channel.run("EXAMINE", folder_argument(folder))
    if not reply.ok:
        raise ImapError(Failure.FOLDER, f"{folder!r} cannot be opened: {reply.text}{await _others(session, folder)}")
    found = Examined(exists=0, uid_validity=0)
    for response in reply.responses:
        if match := _EXISTS.match(response.first):
            found = Examined(int(match[1]), found.uid_validity)
        elif match := _UID_VALIDITY.match(response.first):
            found = Examined(found.exists, int(match[1]))
    return found


async def _others(session: ImapSession, folder: str) -> str:
    names: list[str] = []
    with contextlib.suppress(ImapError):  # the refusal is what matters; this is a courtesy
        names = [name for name in await session.list_folders() if name != folder]
    if not names:
        return ""
    more = ", …" if len(names) > _FOLDERS_TOLD else ""
    return f"; the mailbox has {', '.join(names[:_FOLDERS_TOLD])}{more}"

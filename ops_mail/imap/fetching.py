"""Bodies: batches of small mails, and large ones piece by piece. Always BODY.PEEK, which changes nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed
from ops_mail.imap.channel import Channel, Reply
from ops_mail.imap.errors import Expunged, Refused, Unfetchable
from ops_mail.imap.fetch_parser import Dropped, Fetched, Value
from ops_mail.imap.listing import fetched_of, list_uids
from ops_mail.imap.names import uid_sets

SIZE_TOLERANCE = 1024 * 1024
"""RFC822.SIZE is a hint: a mail may be this much larger than listed, or twice as large, before it is refused."""

_BODY = "BODY[]"
_PIECE = re.compile(r"BODY\[(?:HEADER)?\](?:<(\d{1,10})>)?$")


async def fetch_small(channel: Channel, listed: Sequence[Listed]) -> dict[Uid, bytes]:
    """See `ImapSession.fetch_small`."""
    sizes = {entry.uid: entry.size_bytes for entry in listed}
    if not sizes:
        return {}
    found, too_large = await _fetch_bodies(channel, sizes)
    missing = [uid for uid in sizes if uid not in found and uid not in too_large]
    silent: set[Uid] = set()
    if missing:  # expunged meanwhile, or held back by the server: only the first may be taken as gone
        still_there = await _existing(channel, missing)
        if still_there:
            again, more = await _fetch_bodies(channel, {uid: sizes[uid] for uid in still_there})
            found |= again
            too_large |= more
            silent = set(await _existing(channel, still_there - again.keys() - more))
    if silent:
        raise Unfetchable(f"{channel.address} has UID {_some(silent)} but does not give the content", silent)
    if too_large:
        raise Unfetchable(f"{channel.address} sent more for UID {_some(too_large)} than it had listed", too_large)
    return found


async def _fetch_bodies(channel: Channel, sizes: dict[Uid, int]) -> tuple[dict[Uid, bytes], set[Uid]]:
    """The bodies that came, by the UID inside each FETCH line, and the UIDs whose body was too large to keep."""
    largest = max(sizes.values())
    limit = max(2 * largest, largest + SIZE_TOLERANCE)
    found: dict[Uid, bytes] = {}
    too_large: set[Uid] = set()
    for uid_set in uid_sets(sizes):
        reply = await channel.run("FETCH", uid_set, "(UID BODY.PEEK[])", prefix="UID", literal_limit=limit)
        _raise_for_no(channel, reply, "a batch of mails")
        for fetched in await fetched_of(channel, reply):
            uid = fetched.uid
            if uid is None or uid not in sizes or _BODY not in fetched.attributes:
                continue  # an unsolicited flag update
            body = fetched.attributes[_BODY]
            if isinstance(body, Dropped):
                too_large.add(uid)
            elif isinstance(body, tuple):
                raise channel.broken(f"{channel.address} sent a list where the content of UID {uid} was due")
            elif body is not None and (body or sizes[uid] == 0):
                found[uid] = body
    return found, too_large


async def fetch_pieces(channel: Channel, uid: Uid, piece_bytes: int) -> AsyncIterator[bytes]:
    """See `ImapSession.fetch_pieces`."""
    offset = 0
    size: int | None = None
    while True:
        fetched = await _fetch_one(channel, uid, f"(UID RFC822.SIZE BODY.PEEK[]<{offset}.{piece_bytes}>)", piece_bytes)
        piece = None if fetched is None else _piece(channel, fetched, offset, piece_bytes)
        if fetched is not None and size is None:
            size = _size(fetched.attributes.get("RFC822.SIZE"))
        if piece is None and not await _existing(channel, [uid]):
            raise Expunged(f"UID {uid} was removed from the folder while it was read", uid)
        if not piece:
            if offset == 0 and (piece is None or size):
                raise Unfetchable(f"{channel.address} has UID {uid} but does not give the content", [uid])
            return
        yield piece
        offset += len(piece)
        # A short piece is the end by RFC 3501, but some servers cap their pieces: ask on unless the size agrees.
        if len(piece) < piece_bytes and offset == size:
            return


async def fetch_header(channel: Channel, uid: Uid, max_bytes: int) -> bytes | None:
    """See `ImapSession.fetch_header`."""
    fetched = await _fetch_one(channel, uid, f"(UID BODY.PEEK[HEADER]<0.{max_bytes}>)", max_bytes)
    if fetched is None:
        return None
    return _piece(channel, fetched, 0, max_bytes)


async def _fetch_one(channel: Channel, uid: Uid, items: str, literal_limit: int) -> Fetched | None:
    reply = await channel.run("FETCH", str(uid), items, prefix="UID", literal_limit=literal_limit)
    _raise_for_no(channel, reply, f"UID {uid}")
    for fetched in await fetched_of(channel, reply):
        if fetched.uid == uid and any(_PIECE.match(name) for name in fetched.attributes):
            return fetched
    return None


def _piece(channel: Channel, fetched: Fetched, offset: int, piece_bytes: int) -> bytes | None:
    name, value = next((name, value) for name, value in fetched.attributes.items() if _PIECE.match(name))
    origin = (_PIECE.match(name) or [None, None])[1]
    if isinstance(value, bytes) and len(value) <= piece_bytes and int(origin or 0) == offset:
        return value
    if value is None:
        return None
    wanted = f"BODY[]<{offset}.{piece_bytes}>"
    raise channel.broken(f"{channel.address} does not answer requests for a part of a mail ({wanted})")


def _size(value: Value) -> int | None:
    return int(value) if isinstance(value, bytes) and value.isdigit() and len(value) <= 20 else None


def _raise_for_no(channel: Channel, reply: Reply, what: str) -> None:
    if reply.ok or reply.has_code("EXPUNGEISSUED"):  # RFC 5530: some of them are gone, the others were sent
        return
    if reply.result == "NO":
        raise Refused(f"{channel.address} refused to give {what}: {reply.text}")
    raise channel.broken(f"{channel.address} answered {reply.result} to a request for {what}: {reply.text}")


async def _existing(channel: Channel, uids: Sequence[Uid] | set[Uid]) -> set[Uid]:
    if not uids:
        return set()
    await channel.must("NOOP", what="NOOP", collect=False)  # lets the server drop what is expunged
    return set(await list_uids(channel, uids))


def _some(uids: set[Uid]) -> str:
    shown = ", ".join(str(uid) for uid in sorted(uids)[:5])
    return shown if len(uids) <= 5 else f"{shown} and {len(uids) - 5} more"

"""What is in the folder: listings by UID, bounded in memory, never skipping a mail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed
from ops_mail.imap.channel import Channel, Reply
from ops_mail.imap.fetch_parser import MAX_UID, UNKNOWN_DATE, Fetched, flags, listed, parse_fetch
from ops_mail.imap.names import uid_sets
from ops_mail.imap.wire import WireError

WINDOW = 5000
"""How many mails one listing holds at most (about 1 KB each in memory)."""

BREATH_SECONDS = 0.005
"""How long parsing holds the event loop before it lets others run (promise P9)."""

_ITEMS = "(UID RFC822.SIZE INTERNALDATE FLAGS)"


@dataclass(frozen=True, slots=True)
class Listing:
    """Mails after a UID, ascending. `complete` false: more remain, ask again after the last one.

    `remaining_estimate` is how many mails lie behind the last entry (0 when complete).
    """

    entries: tuple[Listed, ...]
    complete: bool
    remaining_estimate: int


async def highest_uid(channel: Channel) -> Uid | None:
    """The highest UID in the folder, None when it is empty. Asks the mail itself: UIDNEXT may be missing or wrong."""
    await refresh(channel)
    return await _highest(channel)


async def _highest(channel: Channel) -> Uid | None:
    reply = await _fetch(channel, "*", "(UID)")
    uids = [uid for fetched in await fetched_of(channel, reply) if (uid := fetched.uid) is not None]
    return max(uids, default=None)


async def list_after(channel: Channel, last: Uid) -> Listing:
    """See `ImapSession.list_after`."""
    await refresh(channel)
    channel.protocol.view.unlisted = False
    if last >= MAX_UID:
        return Listing((), True, 0)
    if channel.protocol.view.exists <= WINDOW:
        entries, _ = await _window(channel, last, f"{last + 1}:*")
        return Listing(entries, True, 0)
    return await _list_part(channel, last)


async def list_uids(channel: Channel, uids: Iterable[Uid]) -> dict[Uid, Listed]:
    """Listing lines of these UIDs; the ones that are gone are missing."""
    wanted = set(uids)
    found: dict[Uid, Listed] = {}
    for uid_set in uid_sets(wanted):
        entries, _ = await _window(channel, Uid(0), uid_set)
        found.update((entry.uid, entry) for entry in entries if entry.uid in wanted)
    return found


async def refresh(channel: Channel) -> None:
    """Lets the server tell what is new, unless it has done so since the last listing.

    A server shows new mails only after it has announced them, and some announce them in the answer to a command alone.
    """
    if not channel.protocol.view.unlisted:
        await channel.must("NOOP", what="NOOP", collect=False)


async def fetched_of(channel: Channel, reply: Reply) -> list[Fetched]:
    """The FETCH responses of a reply. Drops the connection when one is malformed: nothing after it can be trusted."""
    result: list[Fetched] = []
    breath = _Breath()
    for response in reply.responses:
        await breath.due()
        try:
            fetched = parse_fetch(response)
        except WireError as error:
            raise channel.broken(f"{channel.address} sent {error}") from None
        if fetched is not None:
            result.append(fetched)
    return result


class _Breath:
    """Lets the event loop run others once enough time has gone by."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    async def due(self) -> None:
        if time.perf_counter() - self._last > BREATH_SECONDS:
            await asyncio.sleep(0)
            self._last = time.perf_counter()


async def _list_part(channel: Channel, last: Uid) -> Listing:
    highest = await _highest(channel)
    if highest is None or highest <= last:
        return Listing((), True, 0)
    entries, sequence = await _window(channel, last, _window_set(last))
    end = last + WINDOW
    if not entries and highest > end:
        first = await _first_after(channel, Uid(end))
        if first is None:  # expunged meanwhile, or a server that does not answer FETCH by number
            await channel.must("NOOP", what="NOOP", collect=False)
            highest = await _highest(channel)
            if highest is not None and highest > end:
                raise channel.broken(
                    f"{channel.address} has UID {highest} but does not tell which mails come before it"
                )
            return Listing((), True, 0)
        last = Uid(first - 1)
        entries, sequence = await _window(channel, last, _window_set(last))
        end = last + WINDOW
    if highest <= end:
        return Listing(entries, True, 0)
    # Behind the window there is at least the highest one; the sequence number of the last entry tells how many.
    behind = channel.protocol.view.exists - sequence if sequence else 1
    return Listing(entries, False, max(1, behind))


def _window_set(last: Uid) -> str:
    return f"{last + 1}:{min(last + WINDOW, MAX_UID)}"


async def _window(channel: Channel, last: Uid, uid_set: str) -> tuple[tuple[Listed, ...], int]:
    """The listing of `uid_set` above `last`, and the sequence number of its last entry.

    `99:*` gives the last mail even when its UID is lower (RFC 3501 section 6.4.8): it is filtered out here.
    """
    reply = await _fetch(channel, uid_set, _ITEMS)
    merged: dict[Uid, Fetched] = {}
    for fetched in await fetched_of(channel, reply):
        uid = fetched.uid
        if uid is None or uid <= last:
            continue
        known = merged.get(uid)  # a flag update mixed in, or attributes spread over two lines
        merged[uid] = (
            fetched if known is None else Fetched(fetched.sequence, uid, known.attributes | fetched.attributes)
        )
    entries: list[Listed] = []
    breath = _Breath()
    for uid in sorted(merged):
        await breath.due()
        entries.append(listed(merged[uid]) or await _listed_alone(channel, merged[uid], uid))
    return tuple(entries), merged[entries[-1].uid].sequence if entries else 0


async def _fetch(channel: Channel, uid_set: str, items: str) -> Reply:
    """UID FETCH, also of a folder that should be empty: the EXISTS that says otherwise may have been withheld.

    Some servers do not take a set for an empty folder; for them, NO or BAD says that it is empty indeed.
    """
    reply = await channel.run("FETCH", uid_set, items, prefix="UID")
    if reply.ok or (channel.protocol.view.exists == 0 and "not connected" not in reply.text):
        return reply
    raise channel.broken(f"{channel.address} answered {reply.result} to the listing: {reply.text}")


async def _listed_alone(channel: Channel, fetched: Fetched, uid: Uid) -> Listed:
    """A mail whose line lacks something is asked for again, and kept with what there is: it must not be skipped."""
    reply = await channel.must("FETCH", str(uid), _ITEMS, prefix="UID", what="the listing")
    attributes = dict(fetched.attributes)
    for again in await fetched_of(channel, reply):
        if again.uid == uid:
            attributes |= again.attributes
    whole = Fetched(fetched.sequence, uid, attributes)
    return listed(whole) or Listed(uid, 0, UNKNOWN_DATE, flags(whole))


async def _first_after(channel: Channel, last: Uid) -> Uid | None:
    """The lowest UID above `last`, by bisection over sequence numbers: UIDs ascend with them.

    FETCH by number is safe here: a server must not renumber while it answers FETCH (RFC 3501 section 7.4.1), and
    nothing else is sent in between.
    """
    low, high = 1, channel.protocol.view.exists
    found: Uid | None = None
    while low <= high:
        middle = (low + high) // 2
        uid = await _uid_of(channel, middle)
        if uid is None:
            return found
        if uid > last:
            found, high = uid, middle - 1
        else:
            low = middle + 1
    return found


async def _uid_of(channel: Channel, sequence: int) -> Uid | None:
    reply = await channel.must("FETCH", str(sequence), "(UID)", what="FETCH by number")
    for fetched in await fetched_of(channel, reply):
        if fetched.sequence == sequence and fetched.uid is not None:
            return fetched.uid
    return None

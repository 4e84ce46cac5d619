from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from ops_mail.core.ids import Uid
from ops_mail.errors import Failure, ImapError
from ops_mail.imap import UNKNOWN_DATE, IdleOutcome, ImapSession, Refused, Unfetchable, open_session
from ops_mail.imap.listing import WINDOW
from tests.integration.imap.opening import options, selected
from tests.servers.scripted import Handler, Peer, ReceivedCommand, ScriptedImap

RAW = b"Subject: hi\r\n\r\nbody\r\n"
START = Uid(0)


def no_beat() -> None:
    return


def hinted(session: ImapSession) -> bool:
    return session.hint_at is not None


def quiet() -> asyncio.Event:
    return asyncio.Event()


def answering(*lines: bytes, ok: bytes = b"OK done") -> Handler:
    """The lines and the tagged result, in one segment."""

    async def answer(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(*lines, command.tag.encode() + b" " + ok)

    return answer


async def never(peer: Peer, command: ReceivedCommand) -> None:
    await asyncio.Event().wait()


async def cutting(peer: Peer, command: ReceivedCommand) -> None:
    peer.cut_off()


async def closing(peer: Peer, command: ReceivedCommand) -> None:
    peer.writer.close()


async def bye(peer: Peer, command: ReceivedCommand) -> None:
    await peer.send(b"* BYE Session expired, please login again")


# --- whatever command is running

Action = Callable[[ImapSession], Awaitable[object]]


async def pieces(session: ImapSession) -> list[bytes]:
    return [piece async for piece in session.fetch_pieces(Uid(1))]


async def small(session: ImapSession) -> dict[Uid, bytes]:
    return await session.fetch_small((await session.list_after(START)).entries)


async def rest(session: ImapSession) -> IdleOutcome:
    return await session.idle(5, quiet(), no_beat)


COMMANDS: dict[str, tuple[str, Action]] = {
    "select": ("SELECT", lambda session: session.select("INBOX")),
    "poll": ("NOOP", lambda session: session.poll()),
    "listing": ("UID FETCH", lambda session: session.list_after(START)),
    "highest": ("UID FETCH", lambda session: session.highest_uid()),
    "pieces": ("UID FETCH", pieces),
    "header": ("UID FETCH", lambda session: session.fetch_header(Uid(1), 100)),
    "idle": ("IDLE", rest),
    "flags": ("UID STORE", lambda session: session.store_flags([Uid(1)], [r"\Seen"])),
    "move": ("UID MOVE", lambda session: session.move([Uid(1)], "X")),
    "append": ("APPEND", lambda session: session.append("X", RAW)),
}
FAULTS: dict[str, tuple[Handler, set[Failure]]] = {
    "silence": (never, {Failure.TIMEOUT}),
    "reset": (cutting, {Failure.LOST}),
    "closed": (closing, {Failure.LOST}),
    "bye": (bye, {Failure.BYE}),
    "another_tag": (answering(b"ZZZ9 OK done"), {Failure.PROTOCOL}),
    "nonsense": (answering(b"Subject: this is a mail, not IMAP"), {Failure.PROTOCOL}),
    "bad": (answering(ok=b"BAD User is authenticated but not connected."), {Failure.PROTOCOL}),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", COMMANDS)
async def test_every_fault_in_every_command_ends_the_session_with_its_reason(name: str, fault: str) -> None:
    command, action = COMMANDS[name]
    handler, failures = FAULTS[fault]
    async with ScriptedImap({1: RAW}) as server:
        session = await open_session(options(server, command=0.3))
        await session.select("INBOX")
        server.on[command] = handler
        with pytest.raises(ImapError) as caught:
            await asyncio.wait_for(action(session), 10)
        assert caught.value.failure in failures
        assert f"127.0.0.1:{server.port}" in str(caught.value)
        assert not session.usable
        with pytest.raises(ImapError) as again:
            await session.poll()
        assert again.value.failure is caught.value.failure
        await session.logout(1)


@pytest.mark.parametrize("command", ["LOGIN", "CAPABILITY", "ID"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_while_logging_in_ends_with_its_reason(command: str, fault: str) -> None:
    handler, failures = FAULTS[fault]
    async with ScriptedImap(on={command: handler}) as server:
        opening = open_session(options(server, command=0.3))
        if (command, fault) == ("ID", "bad"):  # a refused ID does not matter
            await (await opening).logout(1)
            return
        with pytest.raises(ImapError) as caught:
            await opening
    expected = {Failure.AUTH} if (command, fault) == ("LOGIN", "bad") else failures
    assert caught.value.failure in expected


async def test_bye_keeps_the_servers_words() -> None:
    async with ScriptedImap({1: RAW}) as server, selected(options(server)) as session:
        server.on["NOOP"] = bye
        with pytest.raises(ImapError, match="Session expired, please login again"):
            await session.poll()


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_cancelled_command_cuts_the_connection(name: str) -> None:
    command, action = COMMANDS[name]
    async with ScriptedImap({1: RAW}) as server:
        session = await open_session(options(server))
        await session.select("INBOX")
        server.on[command] = never
        before = len(server.received)
        running = asyncio.ensure_future(action(session))
        await server.until(lambda: any(command.encode() in line for line in server.received[before:]))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not session.usable
        await session.logout(1)


async def test_a_connection_that_ends_in_the_middle_of_a_literal_is_lost() -> None:
    async def half(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send_raw(b"* 1 FETCH (UID 1 BODY[] {1000}\r\nonly this much")
        peer.writer.close()

    async with ScriptedImap({1: RAW}) as server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
        server.on["UID FETCH"] = half
        with pytest.raises(ImapError) as caught:
            await session.fetch_small(entries)
        assert caught.value.failure is Failure.LOST


# --- chunks


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 64])
async def test_answers_cut_at_any_byte_read_the_same(cut: int) -> None:
    mails = {uid: RAW * uid for uid in (1, 5, 9)}
    async with ScriptedImap(mails, cut=cut) as server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
        assert [entry.uid for entry in entries] == [1, 5, 9]
        assert await session.fetch_small(entries) == mails
        assert b"".join([piece async for piece in session.fetch_pieces(Uid(9), 10)]) == mails[9]


async def test_two_thousand_short_lines_in_one_chunk() -> None:
    lines = [b"* %d FETCH (FLAGS (\\Seen))" % number for number in range(1, 2001)]
    async with ScriptedImap({1: RAW}) as server, selected(options(server)) as session:
        server.on["NOOP"] = answering(*lines, *[b"* 1 EXPUNGE"] * 2000)
        await session.poll()
        assert session.usable


async def test_two_thousand_small_mails_in_one_batch() -> None:
    mails = {uid: b"Subject: %d\r\n\r\n" % uid for uid in range(1, 2001)}
    async with ScriptedImap(mails) as server, selected(options(server)) as session:
        assert await small(session) == mails


# --- hints


async def test_news_in_the_same_segment_as_the_tagged_ok_of_done_is_a_push() -> None:
    async def late(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(b"+ idling")
        await peer.line()
        await peer.send(b"* 2 EXISTS", command.tag.encode() + b" OK idle over")

    async with ScriptedImap({1: RAW}, on={"IDLE": late}) as server, selected(options(server)) as session:
        assert await session.idle(0.2, quiet(), no_beat) is IdleOutcome.PUSH
        assert session.pushed_in_idle


async def test_news_before_the_continuation_is_a_push() -> None:
    async def early(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(b"* 2 EXISTS", b"+ idling")
        assert await peer.line() == b"DONE"
        await peer.ok(command)

    async with ScriptedImap({1: RAW}, on={"IDLE": early}) as server, selected(options(server)) as session:
        assert await session.idle(30, quiet(), no_beat) is IdleOutcome.PUSH


@pytest.mark.parametrize("name", ["poll", "listing", "header", "flags"])
async def test_news_in_any_command_is_a_hint_and_idle_is_skipped(name: str) -> None:
    command, action = COMMANDS[name]
    async with ScriptedImap({1: RAW}) as server, selected(options(server)) as session:
        server.on[command] = answering(b"* 2 EXISTS")
        await action(session)
        assert session.hint_at is not None
        assert not session.pushed_in_idle
        assert await session.idle(30, quiet(), no_beat) is IdleOutcome.PUSH
        assert not server.commands("IDLE")


async def test_news_between_commands_is_a_hint() -> None:
    async with ScriptedImap({1: RAW}) as server, selected(options(server)) as session:
        await server.peers[0].send(b"* 2 EXISTS", b"* 1 RECENT")
        await server.until(lambda: session.hint_at is not None)
        assert not session.pushed_in_idle


async def test_still_here_does_not_end_idle() -> None:
    async def chatting(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(b"+ idling", b"* OK Still here", rb"* 1 FETCH (FLAGS (\Seen))", b"* 1 EXISTS", b"* 0 RECENT")
        await peer.line()
        await peer.ok(command)

    async with ScriptedImap({1: RAW}, on={"IDLE": chatting}) as server, selected(options(server)) as session:
        assert await session.idle(0.3, quiet(), no_beat) is IdleOutcome.TIMEOUT


async def test_silence_after_done_ends_the_session() -> None:
    async def stuck(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(b"+ idling")
        await asyncio.Event().wait()

    async with ScriptedImap({1: RAW}, on={"IDLE": stuck}) as server:
        session = await open_session(options(server, command=0.3))
        await session.select("INBOX")
        with pytest.raises(ImapError, match="DONE") as caught:
            await session.idle(0.2, quiet(), no_beat)
        assert caught.value.failure is Failure.TIMEOUT
        await session.logout(1)


@pytest.mark.parametrize("stage", ["+", "DONE"])
async def test_a_caller_that_must_stop_does_not_wait_for_a_dead_line(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops_mail.imap.idling.WOKEN_SECONDS", 0.2)

    async def stuck(peer: Peer, command: ReceivedCommand) -> None:
        if stage == "DONE":
            await peer.send(b"+ idling")
        await asyncio.Event().wait()

    wake = quiet()
    async with ScriptedImap({1: RAW}, on={"IDLE": stuck}) as server, selected(options(server)) as session:
        asyncio.get_running_loop().call_later(0.1, wake.set)
        with pytest.raises(ImapError) as caught:
            await asyncio.wait_for(session.idle(60, wake, no_beat), 5)
        assert caught.value.failure is Failure.TIMEOUT


async def test_a_caller_that_is_already_woken_does_not_idle() -> None:
    wake = quiet()
    wake.set()
    async with ScriptedImap({1: RAW}) as server, selected(options(server)) as session:
        assert await session.idle(60, wake, no_beat) is IdleOutcome.WOKEN
        assert not server.commands("IDLE")


@pytest.mark.parametrize("ok", [b"OK IDLE completed", b"NO not now", b"BAD unknown command"])
async def test_a_server_that_does_not_stay_in_idle_is_polled_from_then_on(ok: bytes) -> None:
    async with ScriptedImap({1: RAW}, on={"IDLE": answering(ok=ok)}) as server, selected(options(server)) as session:
        told = [session.can_idle]
        assert await session.idle(30, quiet(), no_beat) is IdleOutcome.TIMEOUT
        assert [*told, session.can_idle] == [True, False]
        await session.poll()
        assert session.usable


async def test_a_server_that_ends_idle_by_itself_with_news_is_still_trusted() -> None:
    handler = answering(b"+ idling", b"* 2 EXISTS", ok=b"OK over")
    async with ScriptedImap({1: RAW}, on={"IDLE": handler}) as server, selected(options(server)) as session:
        assert await session.idle(30, quiet(), no_beat) is IdleOutcome.PUSH
        assert session.can_idle


async def test_a_server_without_idle_is_known_as_such() -> None:
    async with ScriptedImap({1: RAW}, capabilities="IMAP4rev1") as server, selected(options(server)) as session:
        assert not session.can_idle
        server.mails[2] = RAW
        await session.poll()
        assert session.hint_at is not None


async def test_netease_is_polled_by_status() -> None:
    capabilities = "IMAP4rev1 ID X-CM-EXT-1"
    server = ScriptedImap({1: RAW}, capabilities=capabilities)
    server.on["STATUS"] = answering(b'* STATUS "INBOX" ()')
    async with server, selected(options(server)) as session:
        await session.poll()
        assert server.commands("STATUS") == [b'STATUS "INBOX" (MESSAGES)']
        assert not hinted(session)
        server.on["STATUS"] = answering(b'* STATUS "INBOX" (MESSAGES 2)')
        server.on["NOOP"] = answering()
        await session.poll()
        assert hinted(session)


# --- listings


async def test_a_folder_without_uidvalidity_in_select_is_asked_by_status() -> None:
    select = answering(b"* 0 EXISTS")
    status = answering(b'* STATUS "INBOX" (UIDVALIDITY 99)')
    async with ScriptedImap(on={"SELECT": select, "STATUS": status}) as server:
        session = await open_session(options(server))
        assert (await session.select("INBOX")).uid_validity == 99
        await session.logout(1)


async def test_a_folder_without_any_uidvalidity_is_refused() -> None:
    async with ScriptedImap(on={"SELECT": answering(b"* 0 EXISTS")}) as server:
        session = await open_session(options(server))
        with pytest.raises(ImapError, match="UIDVALIDITY") as caught:
            await session.select("INBOX")
        assert caught.value.failure is Failure.PROTOCOL


async def test_a_folder_that_is_called_empty_is_listed_all_the_same() -> None:
    server = ScriptedImap({4: RAW, 9: RAW})
    server.on["SELECT"] = answering(b"* 0 EXISTS", b"* OK [UIDVALIDITY 7] valid")
    server.on["NOOP"] = answering()
    async with server, selected(options(server)) as session:
        assert session.exists == 0
        assert [entry.uid for entry in (await session.list_after(START)).entries] == [4, 9]
        assert await session.highest_uid() == 9


@pytest.mark.parametrize("ok", [b"NO no matching messages", b"BAD invalid message set"])
async def test_a_server_that_refuses_to_list_an_empty_folder_has_an_empty_folder(ok: bytes) -> None:
    async with ScriptedImap(on={"UID FETCH": answering(ok=ok)}) as server, selected(options(server)) as session:
        assert (await session.list_after(START)).complete
        assert await session.highest_uid() is None


async def test_flag_updates_mixed_into_a_listing_neither_add_nor_lose_a_mail() -> None:
    server = ScriptedImap({1: RAW, 2: RAW, 3: RAW})
    lines = [
        rb"* 3 FETCH (UID 3 FLAGS (\Deleted))",
        server.fetch_line(2, "RFC822.SIZE INTERNALDATE FLAGS"),
        rb"* 1 FETCH (FLAGS (\Answered))",
        server.fetch_line(3, "RFC822.SIZE INTERNALDATE FLAGS"),
        rb"* 2 FETCH (UID 2 MODSEQ (12))",
    ]
    server.on["UID FETCH"] = answering(*lines)
    async with server, selected(options(server)) as session:
        listing = await session.list_after(Uid(1))
        assert [(entry.uid, entry.size_bytes) for entry in listing.entries] == [(2, len(RAW)), (3, len(RAW))]


async def test_a_mail_without_size_or_date_is_listed_all_the_same() -> None:
    async def sparse(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(b"* 1 FETCH (UID 1 FLAGS ())", b"* 2 FETCH (UID 2 RFC822.SIZE 5 INTERNALDATE NIL)")
        await peer.ok(command)

    server = ScriptedImap({1: RAW, 2: RAW}, on={"UID FETCH": sparse})
    async with server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
    assert [(entry.uid, entry.size_bytes, entry.internal_date) for entry in entries] == [
        (1, 0, UNKNOWN_DATE),
        (2, 5, UNKNOWN_DATE),
    ]


async def test_a_gap_of_a_million_uids_costs_few_round_trips() -> None:
    low = range(1, WINDOW + 1)
    high = range(2_000_000, 2_000_100)
    server = ScriptedImap(dict.fromkeys((*low, *high), RAW))
    async with server, selected(options(server)) as session:
        first = await session.list_after(START)
        assert [entry.uid for entry in first.entries] == list(low)
        assert (first.complete, first.remaining_estimate) == (False, 100)
        before = len(server.received)
        second = await session.list_after(Uid(WINDOW))
        assert [entry.uid for entry in second.entries] == list(high)
        assert second.complete
        assert len(server.received) - before < 25


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_the_gaps_every_mail_is_listed_once_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    window = 5
    monkeypatch.setattr("ops_mail.imap.listing.WINDOW", window)
    random = Random(seed)
    uids: list[int] = []
    for _ in range(random.randint(6, 30)):
        uids.append((uids[-1] if uids else 0) + random.choice([1, 1, 2, window - 1, window, window + 1, 17, 1000]))
    async with ScriptedImap(dict.fromkeys(uids, RAW)) as server, selected(options(server)) as session:
        for start in {0, *uids, uids[-1] + 1, *(uid - 1 for uid in uids)}:
            found: list[int] = []
            complete = False
            while not complete:
                listing = await session.list_after(Uid(found[-1] if found else start))
                found += [entry.uid for entry in listing.entries]
                complete = listing.complete
                assert listing.entries or complete
                assert listing.remaining_estimate == sum(uid > found[-1] for uid in uids) if found else True
            assert found == [uid for uid in uids if uid > start]


async def test_a_window_that_ends_at_the_highest_uid_is_the_last_one() -> None:
    server = ScriptedImap(dict.fromkeys(range(1, WINDOW + 2), RAW))
    async with server, selected(options(server)) as session:
        listing = await session.list_after(Uid(1))
        assert (len(listing.entries), listing.complete, listing.remaining_estimate) == (WINDOW, True, 0)


async def test_mails_behind_a_gap_that_cannot_be_found_are_never_taken_as_read() -> None:
    server = ScriptedImap(dict.fromkeys([*range(1, WINDOW + 1), 2_000_000], RAW), on={"FETCH": answering()})
    async with server, selected(options(server)) as session:
        with pytest.raises(ImapError, match="UID 2000000"):
            await session.list_after(Uid(WINDOW))


async def test_mails_behind_a_gap_that_go_while_they_are_looked_for() -> None:
    server = ScriptedImap(dict.fromkeys([*range(1, WINDOW + 1), 2_000_000], RAW))

    async def going(peer: Peer, command: ReceivedCommand) -> None:
        server.mails.pop(2_000_000, None)
        await peer.ok(command)

    server.on["FETCH"] = going
    async with server, selected(options(server)) as session:
        listing = await session.list_after(Uid(WINDOW))
        assert (listing.entries, listing.complete) == ((), True)


async def test_nothing_new_in_a_large_folder_is_known_without_a_listing() -> None:
    server = ScriptedImap(dict.fromkeys(range(1, WINDOW + 10), RAW))
    async with server, selected(options(server)) as session:
        assert (await session.list_after(Uid(WINDOW + 9))).complete
        assert server.commands("UID FETCH") == [b"UID FETCH * (UID)"]


@pytest.mark.parametrize("sizes", [1, 10**9])
async def test_a_size_that_lies_is_only_a_hint(sizes: int) -> None:
    raw = RAW + b"x" * 5000
    async with ScriptedImap({1: raw}, sizes={1: sizes}) as server, selected(options(server)) as session:
        assert await small(session) == {1: raw}
        assert await pieces(session) == [raw]
        assert b"".join([piece async for piece in session.fetch_pieces(Uid(1), 1000)]) == raw


# --- bodies


async def test_a_mail_far_larger_than_listed_is_not_taken_into_memory_but_can_be_read_in_pieces() -> None:
    raw = b"x" * 3_000_000
    async with ScriptedImap({1: raw, 2: RAW}, sizes={1: 10}) as server, selected(options(server)) as session:
        with pytest.raises(Unfetchable) as caught:
            await small(session)
        assert caught.value.uids == {1}
        assert b"".join(await pieces(session)) == raw


async def test_a_batch_of_many_mails_larger_than_listed_does_not_fill_the_memory() -> None:
    mails = dict.fromkeys(range(1, 61), b"x" * 1_000_000)
    async with ScriptedImap(mails, sizes=dict.fromkeys(mails, 10)) as server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
        with pytest.raises(ImapError, match="far more than it was asked for") as caught:
            await session.fetch_small(entries)
        assert caught.value.failure is Failure.PROTOCOL


@pytest.mark.parametrize("body", [b"NIL", b"{0}\r\n", b'""'])
async def test_a_mail_that_is_there_without_content_is_not_taken_for_expunged(body: bytes) -> None:
    server = ScriptedImap({1: RAW})

    async def empty(peer: Peer, command: ReceivedCommand) -> None:
        if "BODY" in command.arguments:
            name = b"BODY[]<0>" if "<0." in command.arguments else b"BODY[]"
            await peer.send(b"* 1 FETCH (UID 1 RFC822.SIZE 20 " + name + b" " + body + b")")
        else:
            await peer.send(server.fetch_line(1, command.arguments))
        await peer.ok(command)

    server.on["UID FETCH"] = empty
    async with server, selected(options(server)) as session:
        with pytest.raises(Unfetchable) as caught:
            await small(session)
        assert caught.value.uids == {1}
        with pytest.raises(Unfetchable):
            await pieces(session)
        assert session.usable


async def test_a_batch_that_the_server_refuses_leaves_the_session_usable() -> None:
    server = ScriptedImap({1: RAW, 2: RAW})
    plain = server.fetch_line

    async def corrupt(peer: Peer, command: ReceivedCommand) -> None:
        uids = server.chosen(command.arguments.partition(" ")[0])
        if "BODY" in command.arguments and 1 in uids:
            await peer.no(command, "[SERVERBUG] message is corrupt")
            return
        await peer.send(*(plain(uid, command.arguments) for uid in uids), command.tag.encode() + b" OK done")

    server.on["UID FETCH"] = corrupt
    async with server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
        with pytest.raises(Refused, match="message is corrupt"):
            await session.fetch_small(entries)
        assert await session.fetch_small(entries[1:]) == {2: RAW}


async def test_an_answer_that_says_some_are_expunged_counts_as_an_answer() -> None:
    server = ScriptedImap({1: RAW, 2: RAW})
    async with server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
        del server.mails[1]

        async def partly(peer: Peer, command: ReceivedCommand) -> None:
            uids = server.chosen(command.arguments.partition(" ")[0])
            lines = [server.fetch_line(uid, command.arguments) for uid in uids]
            await peer.send(*lines, command.tag.encode() + b" NO [EXPUNGEISSUED] some are gone")

        server.on["UID FETCH"] = partly
        server.on["NOOP"] = answering()
        assert await session.fetch_small(entries[1:]) == {2: RAW}


@pytest.mark.parametrize(
    "line",
    [
        b"* 1 FETCH (UID 1 BODY[] {3}\r\n" + RAW + b")",
        b"* 1 FETCH (UID 1 BODY[] (a b))",
        b"* 1 FETCH (UID 0 BODY[] {2}\r\nab)",
        b"* 1 FETCH (BODY[] {2}\r\nab",
    ],
)
async def test_a_malformed_answer_is_never_taken_for_a_mail(line: bytes) -> None:
    async with ScriptedImap({1: RAW}) as server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
        server.on["UID FETCH"] = answering(line)
        with pytest.raises(ImapError) as caught:
            await session.fetch_small(entries)
        assert caught.value.failure is Failure.PROTOCOL
        assert not session.usable


async def test_a_body_without_uid_or_with_a_strange_one_belongs_to_nobody() -> None:
    server = ScriptedImap({1: RAW})
    async with server, selected(options(server)) as session:
        entries = (await session.list_after(START)).entries
        strange = [b"* 1 FETCH (BODY[] {2}\r\nab)", b"* 2 FETCH (UID 5 BODY[] {2}\r\nab)"]
        server.on["UID FETCH"] = answering(*strange, server.fetch_line(1, "BODY.PEEK[]"))
        assert await session.fetch_small(entries) == {1: RAW}


@pytest.mark.parametrize("cap", [1, 7, 100])
async def test_pieces_that_the_server_caps_are_put_together(cap: int) -> None:
    raw = RAW * 20
    server = ScriptedImap({1: raw})

    async def capped(peer: Peer, command: ReceivedCommand) -> None:
        offset = int(command.arguments.partition("<")[2].partition(".")[0])
        content = raw[offset : offset + cap]
        head = f"* 1 FETCH (UID 1 BODY[]<{offset}> {{{len(content)}}}\r\n".encode()
        await peer.send(head + content + b")", command.tag.encode() + b" OK done")

    server.on["UID FETCH"] = capped
    async with server, selected(options(server)) as session:
        assert b"".join([piece async for piece in session.fetch_pieces(Uid(1), 1000)]) == raw


@pytest.mark.parametrize("size", [20, 4_000_000])
async def test_a_server_that_ignores_the_piece_asked_for_is_not_misread(size: int) -> None:
    raw = b"x" * size
    server = ScriptedImap({1: raw})

    async def whole(peer: Peer, command: ReceivedCommand) -> None:
        await peer.send(server.fetch_line(1, "RFC822.SIZE BODY.PEEK[]"), command.tag.encode() + b" OK done")

    server.on["UID FETCH"] = whole
    async with server, selected(options(server)) as session:
        if len(raw) < 1000:
            assert b"".join(await pieces(session)) == raw
        else:
            with pytest.raises(ImapError, match="part of a mail") as caught:
                await pieces(session)
            assert caught.value.failure is Failure.PROTOCOL


async def test_a_piece_from_another_place_than_asked_for_is_not_taken() -> None:
    raw = b"x" * 3000
    server = ScriptedImap({1: raw})

    async def stuck_at_the_start(peer: Peer, command: ReceivedCommand) -> None:
        head = f"* 1 FETCH (UID 1 RFC822.SIZE {len(raw)} BODY[]<0> {{1000}}\r\n".encode()
        await peer.send(head + raw[:1000] + b")", command.tag.encode() + b" OK done")

    server.on["UID FETCH"] = stuck_at_the_start
    async with server, selected(options(server)) as session:
        with pytest.raises(ImapError, match="part of a mail"):
            async for _ in session.fetch_pieces(Uid(1), 1000):
                pass


async def test_a_slow_line_is_not_taken_for_a_dead_one() -> None:
    raw = b"x" * 100_000

    async def slow(peer: Peer, command: ReceivedCommand) -> None:
        answer = peer.server.fetch_line(1, "BODY.PEEK[]") + b"\r\n"
        for start in range(0, len(answer), 10_000):
            await peer.send_raw(answer[start : start + 10_000])
            await asyncio.sleep(0.12)
        await peer.ok(command)

    async with ScriptedImap({1: raw}) as server, selected(options(server, command=0.5)) as session:
        entries = (await session.list_after(START)).entries
        server.on["UID FETCH"] = slow
        assert await session.fetch_small(entries) == {1: raw}


async def test_a_trickle_without_an_answer_is_taken_for_a_dead_line() -> None:
    async def trickling(peer: Peer, command: ReceivedCommand) -> None:
        while True:
            await peer.send(b"* OK Still here")
            await asyncio.sleep(0.05)

    async with ScriptedImap({1: RAW}, on={"NOOP": trickling}) as server:
        session = await open_session(options(server, command=0.4))
        await session.select("INBOX")
        with pytest.raises(ImapError) as caught:
            await asyncio.wait_for(session.poll(), 2)
        assert caught.value.failure is Failure.TIMEOUT
        await session.logout(1)


# --- the end


@pytest.mark.parametrize("fault", FAULTS)
async def test_logout_is_bounded_and_never_raises(fault: str) -> None:
    handler, _ = FAULTS[fault]
    async with ScriptedImap(on={"LOGOUT": handler}) as server:
        session = await open_session(options(server))
        await asyncio.wait_for(session.logout(0.2), 3)
        assert not session.usable

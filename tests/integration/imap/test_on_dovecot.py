from __future__ import annotations

import asyncio
import datetime as dt

import pytest

from ops_mail.core.ids import Uid
from ops_mail.core.mailbox import Security
from ops_mail.errors import Failure, ImapError
from ops_mail.imap import Expunged, IdleOutcome, ImapSession, Refused, open_session
from ops_mail.imap.listing import WINDOW
from tests.integration.imap.opening import options, selected
from tests.servers.dovecot import Dovecot

START = Uid(0)


def mail(number: int, size: int = 0) -> bytes:
    return b"Subject: mail %d\r\n\r\n" % number + b"x" * size + b"\r\n"


def hinted(session: ImapSession) -> bool:
    return session.hint_at is not None


def pushed(session: ImapSession) -> bool:
    return session.pushed_in_idle


def no_beat() -> None:
    return


async def test_a_folder_with_a_chinese_name_and_quotes(dovecot: Dovecot, user: str) -> None:
    dovecot.create_folder(user, '&U,BTFw- "2024" &- x')
    async with selected(options(dovecot, user=user), '台北 "2024" & x') as session:
        assert await session.append('台北 "2024" & x', mail(1)) == 1
        assert (await session.list_after(START)).entries[0].uid == 1
        assert '台北 "2024" & x' in await session.list_folders()


async def test_a_folder_opened_for_reading_can_be_watched_but_not_changed(dovecot: Dovecot, user: str) -> None:
    dovecot.append(user, "INBOX", mail(1))
    async with selected(options(dovecot, user=user)) as session:
        folder = await session.select("INBOX", read_only=True)
        assert (folder.exists, folder.read_only) == (1, True)
        assert (await session.list_after(START)).complete
        assert await session.idle(0.1, asyncio.Event(), no_beat) is IdleOutcome.TIMEOUT
        await session.store_flags([Uid(1)], [r"\Seen"])  # ignored
    assert r"\Seen" not in dovecot.contents(user, "INBOX")[1][1]


async def test_a_folder_that_is_missing_names_those_that_are_there(dovecot: Dovecot, user: str) -> None:
    dovecot.create_folder(user, "&U,BTFw-")
    session = await open_session(options(dovecot, user=user))
    with pytest.raises(ImapError, match=r"台北") as caught:
        await session.select("Nothing")
    assert caught.value.failure is Failure.FOLDER
    assert "OPS_MAIL_IMAP_FOLDER" in str(caught.value)
    assert not session.usable


async def test_a_folder_name_with_a_line_break_cannot_become_a_command(dovecot: Dovecot, user: str) -> None:
    session = await open_session(options(dovecot, user=user))
    with pytest.raises(ImapError) as caught:
        await session.select("INBOX\r\nx DELETE INBOX")
    assert caught.value.failure is Failure.FOLDER
    await session.logout(5)


async def test_the_listing_tells_uid_size_date_and_flags(dovecot: Dovecot, user: str) -> None:
    when = dt.datetime(2024, 2, 7, 10, 20, 30, tzinfo=dt.timezone(dt.timedelta(hours=8)))
    dovecot.append(user, "INBOX", mail(1), date=when, flags=[r"\Seen", "$Junk"])
    async with selected(options(dovecot, user=user)) as session:
        listing = await session.list_after(START)
    (entry,) = listing.entries
    assert (entry.uid, entry.size_bytes, entry.internal_date) == (1, len(mail(1)), when.astimezone(dt.UTC))
    assert {r"\Seen", "$Junk"} <= set(entry.flags)
    assert (listing.complete, listing.remaining_estimate) == (True, 0)


async def test_only_uids_after_the_last_one_are_listed(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", (mail(number) for number in range(3)))
    async with selected(options(dovecot, user=user)) as session:
        assert [entry.uid for entry in (await session.list_after(Uid(2))).entries] == [3]
        assert (await session.list_after(Uid(3))).entries == ()  # `4:*` gives the last mail: filtered
        assert (await session.list_after(Uid(2**32 - 1))).complete
        assert await session.highest_uid() == 3
        assert set(await session.list_uids([Uid(2), Uid(9)])) == {2}


async def test_an_empty_folder(dovecot: Dovecot, user: str) -> None:
    async with selected(options(dovecot, user=user)) as session:
        assert await session.highest_uid() is None
        assert (await session.list_after(START)).complete
        assert await session.list_uids([Uid(1)]) == {}
        assert await session.fetch_small([]) == {}


async def test_a_mail_that_came_without_any_push_is_listed(dovecot: Dovecot, user: str) -> None:
    async with selected(options(dovecot, user=user)) as session:
        dovecot.append(user, "INBOX", mail(1))
        assert [entry.uid for entry in (await session.list_after(START)).entries] == [1]
        dovecot.append(user, "INBOX", mail(2))
        assert await session.highest_uid() == 2


async def test_a_backlog_over_one_window_comes_in_parts_and_none_is_skipped(dovecot: Dovecot, user: str) -> None:
    uids = dovecot.append_many(user, "INBOX", (mail(number) for number in range(WINDOW + 1200)))
    gap = range(1000, 3500)
    dovecot.expunge(user, "INBOX", [uid for uid in uids if uid in gap])
    uids = dovecot.append_many(user, "INBOX", (mail(number) for number in range(2500)))
    expected = [*range(1, 1000), *range(3500, uids[-1] + 1)]
    found: list[int] = []
    async with selected(options(dovecot, user=user)) as session:
        assert session.exists > WINDOW
        while True:
            listing = await session.list_after(Uid(found[-1] if found else 0))
            found += [entry.uid for entry in listing.entries]
            assert listing.remaining_estimate == len(expected) - len(found)
            if listing.complete:
                break
    assert found == expected


async def test_bodies_come_back_to_the_last_bit(dovecot: Dovecot, user: str) -> None:
    raws = [
        b"",
        b"Subject: \xff\x00\xfe\r\n\r\nraw \x80 bytes) {5}\r\n* 1 EXISTS\r\nA1 OK done\r\n",
        mail(1, 300_000),
        b"no header at all",
        b"(((\r\n\r\n" + bytes(range(1, 256)).replace(b"\r", b"").replace(b"\n", b"") + b"\r\n",
    ]
    uids = [dovecot.append(user, "INBOX", raw) for raw in raws if raw]
    stored = {uid: raw for uid, (raw, _) in dovecot.contents(user, "INBOX").items()}
    async with selected(options(dovecot, user=user)) as session:
        entries = (await session.list_after(START)).entries
        assert await session.fetch_small(entries) == stored
        for uid in map(Uid, uids):
            for piece_bytes in (7, 1000, 1 << 20):
                if len(stored[uid]) / piece_bytes < 200:
                    pieces = [piece async for piece in session.fetch_pieces(uid, piece_bytes)]
                    assert b"".join(pieces) == stored[uid]
                    assert all(len(piece) == piece_bytes for piece in pieces[:-1])
            header = await session.fetch_header(uid, 5)
            assert header is not None
            assert stored[uid].startswith(header)
    after = dovecot.contents(user, "INBOX")
    assert not any(r"\Seen" in flags for _, flags in after.values())  # BODY.PEEK changes nothing


@pytest.mark.parametrize("storage", ["sdbox", "mdbox"])
async def test_a_mail_that_is_gone_is_missing_and_the_session_goes_on(user: str, storage: str) -> None:
    with Dovecot(storage=storage) as dovecot:
        dovecot.append_many(user, "INBOX", [mail(1), mail(2), mail(3)])
        async with selected(options(dovecot, user=user)) as session:
            entries = (await session.list_after(START)).entries
            dovecot.expunge(user, "INBOX", [2])
            if storage == "mdbox":  # still gives it until this client has been told
                assert set(await session.fetch_small(entries)) == {1, 2, 3}
            assert set(await session.fetch_small(entries)) == {1, 3}
            with pytest.raises(Expunged):
                await anext(session.fetch_pieces(Uid(2)))
            assert await session.fetch_header(Uid(2), 100) is None
            assert set(await session.fetch_small(entries)) == {1, 3}


async def test_a_mail_that_goes_between_two_pieces_is_expunged_not_cut_short(dovecot: Dovecot, user: str) -> None:
    dovecot.append(user, "INBOX", mail(1, 5000))
    async with selected(options(dovecot, user=user)) as session:
        pieces = session.fetch_pieces(Uid(1), 1000)
        assert len(await anext(pieces)) == 1000
        dovecot.expunge(user, "INBOX", [1])
        with pytest.raises(Expunged):
            async for _ in pieces:
                pass
        assert session.usable


@pytest.mark.parametrize("security", list(Security))
async def test_a_push_ends_idle(dovecot: Dovecot, user: str, security: Security) -> None:
    port = dovecot.tls_port if security is Security.TLS else dovecot.port
    chosen = options(dovecot, user=user, security=security, port=port, ca_file=dovecot.ca_file)
    async with selected(chosen) as session:
        idling = asyncio.create_task(session.idle(30, asyncio.Event(), no_beat))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(dovecot.append, user, "INBOX", mail(1))
        assert await idling is IdleOutcome.PUSH
        assert hinted(session)
        assert pushed(session)
        assert await session.idle(30, asyncio.Event(), no_beat) is IdleOutcome.PUSH  # at once: the hint still stands
        session.clear_hint()
        assert not hinted(session)
        assert not pushed(session)
        assert len((await session.list_after(START)).entries) == 1


async def test_idle_ends_when_the_time_is_over_and_beats_meanwhile(dovecot: Dovecot, user: str) -> None:
    beats = 0

    def beat() -> None:
        nonlocal beats
        beats += 1

    async with selected(options(dovecot, user=user)) as session:
        assert await session.idle(0.2, asyncio.Event(), beat) is IdleOutcome.TIMEOUT
        assert beats
        assert session.can_idle
        assert await session.idle(0.2, asyncio.Event(), beat) is IdleOutcome.TIMEOUT


async def test_the_callers_event_ends_idle(dovecot: Dovecot, user: str) -> None:
    wake = asyncio.Event()
    async with selected(options(dovecot, user=user)) as session:
        asyncio.get_running_loop().call_later(0.1, wake.set)
        assert await session.idle(30, wake, no_beat) is IdleOutcome.WOKEN
        assert await session.idle(30, wake, no_beat) is IdleOutcome.WOKEN
        assert await session.highest_uid() is None


async def test_poll_finds_a_hint(dovecot: Dovecot, user: str) -> None:
    async with selected(options(dovecot, user=user)) as session:
        await session.poll()
        assert not hinted(session)
        dovecot.append(user, "INBOX", mail(1))
        await session.poll()
        assert hinted(session)
        assert not pushed(session)


async def test_flags_are_added(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", [mail(1), mail(2)])
    async with selected(options(dovecot, user=user)) as session:
        await session.store_flags([Uid(1), Uid(77)], [r"\Seen"])
        assert session.hint_at is None
    contents = dovecot.contents(user, "INBOX")
    assert r"\Seen" in contents[1][1]
    assert r"\Seen" not in contents[2][1]


async def test_mails_are_moved(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", [mail(1), mail(2)])
    dovecot.create_folder(user, "&U,BTFw-")
    async with selected(options(dovecot, user=user)) as session:
        await session.move([Uid(1)], "台北")
        await session.move([Uid(1)], "台北")  # again: it is gone, nothing happens
    assert set(dovecot.contents(user, "INBOX")) == {2}
    assert len(dovecot.contents(user, "&U,BTFw-")) == 1


async def test_a_move_to_a_missing_folder_is_refused_and_the_session_goes_on(dovecot: Dovecot, user: str) -> None:
    dovecot.append(user, "INBOX", mail(1))
    async with selected(options(dovecot, user=user)) as session:
        with pytest.raises(Refused, match="OPS_MAIL_IMAP_AFTER_LANDING"):
            await session.move([Uid(1)], "Nowhere")
        assert await session.highest_uid() == 1


async def test_deleting_takes_these_mails_and_nobody_elses(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", [mail(1), mail(2), mail(3)])
    dovecot.set_flags(user, "INBOX", 3, [r"\Deleted"])  # somebody else's mark
    async with selected(options(dovecot, user=user)) as session:
        await session.delete([Uid(1)])
    assert set(dovecot.contents(user, "INBOX")) == {2, 3}


async def test_without_move_mails_are_copied_and_removed(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", [mail(1), mail(2), mail(3)])
    dovecot.set_flags(user, "INBOX", 3, [r"\Deleted"])
    dovecot.create_folder(user, "Archive")
    async with selected(options(dovecot, user=user)) as session:
        session.capabilities = session.capabilities - {"MOVE"}
        await session.move([Uid(1)], "Archive")
    assert set(dovecot.contents(user, "INBOX")) == {2, 3}
    assert len(dovecot.contents(user, "Archive")) == 1


async def test_without_uidplus_mails_are_marked_and_stay(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", [mail(1), mail(2)])
    async with selected(options(dovecot, user=user)) as session:
        session.capabilities = session.capabilities - {"UIDPLUS"}
        await session.delete([Uid(1)])
    contents = dovecot.contents(user, "INBOX")
    assert set(contents) == {1, 2}
    assert r"\Deleted" in contents[1][1]


async def test_a_mail_goes_in_and_out(dovecot: Dovecot, user: str) -> None:
    async with selected(options(dovecot, user=user)) as session:
        raw = mail(1, 200_000)
        uid = await session.append("INBOX", raw)
        assert uid is not None
        entry = (await session.list_uids([uid]))[uid]
        assert (await session.fetch_small([entry]))[uid] == raw
        await session.delete([uid])
        assert await session.highest_uid() is None
        with pytest.raises(Refused):
            await session.append("Nowhere", raw)
        assert session.usable


async def test_a_folder_made_anew_has_another_uidvalidity(dovecot: Dovecot, user: str) -> None:
    dovecot.create_folder(user, "Box")
    async with selected(options(dovecot, user=user), "Box") as session:
        before = (await session.select("Box")).uid_validity
    dovecot.delete_folder(user, "Box")
    await asyncio.sleep(1.1)  # Dovecot's UIDVALIDITY is a time in seconds
    dovecot.create_folder(user, "Box")
    session = await open_session(options(dovecot, user=user))
    assert (await session.select("Box")).uid_validity != before
    await session.logout(5)


async def test_a_storm_of_expunges_during_a_fetch_is_survived(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", (mail(number) for number in range(3000)))
    async with selected(options(dovecot, user=user)) as session:
        await asyncio.to_thread(dovecot.expunge, user, "INBOX", range(1, 2901))
        assert [entry.uid for entry in (await session.list_after(START)).entries] == list(range(2901, 3001))
        assert session.exists == 100
        assert session.hint_at is None


async def test_a_server_that_dies_in_idle_is_noticed_at_once() -> None:
    with Dovecot() as own:
        session = await open_session(options(own))
        await session.select("INBOX")
        idling = asyncio.create_task(session.idle(60, asyncio.Event(), no_beat))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(own.kill)
        with pytest.raises(ImapError) as caught:
            await idling
        assert caught.value.failure in (Failure.LOST, Failure.BYE)
        await session.logout(1)  # never raises
        await asyncio.to_thread(own.restart)
        again = await open_session(options(own))
        await again.logout(5)


async def test_logout_of_a_lost_session_does_not_raise(dovecot: Dovecot, user: str) -> None:
    session = await open_session(options(dovecot, user=user))
    session.abort()
    session.abort()
    await session.logout(1)
    with pytest.raises(ImapError) as caught:
        await session.select("INBOX")
    assert caught.value.failure is Failure.LOST


async def test_a_cancelled_command_makes_the_session_unusable(dovecot: Dovecot, user: str) -> None:
    dovecot.append_many(user, "INBOX", [mail(number, 20_000) for number in range(100)])
    async with selected(options(dovecot, user=user)) as session:
        entries = (await session.list_after(START)).entries
        fetching = asyncio.create_task(session.fetch_small(entries))
        await asyncio.sleep(0)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        assert not session.usable
        with pytest.raises(ImapError):
            await session.highest_uid()

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Address, MessageStatus, ParsedMail
from ops_mail.errors import Fenced, StoreRefused, StoreUnavailable
from ops_mail.store import LandingResult, Store
from ops_mail.store.schema import attachment, blob, message
from tests.integration.store.conftest import Lead
from tests.integration.store.samples import KEY, NOW, OTHER, RECEIVED, V1, V2, batch, mail, sha256, without_bytes


async def rows(store: Store, table: sa.Table = message) -> list[sa.Row[tuple[object, ...]]]:
    async with store.engine.connect() as connection:
        return list(await connection.execute(sa.select(table).order_by(*table.primary_key)))


async def test_a_batch_lands_whole(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    parsed = ParsedMail(
        message_id="<a@b>",
        subject="Grüße 😀",
        from_name="Ä",
        from_addr="a@example.org",
        to_addrs=(Address("To", "to@example.org"),),
        sent_at=datetime(2024, 5, 1, 11, 59, 58, tzinfo=UTC),
        text_body="hello",
        html_body="<p>hello</p>",
        headers=(("Subject", "Grüße 😀"), ("X", "")),
        defects=("one", "two:x"),
    )
    result = await store.land(lease, batch([mail(3), mail(7, parsed=parsed, files=[b"one", b"two", b"one"])], 9))
    assert result == LandingResult(landed=2, rekeyed=0, duplicates=0)
    assert result.new_uids == {3, 7}
    _, row = await rows(store)
    assert (row.mailbox, row.folder, row.uid_validity, row.uid) == (KEY.mailbox, KEY.folder, V1, 7)
    assert (row.subject, row.from_name, row.message_id) == ("Grüße 😀", "Ä", "<a@b>")
    assert (row.to_addrs, row.cc_addrs) == ([{"name": "To", "addr": "to@example.org"}], [])
    assert (row.sent_at, row.received_at) == (parsed.sent_at, RECEIVED)
    assert (row.text_body, row.html_body) == ("hello", "<p>hello</p>")
    assert row.headers == [["Subject", "Grüße 😀"], ["X", ""]]
    assert (row.flags, row.defects, row.status) == (["\\Seen"], ["one", "two:x"], "landed")
    assert row.attempts == 0
    assert row.next_attempt_at is None
    assert [one.filename for one in await rows(store, attachment)] == ["file-1.bin", "file-2.bin", "file-3.bin"]
    assert [await store.read_blob(one.sha256) for one in await rows(store, attachment)] == [b"one", b"two", b"one"]
    assert sha256(await store.read_blob(row.raw_sha256)) == row.raw_sha256
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert (cursor.last_uid, cursor.uid_validity, cursor.last_sync_at) == (9, V1, NOW)
    counts = await store.count_by_status()
    assert counts[MessageStatus.LANDED] == 2
    assert counts[MessageStatus.DEAD] == 0


async def test_what_is_there_already_is_not_landed_again(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([mail(1), mail(2)]))
    assert await store.land(lease, batch([mail(1), mail(2), mail(3)])) == LandingResult(1, 0, 2)
    assert [row.uid for row in await rows(store)] == [1, 2, 3]


async def test_the_cursor_moves_without_mails_and_never_back(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([], 50))
    await store.land(lease, batch([mail(20)], 20))
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert cursor.last_uid == 50


async def test_a_batch_out_of_order_is_a_bug_of_the_caller(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    for wrong in ([mail(2), mail(1)], [mail(1), mail(1)]):
        with pytest.raises(ValueError, match="ascend"):
            await store.land(lease, batch(wrong))
    with pytest.raises(ValueError, match="ascend"):
        await store.land(lease, batch([mail(5)], 4))


async def test_mails_of_another_numbering_than_the_cursors_are_not_landed(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    with pytest.raises(StoreUnavailable, match="UIDVALIDITY"):
        await store.land(lease, batch([mail(1)], uid_validity=V2))
    assert await rows(store) == []


async def test_a_fenced_holder_commits_nothing_more(store: Store, lead: Lead) -> None:
    old = await lead(store)
    await store.land(old, batch([mail(1)]))
    async with store.engine.begin() as connection:  # another instance has taken the next epoch
        await connection.execute(sa.text("UPDATE ops_mail_cursor SET epoch = epoch + 1"))
    with pytest.raises(Fenced):
        await store.land(old, batch([mail(2)]))
    with pytest.raises(Fenced):
        await store.land(old, batch([], 9))
    with pytest.raises(Fenced):
        await store.begin_numbering(old, V1, V2)
    with pytest.raises(Fenced):
        await store.retire_numbering(old)
    with pytest.raises(Fenced):
        await store.start_cursor(old, V1, Uid(0), Uid(0))
    assert [(row.uid_validity, row.uid) for row in await rows(store)] == [(V1, 1)]
    assert [one.sha256 for one in await rows(store, blob)] == [mail(1).raw_sha256]
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert (cursor.uid_validity, cursor.last_uid) == (V1, 1)


async def test_refused_data_leaves_nothing_and_the_next_batch_lands(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    good = mail(1)
    absurd = replace(mail(2), listed=replace(mail(2).listed, size_bytes=2**70))
    with pytest.raises(StoreRefused):
        await store.land(lease, batch([good, absurd]))
    assert await rows(store) == []
    assert await rows(store, blob) == []
    assert (await store.land(lease, batch([good]))).landed == 1


async def test_folders_are_apart(store: Store, lead: Lead) -> None:
    one, two = await lead(store, KEY), await lead(store, OTHER)
    assert (await store.land(one, batch([mail(1)]))).landed == 1
    assert (await store.land(two, batch([mail(1)]))).landed == 1
    assert {(row.mailbox, row.uid) for row in await rows(store)} == {(KEY.mailbox, 1), (OTHER.mailbox, 1)}
    assert len(await rows(store, blob)) == 1


async def test_a_mail_without_bytes_lands(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([without_bytes(1)]))
    (row,) = await rows(store)
    assert (row.raw_sha256, row.status, row.last_error) == (None, "quarantined", "no bytes")


async def test_anchors_and_known_uids(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([mail(1), mail(5), mail(9)]))
    anchor = await store.anchor(KEY, V1, Uid(5))
    assert anchor is not None
    assert (anchor.received_at, anchor.size_bytes) == (RECEIVED, mail(5).listed.size_bytes)
    assert await store.anchor(KEY, V1, Uid(6)) is None
    assert await store.known_uids(KEY, V1, Uid(2), Uid(9)) == {5, 9}
    with pytest.raises(ValueError, match="at most"):
        await store.known_uids(KEY, V1, Uid(1), Uid(100_001))

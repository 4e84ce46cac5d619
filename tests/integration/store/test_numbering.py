from __future__ import annotations

import pytest
import sqlalchemy as sa

from ops_mail.core.ids import Uid
from ops_mail.store import LandingResult, Store, numbering
from ops_mail.store.schema import audit, message
from tests.integration.store.conftest import Lead
from tests.integration.store.samples import KEY, V1, V2, batch, mail, moved_to, without_bytes


async def keys(store: Store) -> dict[int, tuple[int, int]]:
    async with store.engine.connect() as connection:
        found = await connection.execute(sa.select(message.c.id, message.c.uid_validity, message.c.uid))
        return {row.id: (row.uid_validity, row.uid) for row in found}


async def audits(store: Store) -> list[dict[str, object]]:
    async with store.engine.connect() as connection:
        found = await connection.execute(sa.select(audit).order_by(audit.c.id))
        return [{"action": row.action, "mailbox": row.mailbox, **row.detail} for row in found]


async def test_mails_under_a_new_uidvalidity_keep_their_rows(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([mail(1), mail(2), without_bytes(3)]))
    before = await keys(store)
    await store.begin_numbering(lease, V1, V2)
    await store.begin_numbering(lease, V1, V2)  # the answer was lost: once more
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert (cursor.uid_validity, cursor.last_uid, cursor.renumbered) == (V2, 0, True)

    moved = [mail(11, raw=b"new"), *(moved_to(one, uid) for one, uid in ((mail(1), 12), (mail(2), 13)))]
    assert await store.land(lease, batch(moved, uid_validity=V2)) == LandingResult(1, 2, 0)
    assert await store.land(lease, batch([moved_to(without_bytes(3), 14)], uid_validity=V2)) == LandingResult(0, 1, 0)
    after = await keys(store)
    assert {after[id] for id in before} == {(V2, 12), (V2, 13), (V2, 14)}
    assert len(after) == 4
    (told,) = await audits(store)
    assert (told["action"], told["mailbox"], told["folder"]) == ("rekeyed", KEY.mailbox, KEY.folder)
    assert (told["old"], told["new"], told["rows_before"], told["rekeyed"]) == (V1, V2, 3, 3)


async def test_twins_are_matched_one_to_one_and_in_order(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    twins = [mail(uid, raw=b"twin") for uid in (1, 2, 3)]
    await store.land(lease, batch(twins))
    before = await keys(store)
    await store.begin_numbering(lease, V1, V2)
    assert await store.land(lease, batch([mail(uid, raw=b"twin") for uid in (5, 6)], uid_validity=V2)) == LandingResult(
        0, 2, 0
    )
    assert await store.land(lease, batch([mail(uid, raw=b"twin") for uid in (7, 8)], uid_validity=V2)) == LandingResult(
        1, 1, 0
    )
    after = await keys(store)
    assert [after[id] for id in sorted(before)] == [(V2, 5), (V2, 6), (V2, 7)]
    assert sorted(after.values()) == [(V2, 5), (V2, 6), (V2, 7), (V2, 8)]


async def test_the_same_content_received_at_another_time_is_another_mail(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([mail(1, raw=b"same")]))
    await store.begin_numbering(lease, V1, V2)
    later = mail(1, raw=b"same", received=mail(1).listed.internal_date.replace(hour=13))
    assert await store.land(lease, batch([later], uid_validity=V2)) == LandingResult(1, 0, 0)


async def test_uids_that_start_over_do_not_hide_new_mails(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([mail(uid) for uid in range(1, 8)]))
    before = await keys(store)
    assert await store.retire_numbering(lease) == 7
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert (cursor.uid_validity, cursor.last_uid, cursor.renumbered) == (V1, 0, True)
    again = [mail(1, raw=b"quite new"), *(moved_to(mail(uid), uid - 2) for uid in range(4, 8))]
    assert await store.land(lease, batch(again)) == LandingResult(1, 4, 0)
    after = await keys(store)
    assert [after[id] for id in sorted(before)][3:] == [(V1, 2), (V1, 3), (V1, 4), (V1, 5)]
    assert all(validity < 0 for validity, _ in [after[id] for id in sorted(before)][:3])
    (told,) = await audits(store)
    assert (told["reason"], told["rows_before"], told["rekeyed"]) == ("uids_went_backwards", 7, 4)


async def test_retiring_goes_on_where_it_was_cut_off(store: Store, lead: Lead, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = await lead(store)
    await store.land(lease, batch([mail(uid) for uid in range(1, 8)]))
    monkeypatch.setattr(numbering, "MOVE_ROWS", 2)

    async def crash(*_: object) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(numbering, "_restart", crash)
        with pytest.raises(RuntimeError, match="killed"):
            await store.retire_numbering(lease)
    cursor = await store.read_cursor(KEY)
    assert cursor is not None
    assert cursor.last_uid == 7
    assert await store.anchor(KEY, V1, Uid(7)) is not None  # so the next start sees what this one saw
    await store.retire_numbering(lease)
    assert await store.land(lease, batch([moved_to(mail(uid), uid) for uid in range(1, 8)])) == LandingResult(0, 7, 0)
    assert set((await keys(store)).values()) == {(V1, uid) for uid in range(1, 8)}


async def test_a_uidvalidity_that_comes_back_may_mean_other_mails(store: Store, lead: Lead) -> None:
    lease = await lead(store)
    await store.land(lease, batch([mail(1, raw=b"first"), mail(2, raw=b"second")]))
    await store.begin_numbering(lease, V1, V2)
    await store.land(lease, batch([mail(1, raw=b"third")], uid_validity=V2))
    await store.begin_numbering(lease, V2, V1)
    result = await store.land(lease, batch([mail(1, raw=b"fourth"), mail(2, raw=b"second"), mail(3, raw=b"third")]))
    assert result == LandingResult(1, 2, 0)

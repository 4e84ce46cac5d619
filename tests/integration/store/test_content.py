"""What mails contain: nothing a strict server would refuse, nothing cut without a note, nothing changed."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
import zstandard

from ops_mail.core.mail import Address, Blob, ParsedMail, PreparedMail
from ops_mail.errors import StoreRefused
from ops_mail.store import Store
from ops_mail.store.schema import attachment, blob_chunk, message
from tests.integration.store.conftest import Lead
from tests.integration.store.samples import KEY, OTHER, batch, blob, file_blob, mail, sha256

MIB = 1024 * 1024


async def only_row(store: Store) -> sa.Row[tuple[object, ...]]:
    async with store.engine.connect() as connection:
        return (await connection.execute(sa.select(message))).one()


async def test_hostile_texts(store: Store, lead: Lead) -> None:
    lone, everything = (
        "a\ud800b",
        "nul \0 quote ' \" back \\ percent %s %% colon :x astral 😀 cr \r\n tab \t \u2028 \x1a ﷽",
    )
    parsed = ParsedMail(
        message_id="<" + "m" * 2000 + ">",
        subject=everything + lone + "é" * 70_000,
        from_name="n" * 1000,
        from_addr=lone,
        to_addrs=tuple(Address(everything, f"{n}@example.org") for n in range(20_000)),
        cc_addrs=(Address(lone, everything),),
        reply_to="r" * 5000,
        return_path="p" * 5000,
        auth_results="ä" * 100_000,
        sent_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        text_body=everything + lone,
        html_body=everything * 3,
        headers=(("X-Long", "h" * 65_536), (everything, everything), (lone, lone)),
        defects=("d" * 5000, *(f"defect:{n}" for n in range(500))),
    )
    files = [
        replace(one, filename="f" * 400 + ".pdf", content_id=lone, content_type="t" * 300, original_filename=lone)
        for one in mail(1, files=[b"x"]).attachments
    ]
    hostile = replace(mail(1, parsed=parsed, files=[b"x"]), attachments=tuple(files), error="e" * 10_000 + lone)
    hostile = replace(hostile, listed=replace(hostile.listed, flags=(everything, lone)))
    await store.land(await lead(store), batch([hostile]))
    row = await only_row(store)
    assert row.text_body == everything + "a\N{REPLACEMENT CHARACTER}b"
    assert row.html_body == everything * 3
    assert row.subject.startswith(everything)
    assert len(row.subject.encode()) <= 65_535
    assert row.headers[0] == ["X-Long", "h" * 65_536]
    assert row.headers[1] == [everything, everything]
    assert row.cc_addrs == [{"name": "a\N{REPLACEMENT CHARACTER}b", "addr": everything}]
    assert row.flags[0] == everything
    assert 5000 < len(row.to_addrs) < 20_000
    assert row.sent_at is None
    cut = {"message_id", "subject", "from_name", "to_addrs", "reply_to", "return_path", "auth_results", "last_error"}
    assert {f"truncated:{column}" for column in cut} <= set(row.defects)
    assert {f"surrogate:{column}" for column in ("subject", "from_addr", "cc_addrs", "text_body")} <= set(row.defects)
    assert {"out_of_range:sent_at", "truncated:defects", "truncated:attachment.filename"} <= set(row.defects)
    async with store.engine.connect() as connection:
        (file,) = (await connection.execute(sa.select(attachment))).all()
    assert (len(file.filename), file.content_id) == (255, "a\N{REPLACEMENT CHARACTER}b")


@pytest.mark.parametrize("character", ["x", "ü", "😀", "'"])
async def test_a_long_text_is_kept_whole(store: Store, lead: Lead, character: str) -> None:
    size = 10 * MIB // len(character.encode())
    text = "".join(random.Random(1).choices(["\n", character, character, character], k=size))
    await store.land(await lead(store), batch([mail(1, parsed=ParsedMail(text_body=text, html_body="<p>short"))]))
    row = await only_row(store)
    assert row.text_body == text
    assert row.html_body == "<p>short"
    assert row.defects == []


async def test_texts_beyond_what_a_row_can_hold_are_cut_with_a_note(store: Store, lead: Lead) -> None:
    parsed = ParsedMail(text_body="t" * (30 * MIB), html_body="ü" * (15 * MIB))
    await store.land(await lead(store), batch([mail(1, parsed=parsed)]))
    row = await only_row(store)
    assert set(row.defects) == {"truncated:text_body", "truncated:html_body"}
    assert len(row.text_body) >= 5 * MIB
    assert len(row.html_body) >= 2.5 * MIB
    assert set(row.html_body) == {"ü"}


async def test_dates_at_the_edges(store: Store, lead: Lead) -> None:
    edges = [datetime(1000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
    mails = [mail(uid, parsed=ParsedMail(sent_at=edge)) for uid, edge in enumerate(edges, start=1)]
    late = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
    mails.append(mail(3, parsed=ParsedMail(sent_at=late), received=datetime(970, 1, 1, tzinfo=UTC)))
    await store.land(await lead(store), batch(mails))
    async with store.engine.connect() as connection:
        rows = (await connection.execute(sa.select(message).order_by(message.c.uid))).all()
    assert [row.sent_at for row in rows] == [*edges, None]
    assert rows[2].received_at is None
    assert rows[2].defects == ["out_of_range:sent_at", "out_of_range:received_at"]


async def test_large_content_from_a_file_and_from_memory(store: Store, lead: Lead, tmp_path: Path) -> None:
    noise = random.Random(2)
    big, middle, zeros = noise.randbytes(3 * MIB + 17), noise.randbytes(700_000), bytes(20 * MIB)
    contents = [big, middle, zeros, b""]
    one = mail(1, raw=big, files=[middle, zeros, b""])
    blobs = (
        file_blob(big, tmp_path / "big"),
        blob(middle, "identity"),
        file_blob(zeros, tmp_path / "zeros"),
        blob(b""),
    )
    await store.land(await lead(store), batch([replace(one, blobs=blobs)]))
    for content in contents:
        pieces = [piece async for piece in store.open_blob(sha256(content))]
        assert b"".join(pieces) == content
        assert max(map(len, pieces), default=0) < 9 * MIB
    async with store.engine.connect() as connection:
        sizes = (await connection.execute(sa.select(sa.func.length(blob_chunk.c.data)))).scalars().all()
    assert max(sizes) <= 256 * 1024


async def test_content_is_checked_when_it_is_read(store: Store, lead: Lead) -> None:
    await store.land(await lead(store), batch([mail(1, raw=b"precious")]))
    with pytest.raises(StoreRefused, match="no content"):
        await store.read_blob("0" * 64)
    async with store.engine.begin() as connection:
        await connection.execute(sa.update(blob_chunk).values(data=zstandard.compress(b"changed!")))
    with pytest.raises(StoreRefused, match="damaged"):
        await store.read_blob(sha256(b"precious"))
    async with store.engine.begin() as connection:
        await connection.execute(sa.update(blob_chunk).values(data=b"no zstd at all"))
    with pytest.raises(StoreRefused, match="decoded"):
        await store.read_blob(sha256(b"precious"))


async def test_the_same_content_landed_from_two_sides_at_once(store: Store, lead: Lead) -> None:
    leases = [await lead(store, KEY), await lead(store, OTHER)]
    for round_ in range(6):
        shared = [b"%d shared %d" % (round_, n) for n in range(30)]

        def side(number: int, shared: list[bytes] = shared, round_: int = round_) -> list[PreparedMail]:
            order = random.Random(round_ * 2 + number).sample(shared, len(shared))
            return [
                mail(round_ * 100 + n + 1, raw=b"%d" % number + content, files=[content])
                for n, content in enumerate(order)
            ]

        await asyncio.gather(*(store.land(lease, batch(side(n))) for n, lease in enumerate(leases)))
        for content in shared:
            assert await store.read_blob(sha256(content)) == content


async def test_content_with_the_same_name_twice_in_a_batch(store: Store, lead: Lead) -> None:
    twice = replace(mail(1, raw=b"x"), blobs=(blob(b"x"), blob(b"x")))
    await store.land(await lead(store), batch([twice, mail(2, raw=b"x")]))
    assert await store.read_blob(sha256(b"x")) == b"x"


async def test_an_unknown_encoding_is_told(store: Store, lead: Lead) -> None:
    strange = Blob(sha256(b"x"), 1, "brotli", (b"x",))
    await store.land(await lead(store), batch([replace(mail(1, raw=b"x"), blobs=(strange,))]))
    with pytest.raises(StoreRefused, match="brotli"):
        await store.read_blob(sha256(b"x"))

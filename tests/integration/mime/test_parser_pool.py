"""The parsing processes: real children, really killed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Blob, Listed, MessageStatus, RawMail
from ops_mail.mime.pool import ParserPool
from ops_mail.mime.prepare import CHUNK_BYTES, PrepareLimits

DAY = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = b"From: Ann <ann@example.org>\r\nSubject: =?utf-8?q?gr=C3=BCn?=\r\nMessage-ID: <1@x>\r\n\r\nhello\r\n"


def raw(content: bytes | Path, uid: int = 1, *, oversize: bool = False) -> RawMail:
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    return RawMail(Listed(Uid(uid), size, DAY, ()), content, oversize)


def plain(blob: Blob) -> bytes:
    encoded = blob.chunks.read_bytes() if isinstance(blob.chunks, Path) else b"".join(blob.chunks)
    return zstandard.ZstdDecompressor().decompressobj().decompress(encoded)


def with_attachment(payload: bytes) -> bytes:
    return (
        b"From: a@example.org\r\nSubject: file\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nsee file\r\n'
        b"--b\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=x.bin\r\n"
        b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.encodebytes(payload) + b"\r\n--b--\r\n"
    )


@pytest.fixture
async def pool() -> AsyncIterator[ParserPool]:
    pool = ParserPool(max_message_bytes=52_428_800, workers=1)
    yield pool
    await pool.close()


async def test_mails_come_back_in_order_parsed_hashed_and_compressed(pool: ParserPool, tmp_path: Path) -> None:
    contents = [SMALL.replace(b"hello", b"mail %d" % number) for number in range(50)]
    prepared = await pool.prepare([raw(content, uid) for uid, content in enumerate(contents, 1)], tmp_path)
    assert [mail.listed.uid for mail in prepared] == list(range(1, 51))
    for mail, content in zip(prepared, contents, strict=True):
        assert mail.status is MessageStatus.LANDED
        assert mail.mail.subject == "grün"
        assert mail.raw_sha256 == hashlib.sha256(content).hexdigest() == mail.blobs[0].sha256
        assert mail.raw_size_bytes == len(content)
        assert plain(mail.blobs[0]) == content


async def test_a_large_mail_goes_through_files_in_the_spool(pool: ParserPool, tmp_path: Path) -> None:
    payload = os.urandom(3_000_000)
    content = with_attachment(payload)
    path = tmp_path / "raw"
    path.write_bytes(content)
    (mail,) = await pool.prepare([raw(path)], tmp_path)
    whole, attachment = mail.blobs
    assert isinstance(whole.chunks, Path)
    assert isinstance(attachment.chunks, Path)
    assert plain(whole) == content
    assert plain(attachment) == payload
    assert mail.attachments[0].sha256 == hashlib.sha256(payload).hexdigest()
    assert mail.attachments[0].size_bytes == len(payload)


async def test_small_contents_are_cut_into_chunks(pool: ParserPool, tmp_path: Path) -> None:
    payload = os.urandom(700_000)
    (mail,) = await pool.prepare([raw(with_attachment(payload))], tmp_path)
    chunks = mail.blobs[1].chunks
    assert isinstance(chunks, tuple)
    assert [len(chunk) for chunk in chunks[:-1]] == [CHUNK_BYTES] * 2
    assert plain(mail.blobs[1]) == payload


async def test_the_same_content_twice_is_one_blob(pool: ParserPool, tmp_path: Path) -> None:
    content = with_attachment(b"same").replace(
        b"--b--", b"--b\r\nContent-Disposition: attachment; filename=y\r\n\r\nsame\r\n--b--"
    )
    (mail,) = await pool.prepare([raw(content)], tmp_path)
    assert len(mail.attachments) == 2
    assert len(mail.blobs) == 2


async def test_a_header_alone_is_oversize_and_still_has_its_fields(pool: ParserPool, tmp_path: Path) -> None:
    header = SMALL.split(b"\r\n\r\n")[0] + b"\r\n\r\n"
    (mail,) = await pool.prepare([raw(header, oversize=True)], tmp_path)
    assert mail.status is MessageStatus.OVERSIZE
    assert mail.mail.subject == "grün"
    assert plain(mail.blobs[0]) == header


async def test_a_mail_over_its_time_is_quarantined_with_header_and_raw_bytes_kept(tmp_path: Path) -> None:
    pool = ParserPool(
        max_message_bytes=52_428_800, workers=1, limits=PrepareLimits(mail_seconds=0.002, header_seconds=2)
    )
    slow = SMALL + b"line with = signs & <tags> to look at\r\n" * 200_000
    slow_mail, small_mail = await pool.prepare([raw(slow, 1), raw(SMALL, 2)], tmp_path)
    await pool.close()
    assert slow_mail.status is MessageStatus.QUARANTINED
    assert slow_mail.error == "parsing took longer than 0.002 s"
    assert slow_mail.mail.subject == "grün"
    assert plain(slow_mail.blobs[0]) == slow
    assert small_mail.mail.message_id is not None


async def test_a_worker_that_is_killed_at_any_moment_costs_no_mail(pool: ParserPool, tmp_path: Path) -> None:
    content = with_attachment(os.urandom(4_000_000))
    path = tmp_path / "raw"
    path.write_bytes(content)
    for pause_seconds in (0.0, 0.05, 0.2):
        await pool.warm()
        process = pool._all[-1]._process
        assert process is not None
        work = asyncio.create_task(pool.prepare([raw(path, 1), raw(SMALL, 2)], tmp_path))
        await asyncio.sleep(pause_seconds)
        if process.returncode is None:
            os.kill(process.pid, signal.SIGKILL)
        first, second = await work
        assert first.raw_sha256 == hashlib.sha256(content).hexdigest()
        assert second.raw_sha256 == hashlib.sha256(SMALL).hexdigest()
        assert (first.status, second.status) == (MessageStatus.LANDED, MessageStatus.LANDED)


async def test_a_cancelled_job_leaves_no_answer_behind_for_the_next_one(pool: ParserPool, tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(with_attachment(os.urandom(4_000_000)))
    work = asyncio.create_task(pool.prepare([raw(path, 1)], tmp_path))
    await asyncio.sleep(0.05)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    (mail,) = await pool.prepare([raw(SMALL, 7)], tmp_path)
    assert mail.listed.uid == 7


async def test_children_get_none_of_our_secrets(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_MAIL_IMAP_PASSWORD", "tell-nobody")
    await pool.warm()
    process = pool._all[-1]._process
    assert process is not None
    assert b"tell-nobody" not in Path(f"/proc/{process.pid}/environ").read_bytes()

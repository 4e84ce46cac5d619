"""Mails and batches for the store's tests, made as the preparing stage makes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import zstandard

from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import AttachmentRow, Blob, Listed, MessageStatus, ParsedMail, PreparedMail
from ops_mail.store import LandingBatch

KEY = FolderKey("post@example.org", "INBOX")
OTHER = FolderKey("sales@example.org", "INBOX")
V1, V2 = UidValidity(1700000001), UidValidity(1700000002)
RECEIVED = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
NOW = datetime(2024, 5, 2, 8, 30, 0, 123456, tzinfo=UTC)
PIECE = 256 * 1024


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def blob(content: bytes, encoding: str = "zstd") -> Blob:
    encoded = zstandard.compress(content) if encoding == "zstd" else content
    chunks = tuple(encoded[at : at + PIECE] for at in range(0, len(encoded), PIECE))
    return Blob(sha256(content), len(content), encoding, chunks)


def file_blob(content: bytes, path: Path) -> Blob:
    path.write_bytes(zstandard.compress(content))
    return Blob(sha256(content), len(content), "zstd", path)


def mail(
    uid: int,
    raw: bytes | None = None,
    parsed: ParsedMail | None = None,
    files: Sequence[bytes] = (),
    received: datetime = RECEIVED,
) -> PreparedMail:
    raw = b"Subject: %d\r\n\r\nmail %d" % (uid, uid) if raw is None else raw
    rows = tuple(
        AttachmentRow(
            position,
            f"file-{position}.bin",
            None,
            "application/octet-stream",
            "attachment",
            None,
            len(content),
            sha256(content),
        )
        for position, content in enumerate(files, start=1)
    )
    return PreparedMail(
        listed=Listed(Uid(uid), len(raw), received, ("\\Seen",)),
        mail=parsed or ParsedMail(subject=f"mail {uid}", text_body=f"text of {uid}"),
        raw_sha256=sha256(raw),
        raw_size_bytes=len(raw),
        attachments=rows,
        blobs=tuple({one.sha256: one for one in (blob(raw), *map(blob, files))}.values()),
        status=MessageStatus.LANDED,
    )


def without_bytes(uid: int) -> PreparedMail:
    bare = replace(mail(uid), raw_sha256=None, blobs=(), status=MessageStatus.QUARANTINED, error="no bytes")
    return replace(bare, listed=replace(bare.listed, size_bytes=77))


def batch(mails: Sequence[PreparedMail], advance_to: int | None = None, uid_validity: UidValidity = V1) -> LandingBatch:
    last = mails[-1].listed.uid if mails else 0
    return LandingBatch(uid_validity, tuple(mails), Uid(last if advance_to is None else advance_to), NOW)


def moved_to(one: PreparedMail, uid: int) -> PreparedMail:
    """The same mail under another UID."""
    return replace(one, listed=replace(one.listed, uid=Uid(uid)))

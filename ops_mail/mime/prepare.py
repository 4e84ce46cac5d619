"""Raw bytes into everything that a landing writes: record, hashes, compressed chunks. Runs in a worker process."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import zstandard

from ops_mail.core.mail import Attachment, AttachmentRow, Blob, MessageStatus, ParsedMail, PreparedMail, RawMail
from ops_mail.mime import parse_header_only, parse_mail
from ops_mail.mime.defects import Defect

CHUNK_BYTES = 256 * 1024
"""Rows of `ops_mail_blob_chunk`: small against every max_allowed_packet (1 MiB was MySQL's oldest default)."""

_IN_MEMORY_BYTES = 1024 * 1024
_ZSTD_LEVEL = 3  # zstd's own default: the best ratio that stays far faster than the network


class TimeLimitExceeded(BaseException):
    """Raised into a parse that took too long. Not an `Exception`, so that no handler in between swallows it."""


class Alarm(Protocol):
    """Gives a context that raises `TimeLimitExceeded` inside itself when the seconds are over."""

    def __call__(self, seconds: float) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class PrepareLimits:
    """`mail_seconds` is the time one mail may take to parse; `header_seconds` the same for its header alone."""

    mail_seconds: float = 5.0
    header_seconds: float = 2.0


def prepare(raw: RawMail, spool: Path, limits: PrepareLimits, alarm: Alarm) -> PreparedMail:
    """Everything to be written for one mail. Malformed bytes never raise: they give `quarantined` (promise P4).

    Contents over 1 MiB go into files under `spool`. Raises OSError only for the spool itself.
    """
    content = raw.content.read_bytes() if isinstance(raw.content, Path) else raw.content
    mail, status, error = _parse(content, raw.oversize, limits, alarm)
    contents = [content, *(attachment.content for attachment in mail.attachments)]
    rows = tuple(_row(position, attachment) for position, attachment in enumerate(mail.attachments))
    hashes = [hashlib.sha256(content).hexdigest(), *(row.sha256 for row in rows)]
    unique = dict(zip(reversed(hashes), reversed(contents), strict=True))
    ordered = dict.fromkeys(hashes)
    return PreparedMail(
        listed=raw.listed,
        mail=replace(mail, attachments=()),
        raw_sha256=hashes[0],
        raw_size_bytes=len(content),
        attachments=rows,
        blobs=tuple(encode_blob(sha256, unique[sha256], spool) for sha256 in ordered),
        status=status,
        error=error,
    )


def quarantine(raw: RawMail, spool: Path, error: str) -> PreparedMail:
    """The mail without any parsing: its bytes are kept, the rest is left for a later `reparse`."""
    content = raw.content.read_bytes() if isinstance(raw.content, Path) else raw.content
    sha256 = hashlib.sha256(content).hexdigest()
    return PreparedMail(
        listed=raw.listed,
        mail=ParsedMail(defects=("unparsed",)),
        raw_sha256=sha256,
        raw_size_bytes=len(content),
        attachments=(),
        blobs=(encode_blob(sha256, content, spool),),
        status=MessageStatus.QUARANTINED,
        error=error,
    )


def _parse(
    content: bytes, oversize: bool, limits: PrepareLimits, alarm: Alarm
) -> tuple[ParsedMail, MessageStatus, str | None]:
    if oversize:
        mail, error = _header(content, limits, alarm)
        return mail, MessageStatus.OVERSIZE, error
    try:
        with alarm(limits.mail_seconds):
            mail = parse_mail(content)
    except TimeLimitExceeded:
        reason = f"parsing took longer than {limits.mail_seconds:g} s"
    # parse_mail promises not to raise; a bug in it must cost one mail's fields and never its landing (P4).
    except Exception as error:  # noqa: BLE001 - see above
        reason = f"parsing failed: {type(error).__name__}: {error}"
    else:
        fault = _own_fault(mail)
        return mail, MessageStatus.LANDED if fault is None else MessageStatus.QUARANTINED, fault
    mail, _ = _header(content, limits, alarm)
    return replace(mail, defects=(*mail.defects, "unparsed")), MessageStatus.QUARANTINED, reason


def _header(content: bytes, limits: PrepareLimits, alarm: Alarm) -> tuple[ParsedMail, str | None]:
    try:
        with alarm(limits.header_seconds):
            mail = parse_header_only(content)
            return mail, _own_fault(mail)
    except TimeLimitExceeded:
        reason = f"parsing the header took longer than {limits.header_seconds:g} s"
    # The same reason as in _parse.
    except Exception as error:  # noqa: BLE001 - see above
        reason = f"parsing the header failed: {type(error).__name__}: {error}"
    return ParsedMail(defects=("unparsed",)), reason


def _own_fault(mail: ParsedMail) -> str | None:
    """A fault of this program that the parser caught: the fields are not to be trusted, so nobody handles them yet."""
    if Defect.PARSER_FAILED in mail.defects:
        return "parsing failed: a fault of this program; what was known by then is kept, `ops-mail reparse` tries again"
    return None


def _row(position: int, attachment: Attachment) -> AttachmentRow:
    return AttachmentRow(
        position=position,
        filename=attachment.filename,
        original_filename=attachment.original_filename,
        content_type=attachment.content_type,
        disposition=attachment.disposition,
        content_id=attachment.content_id,
        size_bytes=len(attachment.content),
        sha256=hashlib.sha256(attachment.content).hexdigest(),
    )


def encode_blob(sha256: str, content: bytes, spool: Path) -> Blob:
    """`content` compressed and cut into chunks, in memory when small, else in a file under `spool`."""
    pieces = _compressed(content)
    if len(content) <= _IN_MEMORY_BYTES:
        encoded = b"".join(pieces)
        chunks = tuple(encoded[start : start + CHUNK_BYTES] for start in range(0, len(encoded), CHUNK_BYTES))
        return Blob(sha256=sha256, size_bytes=len(content), encoding="zstd", chunks=chunks)
    path = spool / f"{uuid.uuid4().hex}.zst"
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
    return Blob(sha256=sha256, size_bytes=len(content), encoding="zstd", chunks=path)


def _compressed(content: bytes) -> Iterator[bytes]:
    compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compressobj(size=len(content))
    view = memoryview(content)
    for start in range(0, len(content), 4 * CHUNK_BYTES):
        yield compressor.compress(view[start : start + 4 * CHUNK_BYTES])
    yield compressor.flush()

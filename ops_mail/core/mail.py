"""What a mail is, on its way from the server to its row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from ops_mail.core.ids import Uid


class MessageStatus(StrEnum):
    """The column `status` of `ops_mail_message`."""

    LANDED = "landed"
    PROCESSING = "processing"
    RETRY = "retry"
    DONE = "done"
    DEAD = "dead"
    SKIPPED = "skipped"
    QUARANTINED = "quarantined"
    OVERSIZE = "oversize"


@dataclass(frozen=True, slots=True)
class Address:
    """One mailbox of an address header; `name` is decoded, `addr` is `local@domain` (either may be empty)."""

    name: str
    addr: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """One part kept as a file. `filename` is a safe base name, `original_filename` the name as sent, decoded."""

    filename: str | None
    original_filename: str | None
    content_type: str
    disposition: str | None
    content_id: str | None
    content: bytes


@dataclass(frozen=True, slots=True)
class ParsedMail:
    """A mail as a good mail client shows it (promise P12). All texts are decoded; times are UTC and aware.

    `headers` holds every header in order, name as written, value decoded. `defects` holds short stable codes
    (`code` or `code:detail`), one for each shortfall met on the way; never an exception.
    """

    message_id: str | None = None
    subject: str = ""
    from_name: str = ""
    from_addr: str = ""
    to_addrs: tuple[Address, ...] = ()
    cc_addrs: tuple[Address, ...] = ()
    reply_to: str | None = None
    return_path: str | None = None
    auth_results: str | None = None
    sent_at: datetime | None = None
    text_body: str | None = None
    html_body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    defects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of a folder listing. `internal_date` is UTC and aware."""

    uid: Uid
    size_bytes: int
    internal_date: datetime
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RawMail:
    """A fetched mail. `content` is the bytes themselves, or the spool file that holds them when they are large.

    With `oversize` set, `content` holds the header block alone: the body was larger than MAX_MESSAGE_BYTES.
    """

    listed: Listed
    content: bytes | Path
    oversize: bool = False


@dataclass(frozen=True, slots=True)
class Blob:
    """Content on its way into the store: addressed by the sha256 of its *plain* bytes, already encoded.

    `chunks` are the encoded bytes cut into pieces of at most 256 KiB, or a file that holds them when large.
    """

    sha256: str
    size_bytes: int
    encoding: str  # "zstd" or "identity"
    chunks: tuple[bytes, ...] | Path


@dataclass(frozen=True, slots=True)
class AttachmentRow:
    """An attachment as its row describes it; its content is the blob named by `sha256`."""

    position: int
    filename: str | None
    original_filename: str | None
    content_type: str
    disposition: str | None
    content_id: str | None
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PreparedMail:
    """Everything about one mail that one landing transaction writes.

    `mail.attachments` is empty here: contents have moved to `blobs`, descriptions to `attachments`.
    `blobs` holds the raw bytes first (`raw_sha256`), then the attachments' contents without duplicates.
    `raw_sha256` is None (and `blobs` empty) only for a mail whose bytes the server itself cannot give out.
    """

    listed: Listed
    mail: ParsedMail
    raw_sha256: str | None
    raw_size_bytes: int
    attachments: tuple[AttachmentRow, ...]
    blobs: tuple[Blob, ...]
    status: MessageStatus
    error: str | None = None

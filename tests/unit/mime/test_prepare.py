"""What becomes of a mail that the parser itself fails at: quarantined, with all that is known."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from ops_mail.core.ids import Uid
from ops_mail.core.mail import Blob, Listed, MessageStatus, PreparedMail, RawMail
from ops_mail.mime import parser
from ops_mail.mime.prepare import PrepareLimits, TimeLimitExceeded, prepare

MAIL = (
    b"From: Ann <ann@example.org>\r\nSubject: an invoice\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: text/plain\r\n\r\nsee file\r\n"
    b"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=bill.pdf\r\n\r\n"
    b"PDF\r\n--b--\r\n"
)


def no_limit(seconds: float) -> AbstractContextManager[None]:
    return nullcontext()


def prepared(tmp_path: Path, *, oversize: bool = False) -> PreparedMail:
    raw = RawMail(Listed(Uid(1), len(MAIL), datetime(2026, 1, 5, tzinfo=UTC), ()), MAIL, oversize)
    return prepare(raw, tmp_path, PrepareLimits(), no_limit)


def plain(blob: Blob) -> bytes:
    assert isinstance(blob.chunks, tuple)
    return zstandard.decompress(b"".join(blob.chunks))


def fail(*_arguments: object) -> None:
    raise LookupError("a bug")


def test_a_fault_that_the_parser_caught_quarantines_the_mail_with_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser, "read_texts", fail)  # the last step: header and attachments are known by then
    mail = prepared(tmp_path)
    assert mail.status is MessageStatus.QUARANTINED
    assert mail.error is not None
    assert mail.error.startswith("parsing failed: a fault of this program")
    assert mail.mail.defects == ("no_date", "parser_failed")
    assert (mail.mail.subject, mail.mail.from_addr, mail.mail.text_body) == ("an invoice", "ann@example.org", None)
    assert [one.filename for one in mail.attachments] == ["bill.pdf"]
    assert [plain(blob) for blob in mail.blobs] == [MAIL, b"PDF"]
    assert mail.raw_sha256 == hashlib.sha256(MAIL).hexdigest()


def test_a_fault_at_the_header_of_an_oversize_mail_is_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser, "decode_value", fail)
    mail = prepared(tmp_path, oversize=True)
    assert mail.status is MessageStatus.OVERSIZE
    assert mail.error is not None
    assert mail.error.startswith("parsing failed: a fault of this program")
    assert mail.mail.defects == ("parser_failed",)
    assert plain(mail.blobs[0]) == MAIL


def test_an_exception_that_leaves_the_parser_quarantines_with_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops_mail.mime.prepare.parse_mail", fail)
    mail = prepared(tmp_path)
    assert (mail.status, mail.error) == (MessageStatus.QUARANTINED, "parsing failed: LookupError: a bug")
    assert mail.mail.subject == "an invoice"
    assert mail.mail.defects[-1] == "unparsed"
    assert [plain(blob) for blob in mail.blobs] == [MAIL]


def test_the_time_limit_quarantines_with_the_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_time(_content: bytes) -> None:
        raise TimeLimitExceeded

    monkeypatch.setattr("ops_mail.mime.prepare.parse_mail", out_of_time)
    mail = prepared(tmp_path)
    assert (mail.status, mail.error) == (MessageStatus.QUARANTINED, "parsing took longer than 5 s")
    assert mail.mail.subject == "an invoice"


def test_a_good_mail_lands_without_an_error(tmp_path: Path) -> None:
    mail = prepared(tmp_path)
    assert (mail.status, mail.error) == (MessageStatus.LANDED, None)
    assert "parser_failed" not in mail.mail.defects

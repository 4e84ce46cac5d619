"""The demo's mails are real ones: what a sample says is what lands."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ops_mail.demo.building import RECIPIENT, build_mail
from ops_mail.demo.samples import SAMPLES, Sample, Shape
from ops_mail.mime.parser import parse_mail

SENT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.address)
def test_every_sample_reads_as_it_was_written(sample: Sample) -> None:
    message_id, content = build_mail(sample, 7, SENT)
    mail = parse_mail(content)
    assert (mail.message_id or "").strip("<>") == message_id
    assert (mail.from_name, mail.from_addr, mail.subject) == (sample.name, sample.address, sample.subject)
    assert [address.addr for address in mail.to_addrs] == [RECIPIENT]
    assert mail.sent_at == SENT
    if sample.shape in {Shape.HTML, Shape.PICTURE}:
        assert sample.text.split("\n\n")[0].strip() in (mail.html_body or "")
    else:
        assert (mail.text_body or "").replace("\r\n", "\n").strip().startswith(sample.text.strip())
    if sample.filename:
        assert [attachment.original_filename for attachment in mail.attachments] == [sample.filename]


def test_the_samples_cover_the_charsets_and_shapes_that_mail_has() -> None:
    charsets = {sample.charset for sample in SAMPLES}
    assert charsets >= {"gb2312", "gb18030", "gbk", "big5", "iso-2022-jp", "shift_jis", "euc-kr", "koi8-r", "utf-8"}
    assert {sample.shape for sample in SAMPLES} == set(Shape)


def test_the_same_sample_sent_again_is_another_mail() -> None:
    assert build_mail(SAMPLES[0], 1, SENT)[0] != build_mail(SAMPLES[0], 26, SENT)[0]


def test_every_line_ends_as_on_the_wire() -> None:
    for number, sample in enumerate(SAMPLES):
        content = build_mail(sample, number, SENT)[1]
        assert content.count(b"\n") == content.count(b"\r\n") == content.count(b"\r")

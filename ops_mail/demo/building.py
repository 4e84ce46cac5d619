"""A sample as the bytes of a mail."""

from __future__ import annotations

from datetime import datetime
from email.header import Header
from email.message import Message
from email.mime.application import MIMEApplication
from email.mime.base import MIMEBase
from email.mime.image import MIMEImage
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime
from html import escape

from ops_mail.demo.samples import Sample, Shape

RECIPIENT = "demo@example.org"

_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f0005000201a2b7cf5d0000000049454e44ae426082"
)
_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Count 0/Kids[]>>endobj\ntrailer<</Root 1 0 R>>\n"
)


def build_mail(sample: Sample, number: int, sent: datetime) -> tuple[str, bytes]:
    """Give the Message-ID (without its brackets), which differs for each `number`, and the mail as on the wire."""
    message_id = f"demo-{number}-{sent:%Y%m%d%H%M%S}@{sample.address.partition('@')[2]}"
    if sample.shape is Shape.RAW:
        return message_id, _raw(sample, message_id, sent)
    mail = _body(sample)
    mail["From"] = f"{_words('From', sample.name, sample.charset)} <{sample.address}>"
    mail["To"] = RECIPIENT
    mail["Subject"] = _words("Subject", sample.subject, sample.charset)
    mail["Date"] = format_datetime(sent)
    mail["Message-ID"] = f"<{message_id}>"
    return message_id, _crlf(mail.as_bytes())


def _words(field: str, text: str, charset: str) -> str:
    return Header(text, charset, header_name=field).encode()


def _text(sample: Sample, subtype: str = "plain") -> MIMEText:
    text = sample.text if subtype == "plain" else _html(sample)
    return MIMEText(text, subtype, sample.charset)


def _html(sample: Sample) -> str:
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in sample.text.split("\n\n"))
    picture = '<img src="cid:picture" alt="">' if sample.shape is Shape.PICTURE else ""
    return f"<html><body><h1>{escape(sample.subject)}</h1>{paragraphs}{picture}</body></html>"


def _body(sample: Sample) -> Message:
    match sample.shape:
        case Shape.HTML:
            return _text(sample, "html")
        case Shape.BOTH:
            return _multipart("alternative", _text(sample), _text(sample, "html"))
        case Shape.FILE:
            return _multipart("mixed", _text(sample), _attachment(sample))
        case Shape.INVITATION:
            return _multipart("mixed", _text(sample), _invitation(sample))
        case Shape.PICTURE:
            picture = MIMEImage(_PIXEL, "png")
            picture["Content-ID"] = "<picture>"
            return _multipart("related", _text(sample, "html"), picture)
        case Shape.FORWARD:
            return _multipart("mixed", _text(sample), MIMEMessage(_forwarded()))
        case Shape.BOUNCE:
            report = _multipart("report", _text(sample), _delivery_status(), MIMEMessage(_forwarded()))
            report.set_param("report-type", "delivery-status")
            return report
        case _:
            return _text(sample)


def _multipart(subtype: str, *parts: Message) -> MIMEMultipart:
    return MIMEMultipart(subtype, _subparts=parts)


def _attachment(sample: Sample) -> Message:
    part: Message
    if sample.filename.endswith(".pdf"):
        part = MIMEApplication(_PDF, "pdf")
    else:
        part = MIMEText("a;b;c\r\n1;2;3\r\n", "csv", "us-ascii")
    part.add_header("Content-Disposition", "attachment", filename=(sample.charset, "", sample.filename))
    return part


def _invitation(sample: Sample) -> Message:
    lines = (
        "BEGIN:VCALENDAR",
        "METHOD:REQUEST",
        "PRODID:-//ops-mail//demo//EN",
        "VERSION:2.0",
        "BEGIN:VEVENT",
        "UID:demo-meeting@example.com",
        "DTSTAMP:20300101T090000Z",
        "DTSTART:20300103T130000Z",
        "DTEND:20300103T140000Z",
        f"SUMMARY:{sample.subject}",
        f"ORGANIZER:mailto:{sample.address}",
        "END:VEVENT",
        "END:VCALENDAR",
    )
    part = MIMEText("\r\n".join(lines), "calendar", "utf-8")
    part.set_param("method", "REQUEST")
    part.add_header("Content-Disposition", "attachment", filename=("utf-8", "", sample.filename))
    return part


def _forwarded() -> Message:
    inner = MIMEText("¿Podemos hablar del presupuesto mañana?\n", "plain", "utf-8")
    inner["From"] = f"{_words('From', 'Lucía Gómez', 'utf-8')} <lucia@example.es>"
    inner["To"] = "jose@example.es"
    inner["Subject"] = _words("Subject", "Presupuesto año próximo", "utf-8")
    return inner


def _delivery_status() -> Message:
    part = MIMEBase("message", "delivery-status")
    about_server, about_recipient = Message(), Message()
    about_server["Reporting-MTA"] = "dns; mx.example.org"
    about_recipient["Final-Recipient"] = "rfc822; nobody@example.com"
    about_recipient["Action"] = "failed"
    about_recipient["Status"] = "5.1.1"
    part.set_payload([about_server, about_recipient])
    return part


def _raw(sample: Sample, message_id: str, sent: datetime) -> bytes:
    """Headers in the sender's charset with no encoding at all: RFC 5322 forbids them, mail programs have to cope."""
    head = (
        f"From: {sample.name} <{sample.address}>\n"
        f"To: {RECIPIENT}\n"
        f"Subject: {sample.subject}\n"
        f"Date: {format_datetime(sent)}\n"
        f"Message-ID: <{message_id}>\n"
        "MIME-Version: 1.0\n"
        f"Content-Type: text/plain; charset={sample.charset}\n"
        "Content-Transfer-Encoding: 8bit\n\n"
    )
    return _crlf((head + sample.text).encode(sample.charset))


def _crlf(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")

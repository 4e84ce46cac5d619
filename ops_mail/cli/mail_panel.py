"""One mail for people."""

from __future__ import annotations

from datetime import UTC

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ops_mail.cli.terminal import printable
from ops_mail.core.counted import counted
from ops_mail.core.mail import Address, ParsedMail

_BODY_LINES = 25
_BODY_CHARS = 4000


def mail_panel(file: str, mail: ParsedMail) -> Panel:
    """Head, text, attachments and defects of `mail`; markup and control characters in it are shown, not obeyed."""
    parts: list[RenderableType] = [_head(mail), Text(), _body(mail)]
    if mail.attachments:
        parts += [Text(), _attachments(mail)]
    if mail.defects:
        parts += [Text(), Text("defects: " + printable(", ".join(mail.defects)), style="yellow")]
    return Panel(Group(*parts), title=Text(printable(file)), title_align="left")


def _head(mail: ParsedMail) -> Table:
    table = Table.grid(padding=(0, 2))
    rows = {
        "Subject": mail.subject,
        "From": _address(Address(mail.from_name, mail.from_addr)),
        "To": ", ".join(_address(address) for address in mail.to_addrs),
        "Cc": ", ".join(_address(address) for address in mail.cc_addrs),
        "Date": "" if mail.sent_at is None else f"{mail.sent_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "Message-ID": mail.message_id or "",
    }
    for name, value in rows.items():
        if value or name in ("Subject", "From", "Date"):
            table.add_row(Text(name, style="dim"), Text(printable(value), style="bold" if name == "Subject" else ""))
    return table


def _address(address: Address) -> str:
    return f"{address.name} <{address.addr}>" if address.name else address.addr


def _body(mail: ParsedMail) -> Text:
    if mail.text_body is None:
        kind = "(no text)" if mail.html_body is None else f"(HTML only, {len(mail.html_body)} characters)"
        return Text(kind, style="dim italic")
    lines = mail.text_body[:_BODY_CHARS].rstrip().splitlines()
    shown = Text("\n".join(printable(line) for line in lines[:_BODY_LINES]))
    if len(lines) > _BODY_LINES or len(mail.text_body) > _BODY_CHARS:
        shown.append(f"\n… ({len(mail.text_body)} characters)", style="dim")
    return shown


def _attachments(mail: ParsedMail) -> Table:
    table = Table("Attachment", "Type", "Size", box=None, padding=(0, 2, 0, 0))
    for item in mail.attachments:
        name = Text(printable(item.filename or "(no name)"))
        table.add_row(name, Text(printable(item.content_type)), counted(len(item.content), "byte"))
    return table

"""Mails and their histories, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops_mail.cli.terminal import printable
from ops_mail.core.counted import counted
from ops_mail.core.mail import Address
from ops_mail.store.operating import AttemptRecord, AuditRecord, History
from ops_mail.store.selection import MailLine

_BODY_CHARS = 4000
_TOLD_CHARS = 300


def print_lines(lines: Iterable[MailLine]) -> int:
    """A table; how many there were."""
    table = Table("Id", "Mailbox", "Status", "Tries", "Changed", "From", "Subject", "Last error", box=None)
    count = 0
    for line in lines:
        count += 1
        error = (line.last_error or "").split("\n", 1)[0]
        table.add_row(
            str(line.message_pk), _text(line.mailbox), line.status.value, str(line.attempts),
            _time(line.updated_at), _text(line.from_addr), _text(line.subject[:60]), _text(error[:80]),
        )  # fmt: skip
    if count:
        Console(highlight=False).print(table)
    return count


def line_json(line: MailLine) -> dict[str, Any]:
    """One mail of a list."""
    return {
        "id": line.message_pk,
        "key": line.key,
        "mailbox": line.mailbox,
        "status": line.status.value,
        "subject": line.subject,
        "from": line.from_addr,
        "received_at": _iso(line.received_at),
        "updated_at": _iso(line.updated_at),
        "attempts": line.attempts,
        "size_bytes": line.size_bytes,
        "last_error": line.last_error,
    }


def history_json(history: History) -> dict[str, Any]:
    """A mail with everything known of it but its raw bytes."""
    mail = history.mail
    return {
        "id": mail.message_pk,
        "key": mail.key,
        "status": mail.status.value,
        "attempts": mail.attempts,
        "next_attempt_at": _iso(mail.next_attempt_at),
        "last_error": mail.last_error,
        "message_id": mail.message_id,
        "subject": mail.subject,
        "from": _address_json(mail.sender),
        "to": [_address_json(one) for one in mail.to],
        "cc": [_address_json(one) for one in mail.cc],
        "reply_to": mail.reply_to,
        "return_path": mail.return_path,
        "auth_results": mail.auth_results,
        "sent_at": _iso(mail.sent_at),
        "received_at": _iso(mail.received_at),
        "landed_at": _iso(mail.landed_at),
        "size_bytes": mail.size_bytes,
        "raw_sha256": mail.raw_sha256,
        "content_removed_at": _iso(mail.content_removed_at),
        "text": mail.text,
        "html": mail.html,
        "headers": [list(pair) for pair in mail.headers],
        "flags": list(mail.flags),
        "defects": list(mail.defects),
        "attachments": [
            {"filename": one.filename, "content_type": one.content_type, "size_bytes": one.size_bytes,
             "sha256": one.sha256}
            for one in mail.attachments
        ],
        "history": [
            {"attempt": one.attempt_no, "handler": one.handler, "instance": one.instance,
             "started_at": _iso(one.started_at), "finished_at": _iso(one.finished_at), "outcome": one.outcome,
             "result": one.result, "error": one.error}
            for one in history.attempts
        ],
        "audit": [
            {"at": _iso(one.at), "actor": one.actor, "action": one.action, "detail": one.detail}
            for one in history.audit
        ],
    }  # fmt: skip


def print_history(history: History) -> None:
    """A mail for people: head, text, attempts, changes."""
    console, mail = Console(highlight=False), history.mail
    head = Table.grid(padding=(0, 2))
    for name, value in (
        ("Id", f"{mail.message_pk}   {mail.key}"),
        ("Status", f"{mail.status.value} after {counted(mail.attempts, 'attempt')}"),
        ("Subject", mail.subject), ("From", _address(mail.sender)), ("To", ", ".join(map(_address, mail.to))),
        ("Received", _time(mail.received_at)), ("Size", f"{mail.size_bytes:,} bytes, sha256 {mail.raw_sha256 or '–'}"),
        ("Files", ", ".join(one.filename or "(no name)" for one in mail.attachments)),
        ("Next attempt", _time(mail.next_attempt_at)), ("Removed", _time(mail.content_removed_at)),
    ):  # fmt: skip
        if value not in ("", "–"):
            head.add_row(Text(name, style="dim"), _text(value))
    console.print(head)
    if mail.text:
        console.print(Text("\n" + printable(mail.text[:_BODY_CHARS].rstrip(), lines=True) + "\n"))
    if history.attempts:
        table = Table("Attempt", "Started", "Seconds", "Outcome", "Instance", "Result or error", box=None)
        for one in history.attempts:
            ended = one.finished_at
            seconds = "" if ended is None else f"{(ended - one.started_at).total_seconds():.1f}"
            table.add_row(str(one.attempt_no), _time(one.started_at), seconds, one.outcome or "running",
                          _text(one.instance), _text(_told(one)))  # fmt: skip
        console.print(table)
    for change in history.audit:
        console.print(_text(change_line(change)))
    if mail.last_error:
        console.print(Text("\n" + printable(mail.last_error, lines=True), style="red"))


def change_line(change: AuditRecord) -> str:
    """A row of the audit trail: when (UTC), who, what, and its details as JSON."""
    detail = "" if change.detail is None else json.dumps(change.detail, ensure_ascii=False)
    return f"{_time(change.at)}  {change.actor}  {change.action}  {detail}".rstrip()


def _told(one: AttemptRecord) -> str:
    """What the handler returned, and the first line of what was wrong; bounded, `--json` has all of it."""
    result = "" if one.result is None else json.dumps(one.result, ensure_ascii=False)
    error = (one.error or "").split("\n", 1)[0]
    return "; ".join(_short(text) for text in (result, error) if text)


def _short(text: str) -> str:
    return text if len(text) <= _TOLD_CHARS else f"{text[:_TOLD_CHARS]}… ({len(text):,} characters)"


def _text(value: str) -> Text:
    return Text(printable(value))


def _address(address: Address) -> str:
    return f"{address.name} <{address.addr}>" if address.name else address.addr


def _address_json(address: Address) -> dict[str, str]:
    return {"name": address.name, "addr": address.addr}


def _time(when: datetime | None) -> str:
    return "–" if when is None else f"{when:%Y-%m-%d %H:%M:%S}"


def _iso(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat()

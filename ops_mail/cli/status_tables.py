"""The overview for people: legible on a terminal of 80 columns."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ops_mail.cli.readiness import Judged
from ops_mail.cli.status import Overview
from ops_mail.cli.terminal import printable
from ops_mail.core.mail import MessageStatus
from ops_mail.store import CursorState

_DUTY_STYLES = {"leader": "green", "standby": "cyan", "consumer": "blue", "gone": "dim"}


def print_overview(overview: Overview) -> None:
    """Mailboxes, instances, mails."""
    Console().print(picture(overview))


def picture(overview: Overview) -> RenderableType:
    """The same, to be shown by others."""
    counts = [f"{overview.counts[status]} {status}" for status in MessageStatus if overview.counts.get(status)]
    return Group(
        _mailboxes(overview) if overview.mailboxes else Text("No mailbox has ever been listened to.", style="yellow"),
        *_reasons(overview),
        Text(),
        _instances(overview) if overview.instances else Text("No instance is running.", style="yellow"),
        Text(),
        Text("Mails: " + (", ".join(counts) or "none")),
    )


def _mailboxes(overview: Overview) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("Mailbox", overflow="fold")
    for heading in ("", "State", "Last sync", "UID"):
        table.add_column(heading, no_wrap=True)
    table.add_column("Holder", overflow="fold")
    for mailbox in overview.mailboxes:
        cursor = mailbox.cursor
        table.add_row(
            Text(printable(str(mailbox.key)), style="bold"),
            _verdict(mailbox),
            Text(cursor.state if cursor else "–"),
            Text("never" if mailbox.sync_age_seconds is None else f"{_age(mailbox.sync_age_seconds)} ago"),
            Text(str(cursor.last_uid) if cursor else "–"),
            Text(_holder(cursor)),
        )
    return table


def _holder(cursor: CursorState | None) -> str:
    """Name and process; the random part stands with the instances below."""
    if cursor is None or not cursor.holder or not cursor.lease_live:
        return "–"
    return printable(cursor.holder.rpartition(":")[0] or cursor.holder)


def _reasons(overview: Overview) -> list[Text]:
    """A paragraph for each mailbox with something to tell: as a column of the table it would be cut to pieces."""
    told = [mailbox for mailbox in overview.mailboxes if mailbox.reason]
    return [Text(), *(_reason(mailbox) for mailbox in told)] if told else []


def _reason(mailbox: Judged) -> Text:
    return Text(printable(f"{mailbox.key}: {mailbox.reason}"), style=_reason_style(mailbox))


def _reason_style(mailbox: Judged) -> str:
    if not mailbox.expected:
        return "dim"
    return "yellow" if mailbox.ready else "red"


def _verdict(mailbox: Judged) -> Text:
    if mailbox.ready:
        return Text("ready", style="green")
    return Text("not ready", style="bold red") if mailbox.expected else Text("not configured here", style="dim")


def _instances(overview: Overview) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("Instance", overflow="fold")
    for heading in ("Role", "", "Heartbeat"):
        table.add_column(heading, no_wrap=True)
    table.add_column("Leads", overflow="fold")
    for instance in overview.instances:
        duty = overview.duty(instance)
        table.add_row(
            Text(printable(instance.instance)),
            Text(printable(instance.role)),
            Text(duty, style=_DUTY_STYLES[duty]),
            Text(f"{_age(instance.age_seconds)} ago"),
            Text(printable(", ".join(overview.holds(instance)))),
        )
    return table


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"

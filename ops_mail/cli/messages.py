"""`ops-mail messages`: look at what has landed, and get it out."""

# ruff: noqa: PLC0415 - what a command needs is imported inside it, so that `--help` starts fast

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ops_mail.cli import choosing
from ops_mail.cli.help import PlainGroup
from ops_mail.core.mail import MessageStatus

if TYPE_CHECKING:
    from ops_mail.settings import Settings

app = typer.Typer(
    cls=PlainGroup, name="messages", help="What has landed: list it, look at it, get it out.", no_args_is_help=True
)

_Status = Annotated[
    list[MessageStatus] | None,
    typer.Option("--status", metavar="STATUS", help=f"{', '.join(MessageStatus)}; may be repeated."),
]


@app.command("list")
def list_messages(
    *,
    mailbox: choosing.Mailbox = None,
    status: _Status = None,
    older_than: choosing.Older = None,
    newer_than: choosing.Newer = None,
    error: choosing.Error = None,
    limit: choosing.Limit = 50,
    json: choosing.Json = False,
) -> None:
    """List mails, the newest first."""
    settings = _settings()
    from ops_mail.cli.mail_commands import list_command
    from ops_mail.store.selection import Selection

    selection = Selection((), mailbox, tuple(status or ()), older_than, newer_than, error)
    raise typer.Exit(list_command(settings, selection, limit, as_json=json))


@app.command()
def show(name: choosing.OneName, *, json: choosing.Json = False) -> None:
    """Show one mail with its text, every attempt at it and every change an operator made."""
    settings = _settings()
    from ops_mail.cli.mail_commands import show_command

    raise typer.Exit(show_command(settings, name, as_json=json))


@app.command()
def raw(name: choosing.OneName) -> None:
    """Write a mail's bytes, exactly as they were received, to standard output."""
    settings = _settings()
    from ops_mail.cli.mail_commands import raw_command

    raise typer.Exit(raw_command(settings, name))


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder; it is made if it is not there.")],
    *,
    mailbox: choosing.Mailbox = None,
    status: _Status = None,
    older_than: choosing.Older = None,
    newer_than: choosing.Newer = None,
    error: choosing.Error = None,
) -> None:
    """Write mails as .eml files, with index.jsonl beside them. May be repeated, also with other options.

    Files that are there already are left as they are. What index.jsonl says of other mails in the folder stays in it;
    it is replaced as a whole. Each database needs a folder of its own: files are named by the mails' ids.
    """
    settings = _settings()
    from ops_mail.cli.export import export_command
    from ops_mail.store.selection import Selection

    selection = Selection((), mailbox, tuple(status or ()), older_than, newer_than, error)
    raise typer.Exit(export_command(settings, selection, folder))


def _settings() -> Settings:
    from ops_mail.settings import load_settings

    return load_settings(mailboxes_required=False)

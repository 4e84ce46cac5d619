"""`ops-mail dead`: the mails that no handler could handle, until an operator decides."""

# ruff: noqa: PLC0415 - what a command needs is imported inside it, so that `--help` starts fast

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ops_mail.cli import choosing
from ops_mail.cli.help import PlainGroup
from ops_mail.core.audit_action import AuditAction
from ops_mail.core.counted import counted

if TYPE_CHECKING:
    from ops_mail.settings import Settings
    from ops_mail.store.selection import Selection

app = typer.Typer(
    cls=PlainGroup,
    name="dead",
    help="Mails whose handling failed for good: look at them, try them again, or give them up.",
    no_args_is_help=True,
)

_All = Annotated[bool, typer.Option("--all", help="All dead mails (that fit the other options).")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, however many there are.")]


@app.command("list")
def list_dead(
    *,
    mailbox: choosing.Mailbox = None,
    older_than: choosing.Older = None,
    newer_than: choosing.Newer = None,
    error: choosing.Error = None,
    limit: choosing.Limit = 50,
    json: choosing.Json = False,
) -> None:
    """List dead mails, the newest first."""
    settings = _settings()
    from ops_mail.cli.mail_commands import list_command
    from ops_mail.core.mail import MessageStatus
    from ops_mail.store.selection import Selection

    selection = Selection((), mailbox, (MessageStatus.DEAD,), older_than, newer_than, error)
    raise typer.Exit(list_command(settings, selection, limit, as_json=json))


@app.command()
def show(name: choosing.OneName, *, json: choosing.Json = False) -> None:
    """Show one mail, every attempt at it and every change an operator made."""
    settings = _settings()
    from ops_mail.cli.mail_commands import show_command

    raise typer.Exit(show_command(settings, name, as_json=json))


def _add_decision(action: AuditAction, word: str, text: str) -> None:
    """The command `word`, which does `action` to all mails that its options mean."""

    @app.command(word, help=text)
    def decide(
        names: choosing.Names = None,
        *,
        every: _All = False,
        mailbox: choosing.Mailbox = None,
        older_than: choosing.Older = None,
        newer_than: choosing.Newer = None,
        error: choosing.Error = None,
        yes: _Yes = False,
    ) -> None:
        settings = _settings()
        chosen = _chosen(names, every, mailbox, older_than, newer_than, error)
        raise typer.Exit(_act(settings, chosen, action, word, yes=yes))


_RETRY = "Let dead mails be handled again, with all their attempts to come. What was tried stays recorded."
_DISCARD = "Give dead mails up: they become `skipped`, and no longer hold up those behind them."
_add_decision(AuditAction.DEAD_RETRY, "retry", _RETRY)
_add_decision(AuditAction.DEAD_DISCARD, "discard", _DISCARD)


def _settings() -> Settings:
    from ops_mail.settings import load_settings

    return load_settings(mailboxes_required=False)


def _chosen(
    names: list[str] | None,
    every: bool,
    mailbox: str | None,
    older_than: float | None,
    newer_than: float | None,
    error: str | None,
) -> Selection:
    from ops_mail.core.mail import MessageStatus
    from ops_mail.store.selection import Selection

    chosen = Selection(tuple(names or ()), mailbox, (MessageStatus.DEAD,), older_than, newer_than, error)
    if not chosen.narrowed and not every:
        raise typer.BadParameter("say which mails: ids, --mailbox, --older-than, --newer-than, --error or --all")
    return chosen


def _act(settings: Settings, selection: Selection, action: AuditAction, word: str, *, yes: bool) -> int:
    from ops_mail.cli.mail_commands import count_command, dead_command

    count = count_command(settings, selection)
    if count == 0:
        sys.stderr.write(f"{_nothing(selection)}\n")
        return 1
    if count > 1 and not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter(f"this would {word} {counted(count, 'mail')}: say --yes")
        typer.confirm(f"{word} {counted(count, 'dead mail')}?", abort=True)
    print(f"{word}: {counted(dead_command(settings, selection, action), 'mail')}")
    return 0


def _nothing(selection: Selection) -> str:
    from ops_mail.cli.terminal import printable

    if not selection.names:
        return "no dead mail fits"
    return (
        f"no mail that is dead: {printable(', '.join(selection.names))} (`ops-mail messages show ID` tells its status)"
    )

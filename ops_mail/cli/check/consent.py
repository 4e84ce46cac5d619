"""Whether test mails may be sent: they land, and a handler may act on them."""

from __future__ import annotations

import sys

import typer

from ops_mail.cli.terminal import printable
from ops_mail.core.counted import counted
from ops_mail.settings import Settings

_SHOWN = 5


def ask_for_test_mails(settings: Settings, *, yes: bool) -> None:
    """Returns when they are wanted. Raises typer.Abort for a no, typer.BadParameter where nobody can be asked."""
    if yes or not settings.mailboxes:
        return
    folders = [f"{mailbox.name}/{mailbox.folder}" for mailbox in settings.mailboxes]
    shown = ", ".join(folders[:_SHOWN]) + (", …" if len(folders) > _SHOWN else "")
    what = (
        f"--send-test puts a test mail into {counted(len(folders), 'folder')} ({printable(shown)}) "
        "and deletes it again. "
        "A running ops-mail lands it as any other mail, and its handler gets it"
    )
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{what}. Say --yes if it may")
    typer.confirm(f"{what}. Go on?", abort=True, err=True)

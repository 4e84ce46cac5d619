"""The commands and their options.

What a command needs is imported inside it, so that `parse` and `--help` start fast.
"""

# ruff: noqa: PLC0415 - as said above

from __future__ import annotations

import io
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ops_mail import __version__
from ops_mail.cli import dead, messages
from ops_mail.cli.exit_codes import ExitCode, exit_codes_line
from ops_mail.cli.help import PlainGroup
from ops_mail.errors import ConfigError, OpsMailError

if TYPE_CHECKING:
    from ops_mail.settings import Settings


app = typer.Typer(
    cls=PlainGroup,
    name="ops-mail",
    help="Every mail of an IMAP folder lands exactly once in your own tables, live.",
    epilog=exit_codes_line(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and so secrets
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)
app.add_typer(messages.app)
app.add_typer(dead.app)

WATCH_SECONDS = 2.0

_Json = Annotated[bool, typer.Option("--json", help="One JSON object for machines instead of a table.")]


def main() -> NoReturn:
    """Runs the command line and exits with an `ExitCode`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter must not stop a command
    try:
        app()
    except ConfigError as error:
        for problem in error.problems:
            _say(problem)
        sys.exit(ExitCode.CONFIGURATION)
    except OpsMailError as error:
        _say(str(error))
    except BrokenPipeError:
        # The reader has gone (`… | head`); at exit Python would try to flush, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception:  # noqa: BLE001 - the outermost level: a bug is told without the secrets in its traceback
        _say(traceback.format_exc().rstrip())
    sys.exit(ExitCode.NO)


def _say(text: str) -> None:
    from ops_mail.cli.terminal import printable
    from ops_mail.settings import redact

    sys.stderr.write("\n".join(printable(line) for line in redact(text).split("\n")) + "\n")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ops-mail {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Settings are read from the environment and from .env (OPS_MAIL_…)."""


def _settings(*, mailboxes_required: bool = True) -> Settings:
    """Loaded before anything large is imported: a mistake is told at once."""
    from ops_mail.settings import load_settings

    return load_settings(mailboxes_required=mailboxes_required)


@app.command()
def run() -> None:
    """Listen to the mailboxes, land and handle every mail, until a signal."""
    settings = _settings()
    from ops_mail.app import process

    raise typer.Exit(process.run(settings))


@app.command()
def check(
    *,
    json: _Json = False,
    send_test: Annotated[
        bool,
        typer.Option("--send-test", help="Also put a test mail into each folder, time its push, and delete it again."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the test mails.")] = False,
) -> None:
    """Try everything that running needs and tell what to do about it.

    Nothing is changed, but for a small object written to OPS_MAIL_STORE_URL and removed again. With --send-test a mail
    whose subject says that it is a test is put into each folder and deleted as soon as the server has announced it. A
    running ops-mail lands it as any other mail, and its handler gets it: that is asked first, unless --yes is given.
    """
    settings = _settings()
    if send_test:
        from ops_mail.cli.check.consent import ask_for_test_mails

        ask_for_test_mails(settings, yes=yes)
    from ops_mail.cli.check import check_command

    raise typer.Exit(check_command(settings, as_json=json, send_test=send_test))


@app.command()
def migrate() -> None:
    """Bring the database's tables up to date."""
    settings = _settings(mailboxes_required=False)
    from ops_mail.cli.migrate import migrate_command

    raise typer.Exit(migrate_command(settings))


@app.command()
def status(
    *,
    json: Annotated[bool, typer.Option("--json", help="JSON for machines; with --watch one object a line.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on looking, until Ctrl-C.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Between two looks of --watch.")
    ] = WATCH_SECONDS,
) -> None:
    """Show each mailbox and each living instance, from the database alone. Exit code 1 when a mailbox is not ready.

    With --watch a terminal shows one picture that renews itself, and anything else gets one after the other; a database
    that does not answer is told and tried again. Ctrl-C ends it with exit code 0.
    """
    settings = _settings(mailboxes_required=False)
    if watch:
        from ops_mail.cli.status_watch import watch_command

        raise typer.Exit(watch_command(settings, interval, as_json=json))
    from ops_mail.cli.status import status_command

    raise typer.Exit(status_command(settings, as_json=json))


@app.command()
def verify(*, json: _Json = False) -> None:
    """Compare every UID on the server with the tables. Exit code 1 when a mail is missing. Changes nothing."""
    settings = _settings()
    from ops_mail.cli.verify import verify_command

    raise typer.Exit(verify_command(settings, as_json=json))


@app.command()
def parse(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Mails as they came (.eml); - is standard input.")
    ],
    *,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line, in the order of the files.")] = False,
) -> None:
    """Show how mails would land. Needs no settings and no database."""
    from ops_mail.cli.parse import parse_command

    raise typer.Exit(parse_command(files, as_json=json))


@app.command()
def reparse(
    *,
    since: Annotated[
        int | None, typer.Option(min=0, metavar="ID", help="Begin after this mail; 0 begins with the first one.")
    ] = None,
    mailbox: Annotated[str | None, typer.Option(metavar="NAME", help="Only the mails of this mailbox.")] = None,
) -> None:
    """Parse the stored mails again after an upgrade. A run that was cut short goes on where it was.

    Only what is read from a mail's bytes changes: never flags, times of arrival, or what handlers have done. A
    quarantined mail that can be parsed now is handled. Exit code 1 when a mail could not be parsed.
    """
    settings = _settings(mailboxes_required=False)
    from ops_mail.cli.reparse import reparse_command

    raise typer.Exit(reparse_command(settings, since, mailbox))


@app.command()
def demo(
    *,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="End after so many mails.")] = None,
    every: Annotated[float, typer.Option(min=0.01, metavar="SECONDS", help="Between two mails.")] = 3.0,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="Of the page; 8080, or a free one, if not given."),
    ] = None,
) -> None:
    """Run all of it on an embedded IMAP server and SQLite; nothing to configure."""
    from ops_mail.cli.demo import demo_command

    raise typer.Exit(demo_command(count, every, port))

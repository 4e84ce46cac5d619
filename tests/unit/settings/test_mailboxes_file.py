"""Mailboxes from TOML; a mistake names file, mailbox and key."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from ops_mail.errors import ConfigError
from ops_mail.settings import AfterAction, AuthMethod, MailboxSettings, Security, load_settings

GOOD = '[[mailbox]]\nhost = "h"\nusername = "u"\npassword = "hunter2"\n'


def load(tmp_path: Path, text: str) -> tuple[MailboxSettings, ...]:
    file = tmp_path / "mailboxes.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings({"OPS_MAIL_MAILBOXES_FILE": str(file)}, None).mailboxes


def problems(tmp_path: Path, text: str) -> list[str]:
    """The lines, without the part that all have in common."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert "hunter2" not in str(caught.value)
    prefix = f"OPS_MAIL_MAILBOXES_FILE: {tmp_path}/mailboxes.toml: "
    assert all(line.startswith(prefix) for line in caught.value.problems), caught.value.problems
    return [line.removeprefix(prefix) for line in caught.value.problems]


def test_every_key_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    (tmp_path / "ca.pem").write_text("certificate")
    billing, plain = load(
        tmp_path,
        """
        [[mailbox]]
        name = "billing"
        host = "imap.example.org"
        port = 1993
        security = "starttls"
        username = "billing@example.org"
        password_file = "secret"
        auth = "oauth2"
        folder = "Eingänge"
        ca_file = "ca.pem"
        start = 2026-01-31
        after_landing = "move:Erledigt"

        [[mailbox]]
        host = "h"
        username = "u"
        password = "p"
        port = ""
        """,
    )
    assert (billing.name, billing.host, billing.port) == ("billing", "imap.example.org", 1993)
    assert (billing.security, billing.auth) == (Security.STARTTLS, AuthMethod.OAUTH2)
    assert (billing.username, billing.password.reveal()) == ("billing@example.org", "hunter2")
    assert (billing.folder, billing.ca_file, billing.start) == ("Eingänge", tmp_path / "ca.pem", date(2026, 1, 31))
    assert (billing.after_landing.action, billing.after_landing.folder) == (AfterAction.MOVE, "Erledigt")
    assert (plain.name, plain.port) == ("u", 993)


def test_one_mailbox_may_have_several_folders(tmp_path: Path) -> None:
    mailboxes = load(tmp_path, GOOD + GOOD + 'folder = "Archive"\n')
    assert [(mailbox.name, mailbox.folder) for mailbox in mailboxes] == [("u", "INBOX"), ("u", "Archive")]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (GOOD + "port = 70000", ['mailbox "u": port: must be between 1 and 65535, not 70000']),
        (GOOD + "port = true", ['mailbox "u": port: must be a whole number between 1 and 65535, not \'true\'']),
        (GOOD + 'security = "ssl"', ["mailbox \"u\": security: must be one of tls, starttls, plain, not 'ssl'"]),
        (GOOD + 'imap_port = "1"', ['mailbox "u": imap_port: unknown key; did you mean port?']),
        (GOOD + 'pasword = "hunter2"', ['mailbox "u": pasword: unknown key; did you mean password?']),
        (GOOD + "start = 2026-01-31T10:00:00", ['mailbox "u": start: must be a date without a time, such as 2026-01-31']),  # noqa: E501 - one case a line
        (GOOD + 'password_file = "x"', ['mailbox "u": password: is given together with password_file; keep one of them']),  # noqa: E501 - one case a line
        (GOOD + 'folder = "inbox"\n' + GOOD, ['mailbox "u": folder "INBOX" is given twice; give each entry its own name or folder']),  # noqa: E501 - one case a line
        ('[[mailbox]]\nname="a"\nhost="h"\nusername="u"\npassword=1', ['mailbox "a": password: must be a text']),
        ('[[mailbox]]\nhost="h"', [
            "mailbox 1: username: is required",
            "mailbox 1: password: is required (or password_file, the path of a file that holds it)",
        ]),
        (GOOD + '[[mailbox]]\nname="b"\nhost=""\nusername="v"\npassword="hunter2"', ['mailbox "b": host: is required']),
        ('[mailbox]\nhost="h"', ["names no mailbox; each one starts with [[mailbox]]"]),
        ("", ["names no mailbox; each one starts with [[mailbox]]"]),
        ("[[mailboxes]]", [
            "mailboxes: unknown key; each mailbox starts with [[mailbox]]",
            "names no mailbox; each one starts with [[mailbox]]",
        ]),
        ("[[mailbox]]\nhost = hunter2", ["is not valid TOML: Invalid value (at line 2, column 8)"]),
    ],
)  # fmt: skip
def test_a_mistake_names_the_mailbox_and_the_key(tmp_path: Path, text: str, lines: list[str]) -> None:
    assert problems(tmp_path, text) == lines


def test_a_file_that_cannot_be_read_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings({"OPS_MAIL_MAILBOXES_FILE": str(tmp_path / "none.toml")}, None)
    assert caught.value.problems == [
        f"OPS_MAIL_MAILBOXES_FILE: {tmp_path}/none.toml: cannot be read: No such file or directory"
    ]


def test_a_password_file_that_cannot_be_read_names_its_mailbox(tmp_path: Path) -> None:
    text = '[[mailbox]]\nhost="h"\nusername="u"\npassword_file="none"\n'
    assert problems(tmp_path, text) == [
        f'mailbox "u": password_file: cannot read {tmp_path}/none: No such file or directory'
    ]

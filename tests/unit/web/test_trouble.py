"""What kind of trouble an error means."""

from __future__ import annotations

import pytest

from ops_mail.errors import Failure
from ops_mail.web.trouble import Trouble, trouble_of


def test_every_failure_is_a_trouble_of_its_own() -> None:
    assert [trouble_of(failure, "text") for failure in Failure] == [Trouble(failure.value) for failure in Failure]


def test_no_error_is_no_trouble() -> None:
    assert trouble_of(None, None) is None
    assert trouble_of(None, "") is None


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        ("imap.example.org:993 refused the login of x: Invalid credentials: check OPS_MAIL_IMAP_USERNAME", "auth"),
        ("the password of x cannot be read (Permission denied): check OPS_MAIL_IMAP_PASSWORD", "auth"),
        ("landing: the database refused the login: check OPS_MAIL_DATABASE_URL", "database"),
        ("taking the guard: (1045, \"Access denied for user 'x'@'y' (using password: YES)\")", "database"),
        ("reading the cursor: Access denied for user 'x'@'y'", "database"),
        ("the certificate of imap.example.org:993 has expired: the server needs a new one", "tls"),
        ("imap.example.org:993 does not speak TLS: check OPS_MAIL_IMAP_PORT", "tls"),
        ("imap.example.org:993 refused to open the folder 'Bills': NO such mailbox", "folder"),
        ("the name imap.example.org cannot be resolved (Name or service not known)", "unreachable"),
        ("no connection to imap.example.org:993 (192.0.2.1: Connection refused)", "unreachable"),
        ("imap.example.org:993 was not there within 15 s (the greeting did not finish)", "unreachable"),
        ("imap.example.org:993 ended the session: Autologout", "bye"),
        ("imap.example.org:993: the server closed the connection", "lost"),
        ("landing: no answer from the database within 120 s", "database"),
        ("imap.example.org:993 did not answer FETCH within 30 s", "timeout"),
        ("landing: (2013, 'Lost connection to server during query')", "database"),
        ("x/INBOX: another instance has taken over (epoch 7 is past)", "guard"),
        ("something nobody has thought of", "protocol"),
    ],
)
def test_an_error_of_another_process_is_known_by_its_words(error: str, trouble: str) -> None:
    assert trouble_of(None, error) == trouble


def test_the_names_in_its_advice_say_nothing_about_an_error() -> None:
    error = 'h:993 refused the login of u: NO: check password of mailbox "guards" in /srv/release/mailboxes.toml'
    assert trouble_of(None, error) is Trouble.AUTH

"""How a mailbox's settings are called where they stand."""

from __future__ import annotations

from pathlib import Path

from ops_mail.settings import MailboxSource, load_settings

VARIABLES = MailboxSource()
FILE = MailboxSource(Path("/etc/ops/mailboxes.toml"), 'mailbox "orders"')


def test_variables_are_called_by_their_whole_names() -> None:
    assert VARIABLES.names("host") == "OPS_MAIL_IMAP_HOST"
    assert VARIABLES.names("host", "port") == "OPS_MAIL_IMAP_HOST and OPS_MAIL_IMAP_PORT"
    assert VARIABLES.names("host", "port", also="the firewall") == (
        "OPS_MAIL_IMAP_HOST, OPS_MAIL_IMAP_PORT and the firewall"
    )
    assert VARIABLES.reworded("Check OPS_MAIL_IMAP_HOST.") == "Check OPS_MAIL_IMAP_HOST."


def test_keys_are_called_with_their_entry_and_file() -> None:
    assert FILE.names("host") == 'host of mailbox "orders" in /etc/ops/mailboxes.toml'
    assert FILE.names("host", "port", also="the firewall") == (
        'host and port of mailbox "orders" in /etc/ops/mailboxes.toml, and the firewall'
    )
    assert FILE.reworded("Check OPS_MAIL_IMAP_CA_FILE, or OPS_MAIL_IMAP_AUTH=oauth2; not OPS_MAIL_IDLE_SECONDS.") == (
        'Check `ca_file`, or `auth = "oauth2"`; not OPS_MAIL_IDLE_SECONDS.'
    )


def test_what_names_a_setting_already_is_known() -> None:
    assert VARIABLES.is_named_in("set OPS_MAIL_IMAP_HOST")
    assert not VARIABLES.is_named_in("the server is slow")
    assert FILE.is_named_in(f"check {FILE.names('host')}")
    assert not FILE.is_named_in("the server is slow")


def test_the_settings_know_where_they_stand_and_which_way_the_password_came(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2")
    file = tmp_path / "mailboxes.toml"
    file.write_text(
        '[[mailbox]]\nname = "orders"\nhost = "h"\nusername = "u"\npassword_file = "secret"\n'
        '[[mailbox]]\nhost = "h"\nusername = "v"\npassword = "p"\n'
    )
    orders, other = load_settings({"OPS_MAIL_MAILBOXES_FILE": str(file)}, None).mailboxes
    assert orders.source.names("username", "password") == f'username and password_file of mailbox "orders" in {file}'
    assert other.source.names("password") == f'password of mailbox "v" in {file}'

    variables = {"OPS_MAIL_IMAP_HOST": "h", "OPS_MAIL_IMAP_USERNAME": "u"}
    secret = {"OPS_MAIL_IMAP_PASSWORD_FILE": str(tmp_path / "secret")}
    (mailbox,) = load_settings(variables | secret, None).mailboxes
    assert mailbox.source.names("password") == "OPS_MAIL_IMAP_PASSWORD_FILE"

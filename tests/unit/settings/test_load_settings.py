"""Defaults, precedence and the shape of the result."""

from __future__ import annotations

import dataclasses
import socket
from datetime import date
from pathlib import Path

import pytest

from ops_mail.errors import ConfigError
from ops_mail.settings import (
    KNOWN_NAMES,
    AfterAction,
    AfterLanding,
    AuthMethod,
    CallableTarget,
    HandlerOrder,
    LogFormat,
    LogLevel,
    Role,
    Security,
    Settings,
    StartMode,
    WebhookTarget,
    load_settings,
    redact,
)

MAILBOX = {
    "OPS_MAIL_IMAP_HOST": "imap.example.org",
    "OPS_MAIL_IMAP_USERNAME": "ops@example.org",
    "OPS_MAIL_IMAP_PASSWORD": "hunter2",
}


def load(**values: str) -> Settings:
    return load_settings(MAILBOX | {f"OPS_MAIL_{name}": value for name, value in values.items()}, env_file=None)


def test_a_host_a_username_and_a_password_are_enough_and_the_rest_has_the_documented_defaults() -> None:
    settings = load()

    assert settings.enabled is True
    assert settings.role is Role.ALL
    assert settings.instance_name == socket.gethostname()
    assert settings.shutdown_grace_seconds == 10
    (mailbox,) = settings.mailboxes
    assert (mailbox.name, mailbox.host, mailbox.port) == ("ops@example.org", "imap.example.org", 993)
    assert (mailbox.security, mailbox.auth, mailbox.folder) == (Security.TLS, AuthMethod.PASSWORD, "INBOX")
    assert (mailbox.ca_file, mailbox.start, str(mailbox.after_landing)) == (None, StartMode.ALL, "keep")
    assert mailbox.password.reveal() == "hunter2"
    session = settings.session
    assert (session.idle_seconds, session.poll_seconds) == (120, 60)
    assert (session.connect_timeout_seconds, session.command_timeout_seconds) == (15, 30)
    assert (session.backoff_initial_seconds, session.backoff_max_seconds) == (1, 300)
    assert session.max_message_bytes == 52_428_800
    store = settings.store
    assert store.database_url.reveal() == "sqlite+aiosqlite:///ops-mail.db"
    assert (store.lease_seconds, store.store_url, store.auto_migrate) == (30, "db:", True)
    assert store.forbidden_tables == ("domain_event_outbox", "memory_sync_outbox")
    handler = settings.handler
    assert (handler.target, handler.concurrency, handler.timeout_seconds) == (None, 4, 300)
    assert (handler.max_attempts, handler.order) == (5, HandlerOrder.ANY)
    assert (settings.maintenance.verify_interval_seconds, settings.maintenance.retention_days) == (86_400, 0)
    assert (settings.http.host, settings.http.port) == ("0.0.0.0", 8080)
    assert (settings.http.show_content, settings.http.token) == (False, None)
    assert (settings.log.level, settings.log.format, settings.log.directory) == (LogLevel.INFO, LogFormat.AUTO, None)


@pytest.mark.parametrize(("security", "port"), [("tls", 993), ("starttls", 143), ("plain", 143), ("STARTTLS", 143)])
def test_the_port_follows_the_security_unless_given(security: str, port: int) -> None:
    assert load(IMAP_SECURITY=security).mailboxes[0].port == port
    assert load(IMAP_SECURITY=security, IMAP_PORT="10993").mailboxes[0].port == 10993


@pytest.mark.parametrize(
    ("text", "start"),
    [("all", StartMode.ALL), ("NOW", StartMode.NOW), ("2026-01-31", date(2026, 1, 31))],
)
def test_start_is_a_mode_or_a_date(text: str, start: StartMode | date) -> None:
    assert load(IMAP_START=text).mailboxes[0].start == start


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("keep", AfterLanding(AfterAction.KEEP)),
        ("Seen", AfterLanding(AfterAction.SEEN)),
        ("delete", AfterLanding(AfterAction.DELETE)),
        ("move:Erledigt/März 2026", AfterLanding(AfterAction.MOVE, "Erledigt/März 2026")),
    ],
)
def test_after_landing_is_an_action_with_a_folder_for_move(text: str, after: AfterLanding) -> None:
    assert load(IMAP_AFTER_LANDING=text).mailboxes[0].after_landing == after


def test_inbox_is_one_folder_in_any_case() -> None:
    assert load(IMAP_FOLDER="Inbox").mailboxes[0].folder == "INBOX"
    assert load(IMAP_FOLDER="Inbox/Rechnungen").mailboxes[0].folder == "Inbox/Rechnungen"


def test_the_handler_is_a_webhook_or_a_callable() -> None:
    url = "https://ops.example.org/mail?token=t0psecret"
    target = load(HANDLER="webhook", WEBHOOK_URL=url, WEBHOOK_SECRET="signing").handler.target
    assert isinstance(target, WebhookTarget)
    assert (target.url, target.secret and target.secret.reveal()) == (url, "signing")
    assert "t0psecret" not in repr(target)
    assert load(HANDLER="shop.mail:Inbox.handle").handler.target == CallableTarget("shop.mail", "Inbox.handle")


def test_lists_are_split_at_commas() -> None:
    assert load(FORBIDDEN_TABLES=" orders , billing.invoices,").store.forbidden_tables == ("orders", "billing.invoices")


def test_http_port_0_lets_the_system_choose() -> None:
    assert load(HTTP_PORT="0").http.port == 0


def test_content_is_shown_to_those_who_hold_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("0123456789abcdef\n")
    http = load(HTTP_SHOW_CONTENT="true", HTTP_TOKEN_FILE=str(tmp_path / "token")).http
    assert http.show_content is True
    assert http.token is not None
    assert http.token.reveal() == "0123456789abcdef"
    assert load(HTTP_TOKEN="0123456789abcdef").http.show_content is False


def test_seconds_may_be_fractions() -> None:
    assert load(IDLE_SECONDS="0.25").session.idle_seconds == 0.25


def test_an_empty_value_counts_as_unset() -> None:
    assert load(IDLE_SECONDS="", HANDLER=" ", IMAP_PORT="", FORBIDDEN_TABLES="") == load()


def test_the_environment_wins_over_the_env_file_and_an_empty_value_does_not(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("OPS_MAIL_IDLE_SECONDS=10\nOPS_MAIL_POLL_SECONDS=20\nOPS_MAIL_LEASE_SECONDS=40\nOTHER=x\n")
    settings = load_settings(MAILBOX | {"OPS_MAIL_IDLE_SECONDS": "11", "OPS_MAIL_POLL_SECONDS": ""}, env_file)
    assert (settings.session.idle_seconds, settings.session.poll_seconds) == (11, 20)
    assert settings.store.lease_seconds == 40


def test_the_process_environment_and_the_working_directory_are_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("OPS_MAIL_IMAP_HOST=from-file\nOPS_MAIL_IMAP_USERNAME=u\nOPS_MAIL_IMAP_PASSWORD=p\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPS_MAIL_IMAP_HOST", "from-environment")
    assert load_settings().mailboxes[0].host == "from-environment"


@pytest.mark.parametrize(
    ("line", "password"),
    [
        ("OPS_MAIL_IMAP_PASSWORD=pa${HOME}ss#1", "pa${HOME}ss#1"),
        ("OPS_MAIL_IMAP_PASSWORD='with # and \" and spaces '", 'with # and " and spaces '),
        ('OPS_MAIL_IMAP_PASSWORD="grün"  # a comment', "grün"),
        ("export OPS_MAIL_IMAP_PASSWORD=exported", "exported"),
        ("\ufeffOPS_MAIL_IMAP_PASSWORD=after-a-byte-order-mark", "after-a-byte-order-mark"),
    ],
)
def test_a_password_in_the_env_file_is_taken_as_it_stands(tmp_path: Path, line: str, password: str) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text(line + "\n", encoding="utf-8")
    named = {name: value for name, value in MAILBOX.items() if not name.endswith("PASSWORD")}
    assert load_settings(named, env_file).mailboxes[0].password.reveal() == password


def test_a_folder_called_dot_env_is_not_an_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert load_settings(MAILBOX, tmp_path / ".env").mailboxes


def test_what_kubernetes_adds_for_services_is_not_a_setting() -> None:
    links = {
        "OPS_MAIL_SERVICE_HOST": "10.0.0.1",
        "OPS_MAIL_SERVICE_PORT": "8080",
        "OPS_MAIL_SERVICE_PORT_HTTP": "8080",
        "OPS_MAIL_PORT": "tcp://10.0.0.1:8080",
        "OPS_MAIL_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "OPS_MAIL_PORT_8080_TCP_ADDR": "10.0.0.1",
        "OPS_MAIL_DB_PORT_3306_TCP_PROTO": "tcp",
        "OPS_MAIL_IMAP_PORT": "tcp://10.0.0.2:143",
        "OPS_MAIL_IMAP_SERVICE_HOST": "10.0.0.2",
    }
    assert load_settings(MAILBOX | links, None) == load()


@pytest.mark.parametrize("variables", [{"OPS_MAIL_ENABLED": "false"}, {"OPS_MAIL_ROLE": "consumer"}])
def test_a_process_that_opens_no_mailbox_needs_none(variables: dict[str, str]) -> None:
    assert load_settings(variables, None).mailboxes == ()


def test_a_command_that_uses_the_database_alone_needs_no_mailbox() -> None:
    assert load_settings({}, None, mailboxes_required=False).mailboxes == ()
    half = {"OPS_MAIL_IMAP_HOST": "imap.example.org", "OPS_MAIL_IMAP_PORT": "none"}
    with pytest.raises(ConfigError) as caught:
        load_settings(half, None, mailboxes_required=False)
    assert caught.value.problems == ["OPS_MAIL_IMAP_PORT: must be a whole number between 1 and 65535, not 'none'"]


def test_only_picks_mailboxes_by_name(tmp_path: Path) -> None:
    file = tmp_path / "mailboxes.toml"
    entry = '[[mailbox]]\nname="{}"\nhost="h"\nusername="u"\npassword="p"\n'
    file.write_text("".join(entry.format(name) for name in ("a", "b", "c")))
    variables = {"OPS_MAIL_MAILBOXES_FILE": str(file), "OPS_MAIL_ONLY": "c,a"}
    assert [mailbox.name for mailbox in load_settings(variables, None).mailboxes] == ["a", "c"]


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load().role = Role.LEADER  # type: ignore[misc] # frozen is what is tested


def test_loading_lets_logs_mask_every_secret() -> None:
    url = "https://ops.example.org/hooks/T0K3N"
    load(IMAP_PASSWORD="imap-1", HANDLER="webhook", WEBHOOK_URL=url, WEBHOOK_SECRET="signing-2",
         DATABASE_URL="mysql+aiomysql://u:data-3@h/db")  # fmt: skip
    assert redact(f"imap-1, signing-2, data-3 and {url}") == "***, ***, *** and ***"


def test_the_example_file_holds_every_setting_with_its_default(tmp_path: Path) -> None:
    text = Path(".env.example").read_text(encoding="utf-8")
    named = {line.lstrip("# ").partition("=")[0] for line in text.splitlines() if "OPS_MAIL_" in line and "=" in line}
    files = {"OPS_MAIL_DATABASE_URL_FILE", "OPS_MAIL_HTTP_TOKEN_FILE", "OPS_MAIL_WEBHOOK_SECRET_FILE"}
    assert set(KNOWN_NAMES) - named == files
    defaults = load()
    own = {"IMAP_HOST", "IMAP_USERNAME", "IMAP_PASSWORD_FILE", "MAILBOXES_FILE", "ONLY", "WEBHOOK_URL"}
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.removeprefix("#OPS_MAIL_").partition("=")
        if line.startswith("#OPS_MAIL_") and name not in own and "://ops_mail:" not in value:
            values[name] = value
    assert len(values) > 25
    assert load(**values) == defaults

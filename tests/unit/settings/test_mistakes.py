"""Each mistake is one clear line that names its variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops_mail.errors import ConfigError
from ops_mail.settings import load_settings

MAILBOX = {
    "OPS_MAIL_IMAP_HOST": "imap.example.org",
    "OPS_MAIL_IMAP_USERNAME": "ops@example.org",
    "OPS_MAIL_IMAP_PASSWORD": "hunter2",
}


def problems(variables: dict[str, str], env_file: Path | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_settings(variables, env_file)
    assert "hunter2" not in str(caught.value)
    assert "\n".join(caught.value.problems) == str(caught.value)
    return caught.value.problems


def test_no_setting_at_all_may_mean_the_wrong_folder(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    asks = f"no OPS_MAIL_… variable is set, and there is no {env_file}: is this the right folder?"
    assert problems({}, env_file)[-1] == asks
    assert asks not in problems({"OPS_MAIL_IMAP_HOST": "h"}, env_file)
    env_file.touch()
    assert asks not in problems({}, env_file)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ENABLED", "maybe", "must be true or false, not 'maybe'"),
        ("ROLE", "boss", "must be one of all, leader, consumer, not 'boss'"),
        ("INSTANCE_NAME", "a\x1bb", "must not contain control characters or line breaks"),
        ("INSTANCE_NAME", "x" * 191, "must be at most 190 characters long"),
        ("IMAP_HOST", "imaps://u:hunter2@h", "must be a host name or an IP address alone, such as imap.example.org"),
        ("IMAP_PORT", "imaps", "must be a whole number between 1 and 65535, not 'imaps'"),
        ("IMAP_PORT", "0", "must be between 1 and 65535, not '0'"),
        ("IMAP_PORT", "65536", "must be between 1 and 65535, not '65536'"),
        ("IMAP_SECURITY", "ssl", "must be one of tls, starttls, plain, not 'ssl'"),
        ("IMAP_AUTH", "kerberos", "must be one of password, oauth2, not 'kerberos'"),
        ("IMAP_PASSWORD", "hunter2\nA1 LOGOUT", "must not contain line breaks"),
        ("IMAP_START", "yesterday", "must be all, now or a date such as 2026-01-31, not 'yesterday'"),
        ("IMAP_START", "2026-02-30", "must be all, now or a date such as 2026-01-31, not '2026-02-30'"),
        ("IMAP_AFTER_LANDING", "burn", "must be one of keep, seen, move:FOLDER, delete, not 'burn'"),
        ("IMAP_AFTER_LANDING", "seen:x", "must be one of keep, seen, move:FOLDER, delete"),
        ("IMAP_AFTER_LANDING", "move:", "needs a folder to move to, such as move:Archive"),
        ("IMAP_AFTER_LANDING", "move:inbox", "must move to another folder than INBOX"),
        ("IMAP_CA_FILE", "/nowhere/ca.pem", "cannot read /nowhere/ca.pem: No such file or directory"),
        ("IDLE_SECONDS", "0", "must be more than 0 and at most 1740, not '0'"),
        ("IDLE_SECONDS", "1741", "must be more than 0 and at most 1740, not '1741'"),
        ("IDLE_SECONDS", "2m", "must be a number more than 0 and at most 1740, not '2m'"),
        ("IDLE_SECONDS", "nan", "must be more than 0 and at most 1740, not 'nan'"),
        ("POLL_SECONDS", "-1", "must be more than 0 and at most 86400, not '-1'"),
        ("CONNECT_TIMEOUT_SECONDS", "inf", "must be more than 0 and at most 3600, not 'inf'"),
        ("COMMAND_TIMEOUT_SECONDS", "0", "must be more than 0 and at most 3600, not '0'"),
        ("BACKOFF_INITIAL_SECONDS", "0", "must be more than 0 and at most 86400, not '0'"),
        ("BACKOFF_MAX_SECONDS", "0.5", "must be at least OPS_MAIL_BACKOFF_INITIAL_SECONDS (1), not 0.5"),
        ("MAX_MESSAGE_BYTES", "50MB", "must be a whole number between 1024 and 4294967295, not '50MB'"),
        ("LEASE_SECONDS", "0.9", "must be between 1 and 3600, not '0.9'"),
        ("STORE_URL", "file://relative", "must be db:, file:///directory (an absolute path) or s3://bucket/prefix"),
        ("STORE_URL", "s3://key:hunter2@b", "must be db:, file:///directory (an absolute path) or s3://bucket/prefix"),
        ("AUTO_MIGRATE", "2", "must be true or false, not '2'"),
        ("FORBIDDEN_TABLES", "a b", "must be a comma list of table names, such as orders,billing.invoices"),
        ("FORBIDDEN_TABLES", "ops_mail_cursor", "must not name ops-mail's own tables (ops_mail_*)"),
        ("HANDLER", "handle", "must be webhook or package.module:callable, not 'handle'"),
        ("HANDLER", "a-b:handle", "must be webhook or package.module:callable"),
        ("HANDLER_CONCURRENCY", "0", "must be between 1 and 256, not '0'"),
        ("HANDLER_CONCURRENCY", "1.5", "must be a whole number between 1 and 256, not '1.5'"),
        ("HANDLER_TIMEOUT_SECONDS", "0", "must be more than 0 and at most 86400, not '0'"),
        ("HANDLER_MAX_ATTEMPTS", "0", "must be between 1 and 1000, not '0'"),
        ("HANDLER_ORDER", "date", "must be one of any, uid, not 'date'"),
        ("WEBHOOK_URL", "ftp://u:hunter2@h/", "must be an http:// or https:// URL with a host"),
        ("WEBHOOK_URL", "https:///mail", "must be an http:// or https:// URL with a host"),
        ("VERIFY_INTERVAL_SECONDS", "-1", "must be between 0 and 31622400, not '-1'"),
        ("RETENTION_DAYS", "-1", "must be between 0 and 36500, not '-1'"),
        ("HTTP_SHOW_CONTENT", "yes please", "must be true or false, not 'yes please'"),
        ("HTTP_TOKEN", "hunter2", "must be at least 16 characters long"),
        ("HTTP_PORT", "-1", "must be between 0 and 65535, not '-1'"),
        ("LOG_LEVEL", "loud", "must be one of DEBUG, INFO, WARNING, ERROR, not 'LOUD'"),
        ("LOG_FORMAT", "xml", "must be one of auto, json, console, not 'xml'"),
        ("SHUTDOWN_GRACE_SECONDS", "0", "must be more than 0 and at most 3600, not '0'"),
    ],
)
def test_a_wrong_value_is_told_with_what_would_be_right(name: str, value: str, says: str) -> None:
    lines = problems(MAILBOX | {f"OPS_MAIL_{name}": value})
    assert len(lines) == 1
    assert lines[0].startswith(f"OPS_MAIL_{name}: {says}")
    assert "\n" not in lines[0]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://root:hunter2@h/db", "uses mysql, which is not an asynchronous driver; write mysql+aiomysql://…"),
        (
            "mysql+pymysql://root:hunter2@h/db",
            "uses mysql+pymysql, which is not an asynchronous driver; write mysql+aio",
        ),
        (
            "mariadb://root:hunter2@h/db",
            "uses mariadb, which is not an asynchronous driver; write mariadb+aiomysql://…",
        ),
        ("sqlite:///x.db", "uses sqlite, which is not an asynchronous driver; write sqlite+aiosqlite:///…"),
        (
            "postgresql+asyncpg://root:hunter2@h/db",
            "is not for MySQL, MariaDB or SQLite; write it like mysql+aiomysql://",
        ),
        ("root:hunter2@h/db", "is not a database URL; write it like mysql+aiomysql://"),
        ("mysql+aiomysql://root:hunter2@h:port/db", "is not a database URL; write it like mysql+aiomysql://"),
        ("mysql+aiomysql://root:a@hunter2@h/db", "has more than one @; write %40 for @ and %25 for % in a password"),
        ("mysql+aiomysql://root:a@h/unter2@h/db", "has more than one @; write %40 for @ and %25 for % in a password"),
        ("mysql+aiomysql://root:hunter2@h", "names no database; write it like mysql+aiomysql://"),
        ("sqlite+aiosqlite://", "is a database in memory, which would lose mails at exit; name a file"),
        ("sqlite+aiosqlite:///:memory:", "is a database in memory, which would lose mails at exit; name a file"),
    ],
)
def test_a_database_url_that_cannot_work_is_told_without_its_password(url: str, says: str) -> None:
    (line,) = problems(MAILBOX | {"OPS_MAIL_DATABASE_URL": url})
    assert line.startswith(f"OPS_MAIL_DATABASE_URL: {says}")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite+aiosqlite:////var/lib/ops-mail/ops-mail.db",
        "mysql+aiomysql://u:p@h:3306/db?charset=utf8mb4",
        "mysql+asyncmy://u:p@h/db",
        "mariadb+aiomysql://u:p@h/db",
        "mariadb+asyncmy://u:p@h/db",
    ],
)
def test_asynchronous_drivers_are_accepted(url: str) -> None:
    settings = load_settings(MAILBOX | {"OPS_MAIL_DATABASE_URL": url}, None)
    assert settings.store.database_url.reveal() == url


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("OPS_MAIL_IDEL_SECONDS", "OPS_MAIL_IDLE_SECONDS"),
        ("OPS_MAIL_IMAP_USER", "OPS_MAIL_IMAP_USERNAME"),
        ("OPS_MAIL_DB_URL", "OPS_MAIL_DATABASE_URL"),
        ("OPS_MAIL_PASSWORD", "OPS_MAIL_IMAP_PASSWORD"),
        ("OPS_MAIL_LEASE", "OPS_MAIL_LEASE_SECONDS"),
        ("ops_mail_http_port", "OPS_MAIL_HTTP_PORT"),
    ],
)
def test_an_unknown_name_is_told_with_the_one_meant(tmp_path: Path, name: str, meant: str) -> None:
    expected = [f"{name}: unknown setting; did you mean {meant}?"]
    assert problems(MAILBOX | {name: "hunter2"}) == expected
    env_file = tmp_path / ".env"
    env_file.write_text(f"{name}=hunter2\n")
    assert problems(MAILBOX, env_file) == expected


def test_a_name_like_no_other_is_told_without_a_guess() -> None:
    assert problems(MAILBOX | {"OPS_MAIL_QQQQ": "1"}) == ["OPS_MAIL_QQQQ: unknown setting"]


def test_what_is_missing_is_told_all_at_once() -> None:
    assert problems({"OPS_MAIL_IDLE_SECONDS": "-5"}) == [
        "OPS_MAIL_IDLE_SECONDS: must be more than 0 and at most 1740, not '-5'",
        "OPS_MAIL_IMAP_HOST: is required",
        "OPS_MAIL_IMAP_USERNAME: is required",
        "OPS_MAIL_IMAP_PASSWORD: is required (or OPS_MAIL_IMAP_PASSWORD_FILE, the path of a file that holds it)",
    ]


@pytest.mark.parametrize("name", ["IMAP_PASSWORD", "DATABASE_URL", "WEBHOOK_SECRET", "HTTP_TOKEN"])
def test_a_secret_and_its_file_exclude_each_other(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("sqlite+aiosqlite:///x.db")
    variables = {f"OPS_MAIL_{name}": "sqlite+aiosqlite:///x.db", f"OPS_MAIL_{name}_FILE": str(tmp_path / "secret")}
    assert problems(MAILBOX | variables) == [
        f"OPS_MAIL_{name}: is given together with OPS_MAIL_{name}_FILE; keep one of them"
    ]


@pytest.mark.parametrize("name", ["IMAP_PASSWORD_FILE", "DATABASE_URL_FILE", "WEBHOOK_SECRET_FILE", "HTTP_TOKEN_FILE"])
def test_a_secret_file_that_cannot_be_read_is_a_mistake(tmp_path: Path, name: str) -> None:
    variables = {key: value for key, value in MAILBOX.items() if name[:13] not in key}
    variables[f"OPS_MAIL_{name}"] = str(tmp_path / "none")
    assert problems(variables) == [f"OPS_MAIL_{name}: cannot read {tmp_path}/none: No such file or directory"]


def test_imap_variables_and_a_mailboxes_file_exclude_each_other(tmp_path: Path) -> None:
    file = tmp_path / "mailboxes.toml"
    file.write_text('[[mailbox]]\nhost="h"\nusername="u"\npassword="p"\n')
    variables = {"OPS_MAIL_MAILBOXES_FILE": str(file), "OPS_MAIL_IMAP_FOLDER": "INBOX"}
    assert problems(variables) == [
        "OPS_MAIL_MAILBOXES_FILE: excludes OPS_MAIL_IMAP_*, but OPS_MAIL_IMAP_FOLDER is given too"
    ]


def test_only_with_an_unknown_mailbox_is_a_mistake() -> None:
    assert problems(MAILBOX | {"OPS_MAIL_ONLY": "ops@example.com"}) == [
        'OPS_MAIL_ONLY: there is no mailbox "ops@example.com"; did you mean ops@example.org?'
    ]
    assert problems(MAILBOX | {"OPS_MAIL_ONLY": "ops@example.org,x"}) == [
        'OPS_MAIL_ONLY: there is no mailbox "x"; known: ops@example.org'
    ]


def test_showing_content_needs_a_token() -> None:
    assert problems(MAILBOX | {"OPS_MAIL_HTTP_SHOW_CONTENT": "true"}) == [
        "OPS_MAIL_HTTP_TOKEN: is required when OPS_MAIL_HTTP_SHOW_CONTENT is true (or OPS_MAIL_HTTP_TOKEN_FILE)"
    ]


def test_a_webhook_needs_its_url() -> None:
    assert problems(MAILBOX | {"OPS_MAIL_HANDLER": "webhook"}) == [
        "OPS_MAIL_WEBHOOK_URL: is required when OPS_MAIL_HANDLER is webhook"
    ]


def test_a_line_of_the_env_file_that_is_no_assignment_is_told_by_its_number(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("# comment\n\nOPS_MAIL_IMAP_PASSWORD='hunter2\nOPS_MAIL_ROLE\n")
    assert problems(MAILBOX, env_file) == [
        f"{env_file} line 3: cannot be understood; write NAME=value, with quotes closed",
        f"OPS_MAIL_ROLE: has no value in {env_file} line 4; write OPS_MAIL_ROLE=value",
    ]


def test_an_env_file_in_another_encoding_is_told(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_bytes("OPS_MAIL_INSTANCE_NAME=grün\n".encode("latin-1"))
    assert problems(MAILBOX, env_file) == [f"{env_file}: cannot be read: not UTF-8 text"]

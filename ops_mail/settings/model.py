"""The settings of one process, checked and typed. Built by `load_settings` alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path

from ops_mail.settings.database_url import DatabaseUrl, safe_database_url
from ops_mail.settings.mailbox import KEEP, VARIABLES, AfterLanding, AuthMethod, MailboxSource, Security, StartMode
from ops_mail.settings.secret import Secret


class Role(StrEnum):
    """What this process does: `all` and `leader` listen and handle, `consumer` only handles."""

    ALL = "all"
    LEADER = "leader"
    CONSUMER = "consumer"


class HandlerOrder(StrEnum):
    """Whether mails of one mailbox are handled strictly by UID."""

    ANY = "any"
    UID = "uid"


class LogLevel(StrEnum):
    """The least severe level that is logged."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    """How a log line looks; `auto` is `console` on a terminal, else `json`."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class MailboxSettings:
    """One folder of one mailbox. `folder` is plain Unicode; `start` as a date means INTERNALDATE on or after it.

    `source`: where all this is set.
    """

    name: str
    host: str
    port: int
    security: Security
    username: str
    password: Secret
    auth: AuthMethod = AuthMethod.PASSWORD
    folder: str = "INBOX"
    ca_file: Path | None = None
    start: StartMode | date = StartMode.ALL
    after_landing: AfterLanding = KEEP
    source: MailboxSource = VARIABLES


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a mailbox is listened to. All times in seconds."""

    idle_seconds: float
    poll_seconds: float
    connect_timeout_seconds: float
    command_timeout_seconds: float
    backoff_initial_seconds: float
    backoff_max_seconds: float
    max_message_bytes: int

    @property
    def sync_limit_seconds(self) -> float:
        """The oldest that a sync may be: two IDLE windows (or poll intervals) and a command's time."""
        return 2 * max(self.idle_seconds, self.poll_seconds) + self.command_timeout_seconds


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where mails land. `database_url` may hold a password: show `safe_url` instead."""

    database_url: DatabaseUrl
    lease_seconds: float
    store_url: str
    auto_migrate: bool
    forbidden_tables: tuple[str, ...]

    @property
    def safe_url(self) -> str:
        """The database's URL without its password and options, for people."""
        return safe_database_url(self.database_url.reveal())


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Mails are posted to `url`; with `secret` each request is signed. The URL may hold a token: never log it.

    With `block_private` requests go to public addresses alone.
    """

    url: str = field(repr=False)
    secret: Secret | None
    block_private: bool = False


@dataclass(frozen=True, slots=True)
class CallableTarget:
    """Mails are given to `attribute` of `module`."""

    module: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.module}:{self.attribute}"


@dataclass(frozen=True, slots=True)
class HandlerSettings:
    """What is done with landed mails; without a target they stay `landed`."""

    target: WebhookTarget | CallableTarget | None
    concurrency: int
    timeout_seconds: float
    max_attempts: int
    order: HandlerOrder


@dataclass(frozen=True, slots=True)
class MaintenanceSettings:
    """What runs in the background.

    `retention_days` 0 keeps mails for ever, `verify_interval_seconds` 0 never compares with the server and never
    fetches again what landed without its content.
    """

    verify_interval_seconds: float
    retention_days: int


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where the endpoints listen; port 0 lets the system choose.

    With a `token` the page and `/api/status` are for those who hold it; without one `show_content` is False.
    """

    host: str
    port: int
    show_content: bool
    token: Secret | None


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged, how and where; with `directory` also into files there."""

    level: LogLevel
    format: LogFormat
    directory: Path | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is set, in groups. `mailboxes` holds those this process runs (after ONLY)."""

    enabled: bool
    role: Role
    instance_name: str
    mailboxes: tuple[MailboxSettings, ...]
    session: SessionSettings
    store: StoreSettings
    handler: HandlerSettings
    maintenance: MaintenanceSettings
    http: HttpSettings
    log: LogSettings
    shutdown_grace_seconds: float

    @property
    def safe_url(self) -> str:
        """The database's URL without its password, for people."""
        return self.store.safe_url

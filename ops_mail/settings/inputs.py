"""Every setting there is, with its default and bounds, before the groups are built and cross-checked."""

from __future__ import annotations

import socket
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ops_mail.settings import fields
from ops_mail.settings.mailbox import KEEP, AuthMethod, Security, StartMode
from ops_mail.settings.model import HandlerOrder, LogFormat, LogLevel, Role

PREFIX = "OPS_MAIL_"
IMAP_PREFIX = "OPS_MAIL_IMAP_"

_HOUR = 3600.0
_DAY = 24 * _HOUR
_LARGEST_MESSAGE = 2**32 - 1  # RFC822.SIZE is a 32-bit number (RFC 3501 section 9)


class MailboxInput(BaseModel):
    """The keys of one `[[mailbox]]`; all but `name` exist as OPS_MAIL_IMAP_… too."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: fields.Text | None = None
    host: fields.Host | None = None
    port: fields.Port | None = None
    security: Annotated[Security, fields.Lower] = Security.TLS
    username: fields.Text | None = None
    password: fields.SecretText | None = Field(None, repr=False)
    password_file: fields.FilePath | None = None
    auth: Annotated[AuthMethod, fields.Lower] = AuthMethod.PASSWORD
    folder: fields.Folder = "INBOX"
    ca_file: fields.FilePath | None = None
    start: fields.Start = StartMode.ALL
    after_landing: fields.After = KEEP


class EnvironmentInput(BaseSettings):
    """Every OPS_MAIL_ variable but OPS_MAIL_IMAP_…."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, hide_input_in_errors=True)

    enabled: fields.Flag = True
    role: Annotated[Role, fields.Lower] = Role.ALL
    instance_name: fields.ShortText = Field(default_factory=socket.gethostname)
    only: fields.Names | None = None
    mailboxes_file: fields.FilePath | None = None

    # RFC 2177: an IDLE is to be renewed before 29 minutes are over.
    idle_seconds: Annotated[float, fields.Number, Field(gt=0, le=29 * 60)] = 120.0
    poll_seconds: Annotated[float, fields.Number, Field(gt=0, le=_DAY)] = 60.0
    connect_timeout_seconds: Annotated[float, fields.Number, Field(gt=0, le=_HOUR)] = 15.0
    command_timeout_seconds: Annotated[float, fields.Number, Field(gt=0, le=_HOUR)] = 30.0
    backoff_initial_seconds: Annotated[float, fields.Number, Field(gt=0, le=_DAY)] = 1.0
    backoff_max_seconds: Annotated[float, fields.Number, Field(gt=0, le=_DAY)] = 300.0
    max_message_bytes: Annotated[int, fields.Number, Field(ge=1024, le=_LARGEST_MESSAGE)] = 50 * 1024 * 1024

    database_url: fields.SecretText | None = Field(None, repr=False)
    database_url_file: fields.FilePath | None = None
    lease_seconds: Annotated[float, fields.Number, Field(ge=1, le=_HOUR)] = 30.0
    store_url: fields.StoreUrl = "db:"
    auto_migrate: fields.Flag = True
    forbidden_tables: fields.TableNames = ("domain_event_outbox", "memory_sync_outbox")

    handler: fields.Handler | None = None
    handler_concurrency: Annotated[int, fields.Number, Field(ge=1, le=256)] = 4
    handler_timeout_seconds: Annotated[float, fields.Number, Field(gt=0, le=_DAY)] = 300.0
    handler_max_attempts: Annotated[int, fields.Number, Field(ge=1, le=1000)] = 5
    handler_order: Annotated[HandlerOrder, fields.Lower] = HandlerOrder.ANY
    webhook_url: fields.WebhookUrl | None = Field(None, repr=False)
    webhook_secret: fields.SecretText | None = Field(None, repr=False)
    webhook_secret_file: fields.FilePath | None = None
    webhook_block_private: fields.Flag = False

    verify_interval_seconds: Annotated[float, fields.Number, Field(ge=0, le=366 * _DAY)] = 86400.0
    retention_days: Annotated[int, fields.Number, Field(ge=0, le=36500)] = 0

    http_host: fields.Host = "0.0.0.0"  # noqa: S104 - the endpoints are meant for probes from outside the container
    http_port: fields.ListenPort = 8080
    http_show_content: fields.Flag = False
    http_token: fields.SecretText | None = Field(None, repr=False)
    http_token_file: fields.FilePath | None = None

    log_level: Annotated[LogLevel, fields.Upper] = LogLevel.INFO
    log_format: Annotated[LogFormat, fields.Lower] = LogFormat.AUTO
    log_dir: fields.FilePath | None = None

    shutdown_grace_seconds: Annotated[float, fields.Number, Field(gt=0, le=_HOUR)] = 10.0

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not a source here
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not a source here
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not a source here
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` hands over: the variables are merged there, and os.environ is not looked at again."""
        return (init_settings,)

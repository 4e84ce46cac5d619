"""From variables and files to `Settings`, or to one line for each mistake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from ops_mail.errors import ConfigError
from ops_mail.settings.database_url import DatabaseUrl, database_url_problem
from ops_mail.settings.inputs import IMAP_PREFIX, PREFIX, EnvironmentInput, MailboxInput
from ops_mail.settings.mailboxes import check_unique, mailbox_from_variables, mailboxes_from_file, selected
from ops_mail.settings.model import (
    CallableTarget,
    HandlerSettings,
    HttpSettings,
    LogSettings,
    MailboxSettings,
    MaintenanceSettings,
    Role,
    SessionSettings,
    Settings,
    StoreSettings,
    WebhookTarget,
)
from ops_mail.settings.problems import did_you_mean, problem_lines
from ops_mail.settings.redaction import register_secret
from ops_mail.settings.secret import Secret, SecretError
from ops_mail.settings.sources import MergedSource, merged_variables

DEFAULT_DATABASE_URL = "sqlite+aiosqlite:///ops-mail.db"

_SECRET_NAMES = ("_PASSWORD", "_SECRET", "_TOKEN")
_TOKEN_LENGTH = 16  # what protects mails must not be guessed

KNOWN_NAMES: tuple[str, ...] = (
    *(PREFIX + name.upper() for name in EnvironmentInput.model_fields),
    *(IMAP_PREFIX + name.upper() for name in MailboxInput.model_fields if name != "name"),
)
"""Every variable there is."""


def load_settings(
    env: Mapping[str, str] | None = None,
    env_file: Path | None = Path(".env"),
    *,
    mailboxes_required: bool = True,
) -> Settings:
    """The settings from `env` (default: the process environment) and, below it, from `env_file` if it exists.

    With `mailboxes_required` false, for commands that use the database alone, mailboxes may be missing; those
    that are given are still checked. Raises ConfigError with one line for each mistake, all of them at once.
    """
    problems: list[str] = []
    variables = merged_variables(os.environ if env is None else env, env_file, problems)
    for name, value in variables.items():
        if name.endswith(_SECRET_NAMES):
            register_secret(value)  # before anything is said about any value
    problems.extend(_unknown(variables))
    given = _validated(variables, problems)
    required = mailboxes_required and _needs_mailboxes(given, variables)
    mailboxes = _mailboxes(variables, given, required=required, problems=problems)
    if problems and not variables and env_file is not None and not env_file.exists():
        problems.append(
            f"no OPS_MAIL_… variable is set, and there is no {env_file.absolute()}: is this the right folder?"
        )
    settings = None if given is None else _assemble(given, mailboxes, problems)
    if problems or settings is None:
        raise ConfigError(list(dict.fromkeys(problems)))
    return settings


def _unknown(variables: Mapping[str, str]) -> list[str]:
    # Compared without the prefix, which alone would make any two names alike.
    suffixes = [name.removeprefix(PREFIX) for name in KNOWN_NAMES]
    return [
        f"{name}: unknown setting{did_you_mean(name.upper().removeprefix(PREFIX), suffixes, PREFIX)}"
        for name in sorted(variables)
        if name not in KNOWN_NAMES
    ]


def _validated(variables: Mapping[str, str], problems: list[str]) -> EnvironmentInput | None:
    known = {name: value for name, value in variables.items() if name in KNOWN_NAMES}
    values = MergedSource(EnvironmentInput, known)()
    try:
        return EnvironmentInput(**values)
    except ValidationError as error:
        problems.extend(problem_lines(error, EnvironmentInput, lambda key: PREFIX + key.upper()))
        return None


def _needs_mailboxes(given: EnvironmentInput | None, variables: Mapping[str, str]) -> bool:
    if given is not None:
        return given.enabled and given.role is not Role.CONSUMER
    # Some other value is wrong; ask for mailboxes in the same breath unless that may be needless.
    return not {PREFIX + "ENABLED", PREFIX + "ROLE"} & variables.keys()


def _mailboxes(
    variables: Mapping[str, str], given: EnvironmentInput | None, *, required: bool, problems: list[str]
) -> list[MailboxSettings]:
    file = variables.get(PREFIX + "MAILBOXES_FILE", "").strip()
    imap_names = [name for name in sorted(variables) if name.startswith(IMAP_PREFIX) and name in KNOWN_NAMES]
    if file and imap_names:
        problems.append(
            f"{PREFIX}MAILBOXES_FILE: excludes OPS_MAIL_IMAP_*, but {', '.join(imap_names)} "
            f"{'is' if len(imap_names) == 1 else 'are'} given too"
        )
        return []
    if file:
        mailboxes = mailboxes_from_file(Path(file), problems)
        check_unique(mailboxes, f"{PREFIX}MAILBOXES_FILE: {file}", problems)
    elif required or imap_names:
        known = {name: variables[name] for name in imap_names}
        mailboxes = _single(known, required=required, problems=problems)
    else:
        return []
    if given is None or given.only is None or not mailboxes or problems:
        return mailboxes
    return selected(mailboxes, given.only, problems)


def _single(variables: Mapping[str, str], *, required: bool, problems: list[str]) -> list[MailboxSettings]:
    found: list[str] = []
    mailbox = mailbox_from_variables(variables, found)
    problems.extend(line for line in found if required or not line.partition(": ")[2].startswith("is required"))
    return [] if mailbox is None else [mailbox]


def _assemble(given: EnvironmentInput, mailboxes: list[MailboxSettings], problems: list[str]) -> Settings:
    if given.backoff_max_seconds < given.backoff_initial_seconds:
        problems.append(
            f"{PREFIX}BACKOFF_MAX_SECONDS: must be at least OPS_MAIL_BACKOFF_INITIAL_SECONDS "
            f"({given.backoff_initial_seconds:g}), not {given.backoff_max_seconds:g}"
        )
    return Settings(
        enabled=given.enabled,
        role=given.role,
        instance_name=given.instance_name,
        mailboxes=tuple(mailboxes),
        session=SessionSettings(
            idle_seconds=given.idle_seconds,
            poll_seconds=given.poll_seconds,
            connect_timeout_seconds=given.connect_timeout_seconds,
            command_timeout_seconds=given.command_timeout_seconds,
            backoff_initial_seconds=given.backoff_initial_seconds,
            backoff_max_seconds=given.backoff_max_seconds,
            max_message_bytes=given.max_message_bytes,
        ),
        store=StoreSettings(
            database_url=_database_url(given, problems),
            lease_seconds=given.lease_seconds,
            store_url=given.store_url,
            auto_migrate=given.auto_migrate,
            forbidden_tables=given.forbidden_tables,
        ),
        handler=HandlerSettings(
            target=_target(given, problems),
            concurrency=given.handler_concurrency,
            timeout_seconds=given.handler_timeout_seconds,
            max_attempts=given.handler_max_attempts,
            order=given.handler_order,
        ),
        maintenance=MaintenanceSettings(
            verify_interval_seconds=given.verify_interval_seconds, retention_days=given.retention_days
        ),
        http=_http(given, problems),
        log=LogSettings(level=given.log_level, format=given.log_format, directory=given.log_dir),
        shutdown_grace_seconds=given.shutdown_grace_seconds,
    )


def _database_url(given: EnvironmentInput, problems: list[str]) -> DatabaseUrl:
    name = PREFIX + "DATABASE_URL"
    if given.database_url is not None and given.database_url_file is not None:
        problems.append(_both(name))
    if given.database_url_file is not None:
        url = DatabaseUrl(f"{name}_FILE", path=given.database_url_file)
    else:
        url = DatabaseUrl(name, value=given.database_url or DEFAULT_DATABASE_URL)
    try:
        problem = database_url_problem(url.reveal())
    except SecretError as error:
        problems.append(str(error))
    else:
        if problem is not None:
            problems.append(f"{url.name}: {problem}")
    return url


def _target(given: EnvironmentInput, problems: list[str]) -> WebhookTarget | CallableTarget | None:
    if isinstance(given.handler, CallableTarget):
        return given.handler
    secret = _secret(f"{PREFIX}WEBHOOK_SECRET", given.webhook_secret, given.webhook_secret_file, problems)
    if given.handler is None:
        return None
    if given.webhook_url is None:
        problems.append(f"{PREFIX}WEBHOOK_URL: is required when {PREFIX}HANDLER is webhook")
        return None
    register_secret(given.webhook_url)  # such URLs hold tokens as often as not
    return WebhookTarget(given.webhook_url, secret, given.webhook_block_private)


def _http(given: EnvironmentInput, problems: list[str]) -> HttpSettings:
    name = PREFIX + "HTTP_TOKEN"
    if given.http_show_content and given.http_token is None and given.http_token_file is None:
        problems.append(f"{name}: is required when {PREFIX}HTTP_SHOW_CONTENT is true (or {name}_FILE)")
    token = _secret(name, given.http_token, given.http_token_file, problems, _TOKEN_LENGTH)
    return HttpSettings(given.http_host, given.http_port, given.http_show_content and token is not None, token)


def _secret(
    name: str, value: str | None, path: Path | None, problems: list[str], least_length: int = 1
) -> Secret | None:
    if value is not None and path is not None:
        problems.append(_both(name))
    if value is not None:
        secret = Secret(name, value=value)
    elif path is not None:
        secret = Secret(f"{name}_FILE", path=path)
    else:
        return None
    try:
        # A file is readable now, and logs mask the value from now on.
        if len(secret.reveal()) < least_length:
            problems.append(f"{secret.name}: must be at least {least_length} characters long")
    except SecretError as error:
        problems.append(str(error))
    return secret


def _both(name: str) -> str:
    return f"{name}: is given together with {name}_FILE; keep one of them"

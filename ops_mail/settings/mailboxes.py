"""The mailboxes, from OPS_MAIL_IMAP_… or from the TOML file that OPS_MAIL_MAILBOXES_FILE names."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ops_mail.settings.inputs import IMAP_PREFIX, PREFIX, MailboxInput
from ops_mail.settings.mailbox import VARIABLES, AfterAction, MailboxSource
from ops_mail.settings.model import MailboxSettings
from ops_mail.settings.problems import did_you_mean, problem_lines
from ops_mail.settings.redaction import redact
from ops_mail.settings.secret import Secret, SecretError

Label = Callable[[str], str]
_FILE_VARIABLE = f"{PREFIX}MAILBOXES_FILE"


def mailbox_from_variables(variables: Mapping[str, str], problems: list[str]) -> MailboxSettings | None:
    """The one mailbox that OPS_MAIL_IMAP_… describe."""
    values = {
        name.removeprefix(IMAP_PREFIX).lower(): value
        for name, value in variables.items()
        if name.startswith(IMAP_PREFIX)
    }
    return _build(values, _variable, Path(), VARIABLES, problems)


def mailboxes_from_file(path: Path, problems: list[str]) -> list[MailboxSettings]:
    """Those of the TOML file. Paths inside it are relative to its folder."""
    label = f"{_FILE_VARIABLE}: {path}"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        problems.append(f"{label}: cannot be read: {error.strerror or type(error).__name__}")
        return []
    except UnicodeDecodeError:
        problems.append(f"{label}: is not UTF-8 text")
        return []
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{label}: is not valid TOML: {error}")
        return []
    problems.extend(
        f"{label}: {key}: unknown key; each mailbox starts with [[mailbox]]" for key in document if key != "mailbox"
    )
    tables = document.get("mailbox", [])
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        problems.append(f"{label}: names no mailbox; each one starts with [[mailbox]]")
        return []
    built = [
        _build(_without_empty(table), _toml_label(label, entry), path.parent, MailboxSource(path, entry), problems)
        for table, entry in ((table, _entry(table, number)) for number, table in enumerate(tables, 1))
    ]
    return [mailbox for mailbox in built if mailbox is not None]


def check_unique(mailboxes: list[MailboxSettings], where: str, problems: list[str]) -> None:
    """Two entries for one folder of one mailbox would wait for each other's guard for ever."""
    seen: set[tuple[str, str]] = set()
    for mailbox in mailboxes:
        key = (mailbox.name, mailbox.folder)
        if key in seen:
            problems.append(
                f'{where}: mailbox "{mailbox.name}": folder "{mailbox.folder}" is given twice; '
                "give each entry its own name or folder"
            )
        seen.add(key)


def selected(mailboxes: list[MailboxSettings], only: tuple[str, ...], problems: list[str]) -> list[MailboxSettings]:
    """Those that OPS_MAIL_ONLY names."""
    names = {mailbox.name for mailbox in mailboxes}
    for name in only:
        if name not in names:
            hint = did_you_mean(name, names) or f"; known: {', '.join(sorted(names))}"
            problems.append(f'{PREFIX}ONLY: there is no mailbox "{redact(name)}"{hint}')
    return [mailbox for mailbox in mailboxes if mailbox.name in only]


def _variable(key: str) -> str:
    return f"{IMAP_PREFIX}{key.upper()}"


def _toml_label(file_label: str, entry: str) -> Label:
    return lambda key: f"{file_label}: {entry}: {key}"


def _entry(table: Mapping[str, Any], number: int) -> str:
    """What one entry of the file is called in words."""
    name = table.get("name") or table.get("username")
    return (
        f'mailbox "{name}"' if isinstance(name, str) and name.isprintable() and len(name) <= 80 else f"mailbox {number}"
    )


def _without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if not (isinstance(value, str) and not value.strip())}


def _build(
    values: Mapping[str, Any], label: Label, base: Path, source: MailboxSource, problems: list[str]
) -> MailboxSettings | None:
    try:
        given = MailboxInput.model_validate(values)
    except ValidationError as error:
        problems.extend(problem_lines(error, MailboxInput, label))
        problems.extend(_missing(values, label))
        return None
    mistakes = _missing(values, label)
    ca_file = _ca_file(given, label, base, mistakes)
    if given.after_landing.action is AfterAction.MOVE and given.after_landing.folder == given.folder:
        mistakes.append(f"{label('after_landing')}: must move to another folder than {given.folder}")
    password = None if mistakes else _password(given, label, base, mistakes)
    problems.extend(mistakes)
    if password is None or given.host is None or given.username is None:
        return None
    return MailboxSettings(
        name=given.name or given.username,
        host=given.host,
        port=given.port or given.security.default_port,
        security=given.security,
        username=given.username,
        password=password,
        auth=given.auth,
        folder=given.folder,
        ca_file=ca_file,
        start=given.start,
        after_landing=given.after_landing,
        source=replace(source, password_key="password" if given.password_file is None else "password_file"),
    )


def _missing(values: Mapping[str, Any], label: Label) -> list[str]:
    lines = [f"{label(key)}: is required" for key in ("host", "username") if key not in values]
    twin = label("password_file").rpartition(": ")[2]
    if "password" in values and "password_file" in values:
        lines.append(f"{label('password')}: is given together with {twin}; keep one of them")
    if "password" not in values and "password_file" not in values:
        lines.append(f"{label('password')}: is required (or {twin}, the path of a file that holds it)")
    return lines


def _ca_file(given: MailboxInput, label: Label, base: Path, mistakes: list[str]) -> Path | None:
    if given.ca_file is None:
        return None
    path = (base / given.ca_file).absolute()  # read at each connection, wherever the process has gone meanwhile
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        mistakes.append(f"{label('ca_file')}: cannot read {path}: {error.strerror or type(error).__name__}")
        return None


def _password(given: MailboxInput, label: Label, base: Path, mistakes: list[str]) -> Secret | None:
    if given.password_file is None:
        secret = Secret(label("password"), value=given.password)
    else:
        secret = Secret(label("password_file"), path=base / given.password_file)
    try:
        secret.reveal()  # a file is readable now, and logs mask the value from now on
    except SecretError as error:
        mistakes.append(str(error))
    return secret

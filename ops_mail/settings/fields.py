"""The kinds of values that settings hold, with their bounds; used for variables and TOML keys alike.

A validator's message completes the sentence "NAME: …" and never repeats a value that may be secret.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from ops_mail.settings.mailbox import AfterAction, AfterLanding, StartMode
from ops_mail.settings.model import CallableTarget

_NAME_LENGTH = 255  # as the columns that hold a mailbox and a folder
_SHORT_NAME_LENGTH = 190  # with a process id and a random part it still fits the column that holds a holder
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HANDLER = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*(\.[^\W\d]\w*)*)")
_TABLE = re.compile(r"[\w$]+(\.[\w$]+)?")
_S3 = re.compile(r"s3://[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9](/[^?#]*)?")


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _plain_text(value: str) -> str:
    if _CONTROL.search(value):
        raise ValueError("must not contain control characters or line breaks")
    return value


def _secret_text(value: str) -> str:
    # RFC 3501 section 9: a quoted string holds no CR, LF or NUL, and none of them is ever meant in a password.
    if re.search(r"[\r\n\x00]", value):
        raise ValueError("must not contain line breaks")
    return value


def _host(value: str) -> str:
    if "/" in value or " " in value or "@" in value:
        raise ValueError("must be a host name or an IP address alone, such as imap.example.org")
    return value.strip("[]")


def _folder(value: str) -> str:
    # RFC 3501 section 5.1: INBOX is one name in any case.
    return "INBOX" if value.upper() == "INBOX" else value


def _start(value: Any) -> StartMode | date:
    if isinstance(value, datetime):
        # pydantic turns ValueError alone into a problem of the field
        raise ValueError("must be a date without a time, such as 2026-01-31")  # noqa: TRY004 - as said above
    if isinstance(value, date):
        return value
    text = str(value).strip()
    try:
        return StartMode(text.lower())
    except ValueError:
        pass
    try:
        return date.fromisoformat(text) if "-" in text else _refuse_start()
    except ValueError:
        return _refuse_start()


def _refuse_start() -> date:
    raise ValueError("must be all, now or a date such as 2026-01-31")


def _after_landing(value: Any) -> AfterLanding:
    action, colon, folder = str(value).strip().partition(":")
    action, folder = action.strip().lower(), folder.strip()
    if action == AfterAction.MOVE:
        if not folder:
            raise ValueError("needs a folder to move to, such as move:Archive")
        return AfterLanding(AfterAction.MOVE, _folder(_plain_text(folder)))
    if colon or action not in set(AfterAction):
        raise ValueError("must be one of keep, seen, move:FOLDER, delete")
    return AfterLanding(AfterAction(action))


def _comma_list(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(part for part in (piece.strip() for piece in value.split(",")) if part)
    return value


def _table_names(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if not _TABLE.fullmatch(name):
            raise ValueError("must be a comma list of table names, such as orders,billing.invoices")
        if name.rpartition(".")[2].lower().startswith("ops_mail_"):
            raise ValueError("must not name ops-mail's own tables (ops_mail_*)")
    return value


def _store_url(value: str) -> str:
    if value == "db:":
        return value
    if value.startswith("file://") and (path := value.removeprefix("file://")).startswith("/") and path.strip("/"):
        return value
    if _S3.fullmatch(value):
        return value
    raise ValueError("must be db:, file:///directory (an absolute path) or s3://bucket/prefix")


def _handler(value: Any) -> CallableTarget | str:
    text = str(value).strip()
    if text.lower() == "webhook":
        return "webhook"
    match = _HANDLER.fullmatch(text)
    if match is None:
        raise ValueError("must be webhook or package.module:callable")
    return CallableTarget(match["module"], match["attribute"])


def _webhook_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ValueError("must be an http:// or https:// URL with a host")
    return value


def _readable_file(value: Path) -> Path:
    try:
        with value.open("rb"):
            return value
    except OSError as error:
        raise ValueError(f"cannot read {value}: {error.strerror or type(error).__name__}") from error


def _number(value: Any) -> Any:
    # TOML's true is 1 to pydantic, which is never what was meant.
    return str(value).lower() if isinstance(value, bool) else _stripped(value)


Strip = BeforeValidator(_stripped)
Number = BeforeValidator(_number)

Text = Annotated[str, Field(min_length=1, max_length=_NAME_LENGTH), Strip, AfterValidator(_plain_text)]
ShortText = Annotated[str, Field(min_length=1, max_length=_SHORT_NAME_LENGTH), Strip, AfterValidator(_plain_text)]
Host = Annotated[str, Field(min_length=1, max_length=255), Strip, AfterValidator(_plain_text), AfterValidator(_host)]
Folder = Annotated[Text, AfterValidator(_folder)]
SecretText = Annotated[str, Field(min_length=1), AfterValidator(_secret_text)]
FilePath = Annotated[Path, Strip]
ReadableFile = Annotated[Path, Strip, AfterValidator(_readable_file)]
Port = Annotated[int, Number, Field(ge=1, le=65535)]
ListenPort = Annotated[int, Number, Field(ge=0, le=65535)]
Flag = Annotated[bool, Strip]

Start = Annotated[Any, AfterValidator(_start)]
After = Annotated[Any, AfterValidator(_after_landing)]
Names = Annotated[tuple[Text, ...], NoDecode, BeforeValidator(_comma_list)]
TableNames = Annotated[tuple[Text, ...], NoDecode, BeforeValidator(_comma_list), AfterValidator(_table_names)]
StoreUrl = Annotated[str, Strip, AfterValidator(_plain_text), AfterValidator(_store_url)]
Handler = Annotated[Any, AfterValidator(_handler)]
WebhookUrl = Annotated[str, Strip, AfterValidator(_plain_text), AfterValidator(_webhook_url)]

Upper = BeforeValidator(_upper)
Lower = BeforeValidator(_lower)

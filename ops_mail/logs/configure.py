"""Sets logging up for the process: structlog's and the standard library's events take the same way out."""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import sys
import threading
from collections.abc import MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import structlog

from ops_mail.errors import ConfigError
from ops_mail.logs.plain import PlainEvent, plain_event
from ops_mail.logs.render import ConsoleFormatter, JsonFormatter
from ops_mail.logs.writer import LogWriter, QueueingHandler
from ops_mail.settings import LogFormat, LogSettings

_FILE_BYTES = 10 * 1024 * 1024
_FILES_KEPT = 5

# These tell parameters of statements, parts of mails or tokens below these levels, whatever LOG_LEVEL says (P11).
_QUIET = {
    "aioimaplib": logging.CRITICAL + 1,  # logs tokens at DEBUG and every line it reads
    "aiosqlite": logging.WARNING,
    "aiomysql": logging.WARNING,
    "asyncmy": logging.WARNING,
    "sqlalchemy": logging.WARNING,
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
    "alembic": logging.WARNING,  # keeps no secret, but the store tells of each migration itself
}
_EVENT_ATTRIBUTE = "ops_mail_event"

_format_exception = structlog.processors.ExceptionRenderer()  # plain tracebacks: one with locals would show secrets


class LogOutput:
    """What `configure_logging` set up; `close` before the process ends writes what is still queued."""

    def __init__(self, writer: LogWriter, before: list[logging.Handler]) -> None:
        self._writer = writer
        self._before = before

    @property
    def dropped(self) -> int:
        """Events lost because they came faster than they could be written."""
        return self._writer.dropped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, timeout: float = 2.0) -> bool:
        """Writes what is queued, within `timeout` seconds; False when that was not possible. May be called twice."""
        # With no handler at all the standard library would print what comes later, unmasked.
        logging.getLogger().handlers[:] = self._before or [logging.NullHandler()]
        atexit.unregister(self.close)
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        return self._writer.close(timeout)


def configure_logging(settings: LogSettings, role: str, instance: str, *, stream: TextIO | None = None) -> LogOutput:
    """From now on all logging goes to `stream` (default: standard error) and to the files in LOG_DIR.

    Every line carries `role`, `instance` and the bound context variables; secrets are masked (`register_secret`,
    which loading the settings does for theirs). Raises ConfigError when LOG_DIR cannot be written.
    """
    common = {"instance": instance, "role": str(role)}
    level = logging.getLevelNamesMapping()[settings.level]
    handlers = [_stream_handler(settings.format, stream or sys.stderr)]
    if settings.directory is not None:
        handlers += _file_handlers(settings.directory)
    writer = LogWriter(handlers, common)
    handler = QueueingHandler(writer, lambda record: _prepared(record, common))

    root = logging.getLogger()
    before = list(root.handlers)
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(max(least, level))
    logging.captureWarnings(capture=True)
    _configure_structlog()
    output = LogOutput(writer, before)
    atexit.register(output.close)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    return output


def _stream_handler(kind: LogFormat, stream: TextIO) -> logging.Handler:
    terminal = stream.isatty()
    handler = logging.StreamHandler(stream)
    if kind is LogFormat.CONSOLE or (kind is LogFormat.AUTO and terminal):
        handler.setFormatter(ConsoleFormatter(colors=terminal))
    else:
        handler.setFormatter(JsonFormatter())
    return handler


def _file_handlers(directory: Path) -> list[logging.Handler]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handlers = [_file_handler(directory / "worker.log"), _file_handler(directory / "error.log")]
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError([f"OPS_MAIL_LOG_DIR: cannot write {error.filename or directory}: {reason}"]) from error
    handlers[1].setLevel(logging.ERROR)
    return handlers


def _file_handler(path: Path) -> logging.Handler:
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=_FILE_BYTES, backupCount=_FILES_KEPT, encoding="utf-8"
    )
    handler.setFormatter(JsonFormatter())
    return handler


def _configure_structlog() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            _as_record,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # a logger made before this call must follow it too
    )


def _as_record(_: Any, __: str, event: MutableMapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The last processor: hands the event to the standard library's logger beside an ordinary message."""
    return (str(event.get("event", "")).replace("%", "%%"),), {"extra": {_EVENT_ATTRIBUTE: dict(event)}}


def _prepared(record: logging.LogRecord, common: PlainEvent) -> PlainEvent:
    own: dict[str, Any] | None = getattr(record, _EVENT_ATTRIBUTE, None)
    event: MutableMapping[str, Any]
    if own is None:
        event = structlog.contextvars.merge_contextvars(None, "", {"event": _message(record)})
        if record.exc_info:
            event["exc_info"] = record.exc_info
    else:
        event = dict(own)
    event = _format_exception(None, "", event)
    head = {
        "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        "level": record.levelname.lower(),
        "logger": record.name,
    }
    return plain_event({**head, "event": event.pop("event", ""), **common, **event})


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - a library's wrong log call must not take its own line away
        return f"{record.msg} (arguments do not fit: {type(error).__name__})"


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    # Python's own hook would print the traceback as it is, with any secret in it.
    structlog.get_logger("ops_mail").critical("uncaught_exception", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None and arguments.exc_type is not SystemExit:
        name = arguments.thread.name if arguments.thread else None
        info = (arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
        structlog.get_logger("ops_mail").critical("uncaught_exception_in_thread", thread=name, exc_info=info)

"""What goes out of the process as a log line."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from ops_mail.errors import ConfigError
from ops_mail.logs import LogOutput, configure_logging, register_secret
from ops_mail.logs.writer import LogWriter
from ops_mail.settings import Settings, load_settings

Start = Callable[..., LogOutput]


def settings(**values: str) -> Settings:
    variables = {
        "OPS_MAIL_IMAP_HOST": "imap.example.org",
        "OPS_MAIL_IMAP_USERNAME": "ops@example.org",
        "OPS_MAIL_IMAP_PASSWORD": "hunter2-Grüße",
        "OPS_MAIL_INSTANCE_NAME": "node-1",
        "OPS_MAIL_LOG_FORMAT": "json",
    }
    return load_settings(variables | {f"OPS_MAIL_{name}": value for name, value in values.items()}, None)


def configure(stream: io.StringIO, **values: str) -> LogOutput:
    loaded = settings(**values)
    return configure_logging(loaded.log, loaded.role, loaded.instance_name, stream=stream)


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def start(stream: io.StringIO) -> Iterator[Start]:
    """Configures logging for one test; everything global is put back afterwards."""
    outputs: list[LogOutput] = []
    root, level = logging.getLogger(), logging.getLogger().level
    handlers = list(root.handlers)

    def configured(**values: str) -> LogOutput:
        outputs.append(configure(stream, **values))
        return outputs[-1]

    yield configured
    for output in outputs:
        output.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def events(output: LogOutput, stream: io.StringIO) -> list[dict[str, Any]]:
    assert output.close()
    text = stream.getvalue()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_an_event_is_one_json_line_with_time_level_logger_and_context(start: Start, stream: io.StringIO) -> None:
    output = start()
    log = structlog.get_logger("ops_mail.listener")
    with structlog.contextvars.bound_contextvars(mailbox="billing", uid=7, epoch=3):
        log.info("mail_landed", size_bytes=1234, folder="Eingänge")

    (event,) = events(output, stream)
    told = datetime.fromisoformat(event.pop("timestamp"))
    assert told.utcoffset() == timedelta(0)
    assert event == {
        "level": "info",
        "logger": "ops_mail.listener",
        "event": "mail_landed",
        "instance": "node-1",
        "role": "all",
        "mailbox": "billing",
        "uid": 7,
        "epoch": 3,
        "size_bytes": 1234,
        "folder": "Eingänge",
    }
    assert list(json.loads(stream.getvalue()))[:4] == ["timestamp", "level", "logger", "event"]


def test_the_standard_librarys_loggers_take_the_same_way(start: Start, stream: io.StringIO) -> None:
    output = start()
    with structlog.contextvars.bound_contextvars(mailbox="billing"):
        logging.getLogger("obstore.s3").info("Renewed %s for %s", "credentials", "bucket")

    (event,) = events(output, stream)
    assert event["event"] == "Renewed credentials for bucket"
    assert (event["logger"], event["level"], event["mailbox"]) == ("obstore.s3", "info", "billing")


def test_a_librarys_wrong_log_call_still_makes_a_line(start: Start, stream: io.StringIO) -> None:
    output = start()
    logging.getLogger("aiohttp.server").warning("%d requests", "many")
    (event,) = events(output, stream)
    assert event["event"] == "%d requests (arguments do not fit: TypeError)"


def test_a_percent_sign_in_an_event_is_no_format(start: Start, stream: io.StringIO) -> None:
    output = start()
    structlog.get_logger("ops_mail").info("disk 90% full", path="%s")
    (event,) = events(output, stream)
    assert (event["event"], event["path"]) == ("disk 90% full", "%s")


def test_the_level_holds_for_all_and_libraries_that_tell_secrets_stay_quiet(start: Start, stream: io.StringIO) -> None:
    output = start(LOG_LEVEL="DEBUG")
    structlog.get_logger("ops_mail.x").debug("told")
    for name in (
        "aiosqlite",
        "alembic.runtime.migration",
        "sqlalchemy.engine.Engine",
        "aiomysql",
        "asyncio",
        "aiohttp.access",
    ):
        logging.getLogger(name).info("parameters of a statement")
    logging.getLogger("aioimaplib.aioimaplib").critical("AUTHENTICATE XOAUTH2 token")
    assert [event["event"] for event in events(output, stream)] == ["told"]


def test_below_the_level_nothing_is_told(start: Start, stream: io.StringIO) -> None:
    output = start(LOG_LEVEL="WARNING")
    structlog.get_logger("ops_mail").info("no")
    logging.getLogger("obstore").info("no")
    structlog.get_logger("ops_mail").warning("yes")
    assert [event["event"] for event in events(output, stream)] == ["yes"]


def test_no_secret_goes_out_in_events_values_names_or_tracebacks(start: Start, stream: io.StringIO) -> None:
    output = start(DATABASE_URL="mysql+aiomysql://u:geheim-42@db/ops")
    register_secret("late-secret")
    log = structlog.get_logger("ops_mail")
    try:
        raise ValueError({"login": "hunter2-Grüße"})
    except ValueError:
        log.exception("failed with hunter2-Grüße", error=ValueError("geheim-42"), nested={"a": ["late-secret"]})
        logging.getLogger("aiohttp").exception("stdlib %s", "hunter2-Grüße")
    log.info("named", password="unregistered-1", headers={"Authorization": "Bearer unregistered-2"}, tokens=3)
    log.info("url", url="https://u:unregistered-3@host/path", data=b"late-secret")
    log.info("cut", text="x" * 4090 + "late-secret")

    told = events(output, stream)
    text = stream.getvalue()
    for secret in ("hunter2", "geheim-42", "late-secret", "late-s", "unregistered"):
        assert secret not in text
    assert told[0]["event"] == "failed with ***"
    assert "ValueError: {'login': '***'}" in told[0]["exception"]
    assert "Traceback" in told[1]["exception"]
    assert (told[2]["password"], told[2]["headers"], told[2]["tokens"]) == ("***", {"Authorization": "***"}, 3)
    assert told[3]["url"] == "https://u:***@host/path"


HOSTILE = "Re: \r\n2026-01-01 [error] forged\x1b[2J\x1b]0;title\x07\x9b31m\u2028\u202egnp.exe\x00\ud800"


def test_a_hostile_value_cannot_break_a_json_line(start: Start, stream: io.StringIO) -> None:
    output = start()
    structlog.get_logger("ops_mail").info(HOSTILE, sender=HOSTILE, **{"key\n": [HOSTILE]})
    (event,) = events(output, stream)
    assert event["sender"] == HOSTILE.replace("\ud800", "\ufffd")
    assert stream.getvalue().count("\n") == 1
    assert not set(stream.getvalue()) & set("\r\x1b\x07\x9b\u2028\u202e\x00")


def test_a_hostile_value_cannot_break_a_console_line(start: Start, stream: io.StringIO) -> None:
    output = start(LOG_FORMAT="console")
    structlog.get_logger("ops_mail").info(HOSTILE, sender=HOSTILE, many=[HOSTILE])
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        structlog.get_logger("ops_mail").exception("failed")
    assert output.close()
    first, second, *traceback = stream.getvalue().removesuffix("\n").split("\n")
    assert "forged" in first
    assert "failed" in second
    assert all(line.startswith("    ") for line in traceback)
    assert not set(stream.getvalue()) & set("\r\x1b\x07\x9b\u2028\u202e\x00")


def test_values_of_any_type_and_size_are_told_in_bounds(start: Start, stream: io.StringIO) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    deep: list[Any] = []
    deep.append(deep)
    output = start()
    structlog.get_logger("ops_mail").info(
        "sizes", long="x" * 100_000, many=range(3), items=list(range(1000)), deep=deep, broken=Broken(), path=Path("/a")
    )
    (event,) = events(output, stream)
    assert event["long"] == "x" * 4096 + "… (100000 characters)"
    assert (event["many"], len(event["items"]), event["path"]) == ("range(0, 3)", 100, "/a")
    assert event["broken"] == "<Broken that cannot be shown: RuntimeError>"


def test_console_lines_are_for_people(start: Start, stream: io.StringIO) -> None:
    output = start(LOG_FORMAT="console")
    structlog.get_logger("ops_mail.app").info("started", mailboxes=2)
    assert output.close()
    (line,) = stream.getvalue().splitlines()
    assert "[info     ] started" in line
    assert line.endswith("[ops_mail.app] mailboxes=2")


def test_auto_is_json_unless_a_terminal_reads(start: Start, stream: io.StringIO) -> None:
    output = start(LOG_FORMAT="auto")
    structlog.get_logger("ops_mail").info("started")
    (event,) = events(output, stream)
    assert event["event"] == "started"


def test_auto_is_console_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, before = Terminal(), list(logging.getLogger().handlers)
    output = configure(terminal, LOG_FORMAT="auto")
    try:
        structlog.get_logger("ops_mail").info("started")
        assert output.close()
    finally:
        logging.getLogger().handlers[:] = before
        structlog.reset_defaults()
    assert "\x1b[" in terminal.getvalue()
    assert "started" in terminal.getvalue()


def test_the_log_folder_gets_all_events_and_the_errors_apart(start: Start, stream: io.StringIO, tmp_path: Path) -> None:
    output = start(LOG_DIR=str(tmp_path / "new" / "logs"))
    log = structlog.get_logger("ops_mail")
    log.info("fine")
    log.error("bad")
    assert [event["event"] for event in events(output, stream)] == ["fine", "bad"]
    assert _events_of(tmp_path / "new" / "logs" / "worker.log") == ["fine", "bad"]
    assert _events_of(tmp_path / "new" / "logs" / "error.log") == ["bad"]


def _events_of(path: Path) -> list[str]:
    return [json.loads(line)["event"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_log_files_are_rotated(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops_mail.logs.configure._FILE_BYTES", 2000)
    output = start(LOG_DIR=str(tmp_path))
    for number in range(100):
        structlog.get_logger("ops_mail").info("event", number=number)
    assert output.close()
    assert {path.name for path in tmp_path.iterdir()} == {
        "error.log",
        "worker.log",
        *(f"worker.log.{number}" for number in range(1, 6)),
    }
    assert all(path.stat().st_size <= 2000 for path in tmp_path.iterdir())
    assert json.loads((tmp_path / "worker.log").read_text().splitlines()[-1])["number"] == 99


def test_a_log_folder_that_cannot_be_written_is_a_configuration_mistake(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        start(LOG_DIR=str(tmp_path / "file" / "logs"))
    assert caught.value.problems == [f"OPS_MAIL_LOG_DIR: cannot write {tmp_path}/file/logs: Not a directory"]


class _Stuck(logging.Handler):
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.told: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.go_on.wait(30)
        self.told.append(record.msg)


def test_a_stuck_output_drops_and_counts_instead_of_blocking() -> None:
    stuck = _Stuck()
    writer = LogWriter([stuck], {"instance": "node-1"}, limit=10)
    from ops_mail.logs.writer import QueueingHandler

    handler = QueueingHandler(writer, lambda record: {"event": record.getMessage()})
    began = time.monotonic()
    for number in range(100):
        handler.handle(logging.makeLogRecord({"msg": str(number), "levelno": logging.INFO, "name": "x"}))
    assert writer.dropped in (89, 90)  # the thread holds one, the queue ten
    assert time.monotonic() - began < 20
    assert writer.close(timeout=0.05) is False
    stuck.go_on.set()
    assert writer.close(timeout=10) is True
    warnings = [event for event in stuck.told if event["event"] == "log_events_dropped"]
    assert sum(event["count"] for event in warnings) == writer.dropped
    assert warnings[0]["instance"] == "node-1"
    assert len(stuck.told) - len(warnings) == 100 - writer.dropped


def test_a_full_disk_is_told_without_a_traceback_for_each_event(capfd: pytest.CaptureFixture[str]) -> None:
    class Full(logging.StreamHandler[io.StringIO]):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                raise OSError(28, "No space left on device")
            except OSError:
                self.handleError(record)

    from ops_mail.logs.writer import QueueingHandler

    writer = LogWriter([Full(io.StringIO())], {})
    handler = QueueingHandler(writer, lambda record: {"event": record.getMessage()})
    for _ in range(100):
        handler.handle(logging.makeLogRecord({"msg": "x", "levelno": logging.INFO, "name": "x"}))
    assert writer.close(timeout=10)
    assert writer.failed == 100
    lines = capfd.readouterr().err.splitlines()
    times = ["1 time", *(f"{2**power} times" for power in range(1, 7))]
    assert lines == [f"ops-mail: a log event was not written: OSError ({each})" for each in times]


_PROGRAM = """
import threading
from ops_mail.logs import configure_logging
from ops_mail.settings import load_settings
import structlog
settings = load_settings({
    "OPS_MAIL_ENABLED": "false", "OPS_MAIL_DATABASE_URL": "mysql+aiomysql://u:geheim-42@db/ops"}, None)
configure_logging(settings.log, "all", "node-1")
structlog.get_logger("ops_mail").info("started")
thread = threading.Thread(target=lambda: 1 / 0, name="helper")
thread.start()
thread.join()
raise RuntimeError("geheim-42")
"""


def test_what_nobody_caught_is_told_masked_and_written_at_exit() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPS_MAIL_")}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment | {"PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 1
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert [event["event"] for event in told] == [
        "started",
        "uncaught_exception_in_thread",
        "uncaught_exception",
    ]
    assert told[1]["exception"].endswith("ZeroDivisionError: division by zero")
    assert told[2]["exception"].endswith("RuntimeError: ***")
    assert "geheim" not in done.stderr

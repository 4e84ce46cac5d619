"""The way from the event loop to the disk: a bounded queue and one thread that writes.

A terminal or pipe that nobody reads, or a slow disk, blocks that thread alone; when the queue is full, events are
dropped and counted, never waited for.
"""

from __future__ import annotations

import logging
import logging.handlers
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from ops_mail.core.counted import counted
from ops_mail.logs.plain import PlainEvent

QUEUE_LIMIT = 10_000
_WRITER_LOGGER = "ops_mail.logs"


class QueueingHandler(logging.handlers.QueueHandler):
    """Puts every record, made plain by `prepared`, into the writer's queue; never blocks."""

    def __init__(self, writer: LogWriter, prepared: Callable[[logging.LogRecord], PlainEvent]) -> None:
        super().__init__(writer.queue)
        self._writer = writer
        self._prepared = prepared

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """A record that holds a plain event; made in the caller's thread, where its context is."""
        return _record(self._prepared(record), record.levelno, record.name)

    def enqueue(self, record: logging.LogRecord) -> None:
        """Hands the record over, or counts it as dropped."""
        try:
            self._writer.queue.put_nowait(record)
        except queue.Full:
            self._writer.count_dropped()


class LogWriter:
    """The thread that renders and writes.

    `dropped` counts events lost to a full queue, `failed` those lost to write errors.
    """

    def __init__(self, handlers: Sequence[logging.Handler], common: PlainEvent, *, limit: int = QUEUE_LIMIT) -> None:
        self.queue: queue.Queue[Any] = queue.Queue(limit)
        self.dropped = 0
        self.failed = 0
        self._handlers = handlers
        self._common = common
        self._lock = threading.Lock()
        self._told_dropped = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ops-mail-logs", daemon=True)
        for handler in handlers:
            handler.handleError = self._count_failed  # type: ignore[method-assign] # logging's own prints a traceback a line
        self._thread.start()

    def count_dropped(self) -> None:
        """One event found the queue full."""
        with self._lock:
            self.dropped += 1

    def close(self, timeout: float = 2.0) -> bool:
        """Writes what is queued and closes the files; False when that took longer than `timeout` seconds (P7)."""
        self._stopping.set()
        try:
            self.queue.put_nowait(None)  # wakes the thread
        except queue.Full:
            pass  # it is awake
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                record = self.queue.get(timeout=0 if self._stopping.is_set() else None)
            except queue.Empty:
                break
            if record is not None:
                self._write(record)
            if self.dropped > self._told_dropped:
                self._tell_dropped()
        for handler in self._handlers:
            handler.close()

    def _write(self, record: logging.LogRecord) -> None:
        for handler in self._handlers:
            if record.levelno >= handler.level:
                handler.handle(record)

    def _tell_dropped(self) -> None:
        count, self._told_dropped = self.dropped - self._told_dropped, self.dropped
        event = {
            "timestamp": datetime.now(UTC).isoformat(),
            "level": "warning",
            "logger": _WRITER_LOGGER,
            "event": "log_events_dropped",
            "count": count,
            "total": self._told_dropped,
        }
        self._write(_record(event | self._common, logging.WARNING, _WRITER_LOGGER))

    def _count_failed(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - the name is logging's
        self.failed += 1
        if self.failed & (self.failed - 1) == 0:  # the 1st, 2nd, 4th, 8th …: a full disk fails at every event
            kind = sys.exc_info()[0]
            try:
                why = f"{kind and kind.__name__} ({counted(self.failed, 'time')})"
                sys.stderr.write(f"ops-mail: a log event was not written: {why}\n")
            except OSError:
                pass  # standard error is what failed


def _record(event: PlainEvent, level: int, name: str) -> logging.LogRecord:
    record = logging.LogRecord(name, level, "", 0, "", None, None)
    record.msg = event  # the formatters of this package take the event itself
    return record

"""Telling systemd how the service is: ready, alive, stopping (the protocol of sd_notify(3))."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping

import structlog

from ops_mail.waiting import sleep_or_stop

log = structlog.get_logger("ops_mail.supervisor")

_STATUS_SECONDS = 5.0
_STATUS_LETTERS = 200


class ServiceManager:
    """What the unit asked for: `NOTIFY_SOCKET` (Type=notify) and `WATCHDOG_USEC` (WatchdogSec=).

    Without them, outside of systemd, every method does nothing. None of them raises or waits.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the NUL byte of Linux's abstract namespace; other families do not reach a host's unit.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        if not address.startswith(("/", "@")):
            self._address = ""
        self.watchdog_seconds = _watchdog_seconds(environment) if self._address else None

    def ready(self) -> None:
        """The start is over: `systemctl start` returns."""
        self._say("READY=1")

    def stopping(self) -> None:
        """An orderly end has begun."""
        self._say("STOPPING=1")

    def verdict(self, reasons: list[str]) -> None:
        """Feeds the watchdog when the process is alive; when it is stuck, only says why and lets it bite."""
        if reasons:
            # On one line: a line break in a reason would begin a new assignment of the protocol.
            self._say(f"STATUS=stuck: {' '.join('; '.join(reasons).split())[:_STATUS_LETTERS]}")
        else:
            self._say("WATCHDOG=1\nSTATUS=alive")

    async def keep_telling(self, reasons: Callable[[], list[str]], stop: asyncio.Event) -> None:
        """The verdict, three times within each watchdog period, until the stop, which is told too.

        Runs on the event loop, so that a loop that stands still is found out as well.
        """
        if not self._address:
            return
        every_seconds = min(_STATUS_SECONDS, (self.watchdog_seconds or 3 * _STATUS_SECONDS) / 3)
        while not stop.is_set():
            self.verdict(reasons())
            await sleep_or_stop(every_seconds, stop)
        self.stopping()

    def _say(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)  # a manager that does not read must not hold the loop
                sender.sendto(text.encode(errors="replace"), self._address)
        except OSError as error:
            log.warning("systemd_not_told", error=error.strerror or str(error))


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """None when the unit has no watchdog, or when it is meant for another process (sd_watchdog_enabled(3))."""
    try:
        if int(environment.get("WATCHDOG_PID", os.getpid())) != os.getpid():
            return None
        microseconds = int(environment.get("WATCHDOG_USEC", "0"))
    except ValueError:
        return None
    return microseconds / 1e6 if microseconds > 0 else None

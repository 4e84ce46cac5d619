"""The service manager hears READY, WATCHDOG and STOPPING, over the same socket that systemd opens."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops_mail.supervisor.systemd import ServiceManager


class Manager:
    """systemd's end: a datagram socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[str]:
        messages = []
        while True:
            try:
                messages.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return messages

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(str(tmp_path / "notify"))
    yield manager
    manager.close()


def told(tmp_path: Path, **more: str) -> ServiceManager:
    return ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify"), **more})


def test_ready_and_stopping_are_told(manager: Manager, tmp_path: Path) -> None:
    service = told(tmp_path)
    service.ready()
    service.stopping()
    assert manager.heard() == ["READY=1", "STOPPING=1"]


def test_an_abstract_socket_is_reached() -> None:
    name = f"ops-mail-test-{os.getpid()}"
    manager = Manager(f"\0{name}")
    try:
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).ready()
        assert manager.heard() == ["READY=1"]
    finally:
        manager.close()


def test_the_watchdog_is_fed_while_the_verdict_is_alive(manager: Manager, tmp_path: Path) -> None:
    told(tmp_path).verdict([])
    assert manager.heard() == ["WATCHDOG=1\nSTATUS=alive"]


def test_a_stuck_process_says_why_and_does_not_feed_the_watchdog(manager: Manager, tmp_path: Path) -> None:
    told(tmp_path).verdict(["listener:ops/INBOX has shown no life\nWATCHDOG=1"])
    (message,) = manager.heard()
    assert message.startswith("STATUS=stuck: listener:ops/INBOX")
    assert "WATCHDOG=1" not in message.splitlines(), "a reason must not forge a line of the protocol"


async def test_feeding_follows_the_verdict_three_times_a_period_and_ends_with_the_stop(
    manager: Manager, tmp_path: Path
) -> None:
    reasons: list[str] = []
    stop = asyncio.Event()
    task = asyncio.create_task(told(tmp_path, WATCHDOG_USEC="90000").keep_telling(lambda: reasons, stop))
    await asyncio.sleep(0.15)
    fed = manager.heard()
    reasons.append("stuck on purpose")
    await asyncio.sleep(0.1)
    starved = manager.heard()
    stop.set()
    await task
    assert len(fed) >= 3
    assert all(message.startswith("WATCHDOG=1") for message in fed)
    assert starved[-1] == "STATUS=stuck: stuck on purpose"
    assert manager.heard() == ["STOPPING=1"]


async def test_outside_of_systemd_nothing_happens() -> None:
    service = ServiceManager({})
    service.ready()
    service.stopping()
    await asyncio.wait_for(service.keep_telling(list, asyncio.Event()), 1)
    assert service.watchdog_seconds is None


def test_a_manager_that_has_gone_does_no_harm(tmp_path: Path) -> None:
    told(tmp_path).ready()


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "many"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_period_is_the_one_meant_for_this_process(
    tmp_path: Path, environment: dict[str, str], seconds: float | None
) -> None:
    assert told(tmp_path, **environment).watchdog_seconds == seconds

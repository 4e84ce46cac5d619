"""The systemd unit is sound and tight, and the process behaves as its Type=notify and WatchdogSec expect."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.deploy.files import DEPLOY
from tests.servers.product import OpsMail, wait_for

UNIT = DEPLOY / "systemd" / "ops-mail.service"
EXPOSURE_PERCENT = 15  # `systemd-analyze security` says 1.3 of 10; most of Debian's own services are above 9


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that is there: the check wants to see one."""
    copy = tmp_path / UNIT.name
    text = UNIT.read_text()
    assert "ExecStart=/opt/ops-mail/bin/ops-mail run\n" in text
    copy.write_text(text.replace("ExecStart=/opt/ops-mail/bin/ops-mail run", "ExecStart=/bin/true"))
    return copy


def analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, check=False)


def test_systemd_understands_every_line_of_the_unit(unit: Path) -> None:
    done = analyze("verify", "--man=no", unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_sandbox_leaves_little_exposed(unit: Path) -> None:
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE_PERCENT}", "--no-pager", unit)
    assert done.returncode == 0, done.stdout
    assert "Overall exposure level" in done.stdout


def test_the_command_does_as_the_service_does_and_the_installation_brings_both() -> None:
    text, command = UNIT.read_text(), (UNIT.parent / "ops-mail").read_text()
    said = dict(re.findall(r"^(ExecStart|WorkingDirectory|User|EnvironmentFile)=(.+)$", text, re.MULTILINE))
    program = said["ExecStart"].removesuffix(" run")
    assert f"cd {said['WorkingDirectory']} || exit 1\n" in command
    assert command.endswith(f'exec runuser -u {said["User"]} -- {program} "$@"\n')
    assert f"ln -s {said['EnvironmentFile']} {said['WorkingDirectory']}/.env\n" in text
    for path in re.findall(r"^#   install -m \d+ (?:-g ops-mail )?(\S+) /\S+", text, re.MULTILINE):
        assert path == "/dev/stdin" or (DEPLOY.parent / path).is_file(), path


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Systemd's end of the notification socket, for a unit with a watchdog of 0.6 s."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(path)
        end.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", "600000")
        yield end


def heard(manager: socket.socket) -> list[str]:
    messages: list[str] = []
    while True:
        try:
            messages += manager.recv(4096).decode().splitlines()
        except BlockingIOError:
            return messages


def test_the_process_says_ready_feeds_the_watchdog_and_says_stopping(manager: socket.socket, tmp_path: Path) -> None:
    so_far: list[str] = []

    def fed() -> bool:
        so_far.extend(heard(manager))
        return so_far.count("WATCHDOG=1") >= 3

    with OpsMail(tmp_path, {"ENABLED": "false"}) as process:
        wait_for(fed, "three meals", 20, process.explain)
        assert so_far.count("READY=1") == 1
        assert process.terminate() == 0
    assert heard(manager)[-1] == "STOPPING=1"


def test_a_frozen_process_does_not_feed_the_watchdog(manager: socket.socket, tmp_path: Path) -> None:
    with OpsMail(tmp_path, {"ENABLED": "false"}) as process:
        wait_for(lambda: "WATCHDOG=1" in heard(manager), "a first meal", 20, process.explain)
        process.signal(signal.SIGSTOP)
        heard(manager)
        with pytest.raises(AssertionError, match="no meal"):
            wait_for(lambda: "WATCHDOG=1" in heard(manager), "meal", 1.5)
        process.signal(signal.SIGCONT)
        wait_for(lambda: "WATCHDOG=1" in heard(manager), "a meal after the thaw", 20, process.explain)

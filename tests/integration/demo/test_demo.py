"""`ops-mail demo` as people run it: a process, its lines, its pages and its end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ops_mail.demo.samples import SAMPLES

END_SECONDS = 30


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where the demo puts what it needs while it runs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@contextmanager
def demo(temporary: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "ops_mail", "demo", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=temporary.parent,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONUTF8": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_until(process: subprocess.Popen[str], pattern: str) -> list[str]:
    """The lines up to the first that matches."""
    lines: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if re.search(pattern, line):
            return lines
    raise AssertionError(f"ended without {pattern}: {lines}, {process.communicate()[1]}")


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 - the demo's own address
        body: bytes = response.read()
        return body.decode()


def test_every_sample_lands_on_one_line_and_the_demo_ends_by_itself(temporary: Path) -> None:
    with demo(temporary, "--count", str(len(SAMPLES)), "--every", "0.02", "--port", "0") as process:
        output, errors = process.communicate(timeout=END_SECONDS)
    assert process.returncode == 0
    assert errors == ""
    landed = [line for line in output.splitlines() if line.startswith("landed in ")]
    assert [line.partition("ms  ")[2] for line in landed] == [
        f"{sample.name} <{sample.address}>  “{sample.subject}”{_files(line)}"
        for sample, line in zip(SAMPLES, landed, strict=True)
    ]
    assert list(temporary.iterdir()) == []


def _files(line: str) -> str:
    found = re.search(r" \+\d files?$", line)
    return found[0] if found else ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_page_and_metrics_are_up_until_a_signal_ends_it_in_order(temporary: Path, number: signal.Signals) -> None:
    with demo(temporary, "--every", "0.2", "--port", "0") as process:
        lines = lines_until(process, "^landed")
        page = next(line for line in lines if line.startswith("page")).split()[1]
        metrics = next(line for line in lines if line.startswith("metrics")).split()[1]
        assert "demo@example.org" in get(page)
        assert re.search(
            r'^ops_mail_messages_landed_total\{mailbox="demo@example.org",status="landed"\} [1-9]',
            get(metrics),
            re.MULTILINE,
        )
        assert list(temporary.iterdir()) != []
        process.send_signal(number)
        output, errors = process.communicate(timeout=END_SECONDS)
    assert process.returncode == 0
    assert errors == ""
    assert output.splitlines()[-1].startswith("the demo has ended")
    assert list(temporary.iterdir()) == []


def test_a_signal_before_the_first_mail_ends_it_in_order_too(temporary: Path) -> None:
    with demo(temporary, "--port", "0") as process:
        lines_until(process, "^page")
        process.terminate()
        _, errors = process.communicate(timeout=END_SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert list(temporary.iterdir()) == []


def test_settings_of_a_real_installation_play_no_part(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_MAIL_IMAP_HOST", "127.0.0.1:1")
    (temporary.parent / ".env").write_text(
        "OPS_MAIL_DATABASE_URL=mysql+aiomysql://nobody@127.0.0.1:1/x\nOPS_MAIL_X=1\n"
    )
    with demo(temporary, "--count", "1", "--port", "0") as process:
        output, errors = process.communicate(timeout=END_SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert output.count("landed in ") == 1


def test_the_usual_port_is_left_to_whoever_has_it(temporary: Path) -> None:
    with socket.socket() as other:
        try:
            other.bind(("127.0.0.1", 8080))
            other.listen()
        except OSError:
            pass  # somebody else has it: the same to the demo
        with demo(temporary, "--count", "1") as process:
            output, _ = process.communicate(timeout=END_SECONDS)
    assert process.returncode == 0
    assert re.search(r"^page     http://127\.0\.0\.1:(?!8080/)\d+/$", output, re.MULTILINE)


def test_a_port_asked_for_that_is_taken_ends_it_with_one_line(temporary: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with demo(temporary, "--port", str(port)) as process:
            _, errors = process.communicate(timeout=END_SECONDS)
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1
    assert f"127.0.0.1:{port}" in errors
    assert list(temporary.iterdir()) == []


def test_it_ends_quietly_when_nobody_reads_its_lines_any_more(temporary: Path) -> None:
    with demo(temporary, "--every", "0.05", "--port", "0") as process:
        lines_until(process, "^landed")
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=END_SECONDS)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0
    assert list(temporary.iterdir()) == []

"""The product itself as a process: started as operators start it, watched over HTTP and by its log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_SECONDS = 30.0
STOP_SECONDS = 30.0


class OpsMail:
    """`python -m ops_mail` with the given settings (names without OPS_MAIL_); HTTP on a port of the system's choice."""

    def __init__(self, folder: Path, settings: Mapping[str, object], *, name: str = "one") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._folder = folder
        self._log_path = folder / f"{name}.log"
        self._settings = {
            "HTTP_HOST": "127.0.0.1",
            "HTTP_PORT": "0",
            "LOG_FORMAT": "json",
            "LOG_LEVEL": "DEBUG",
            "INSTANCE_NAME": name,
            **{key: str(value) for key, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> Self:
        """Start and wait until the endpoints are up."""
        self.launch()
        self.port = int(self.wait_for_line("http_listening")["port"])
        return self

    def launch(self) -> Self:
        """Start without waiting for anything."""
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ops_mail"], cwd=self._folder, env=self.environment(), stdout=log, stderr=log
            )
        return self

    def environment(self) -> dict[str, str]:
        """The variables that it gets, and that a command beside it needs."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
        environment |= {f"OPS_MAIL_{name}": value for name, value in self._settings.items()}
        environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        return environment

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def wait_for_line(self, event: str, *, seconds: float = START_SECONDS, **values: object) -> dict[str, Any]:
        """The newest log line of this event with these values."""

        def look() -> dict[str, Any] | None:
            found = [line for line in self.lines() if line.get("event") == event and values.items() <= line.items()]
            return found[-1] if found else None

        line: dict[str, Any] = wait_for(look, f"the log line {event} {values}", seconds, self.explain)
        return line

    def wait_until(self, look: Callable[[], Any], what: str, seconds: float = START_SECONDS) -> Any:
        """Poll until `look()` is true; its value."""
        return wait_for(look, what, seconds, self.explain)

    def wait_ready(self, seconds: float = START_SECONDS) -> dict[str, Any]:
        """Until `/readyz` is 200; its body."""
        body: dict[str, Any] = self.wait_until(self.ready_body, "readiness", seconds)
        return body

    def ready_body(self) -> dict[str, Any] | None:
        code, body = self.get_json("/readyz")
        return body if code == 200 else None

    def state(self, mailbox: int = 0) -> str:
        return str(self.get_json("/readyz")[1]["mailboxes"][mailbox]["state"])

    def wait_state(self, state: str, seconds: float = START_SECONDS, mailbox: int = 0) -> None:
        self.wait_until(lambda: self.state(mailbox) == state, f"state {state}", seconds)

    def get(self, path: str, timeout: float = 10.0) -> tuple[int, str]:
        """Status code and body of a GET."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def get_json(self, path: str) -> tuple[int, dict[str, Any]]:
        code, body = self.get(path)
        return code, json.loads(body)

    def metric(self, sample: str) -> float:
        """The value of one sample as the exposition names it, e.g. `ops_mail_epoch{mailbox="ops"}`; 0 when absent."""
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(sample + " "):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def log_text(self) -> str:
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def lines(self) -> list[dict[str, Any]]:
        """The log's lines that are JSON objects."""
        parsed = []
        for line in self.log_text().splitlines():
            try:
                parsed.append(json.loads(line))
            except ValueError:
                continue
        return [line for line in parsed if isinstance(line, dict)]

    def explain(self) -> str:
        code = None if self._process is None else self._process.poll()
        return f"{self.name} (exit code {code}) says:\n" + "\n".join(self.log_text().splitlines()[-40:])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def terminate(self, seconds: float = STOP_SECONDS) -> int:
        """SIGTERM and the exit code."""
        self.process.terminate()
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Kill -9."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it in any case."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wait_for(look: Callable[[], Any], what: str, seconds: float, explain: Callable[[], str] = lambda: "") -> Any:
    """Poll `look` until it is true; its value. Fails the test with an explanation after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} within {seconds:g} s; {explain()}")
        time.sleep(0.02)

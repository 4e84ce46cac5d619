"""Everything that a running process lets out, by name."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import sqlalchemy as sa

from ops_mail.settings import load_settings
from tests.servers.product import OpsMail

ROOT = Path(__file__).resolve().parents[3]
PATHS = ("/", "/?lang=zh", "/api/status", "/api/openapi.json", "/metrics", "/healthz", "/readyz", "/nothing")


def endpoints(process: OpsMail, token: str) -> dict[str, str]:
    """Every endpoint, for those who hold the token and for those who do not."""
    found = {f"GET {path} without token": process.get(path)[1] for path in PATHS}
    for path in PATHS:
        address = f"http://127.0.0.1:{process.port}{path}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - to 127.0.0.1 alone
                found[f"GET {path}"] = f"{answer.headers}{answer.read().decode()}"
        except urllib.error.HTTPError as error:
            with error:
                found[f"GET {path}"] = f"{error.headers}{error.read().decode()}"
    return found | {"GET /events": _events(process.port, token)}


def _events(port: int, token: str) -> str:
    with socket.create_connection(("127.0.0.1", port), 10) as reader:
        reader.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        text = b""
        while b"event: update" not in text or not text.endswith(b"\n\n\r\n"):
            text += reader.recv(65_536)
    return text.decode()


def logs(process: OpsMail, folder: Path) -> dict[str, str]:
    """What it has written to standard output, standard error and the files of LOG_DIR."""
    files = {f"log file {path.name}": path.read_text() for path in folder.iterdir()}
    assert set(files) == {"log file worker.log", "log file error.log"}
    return {"standard output and error": process.log_text()} | files


def command_lines(process: OpsMail) -> dict[str, str]:
    """The argument lists of the process and of those it has started, which every user of the machine can read."""
    found, left = {}, [process.process.pid]
    while left:
        pid = left.pop()
        found[f"command line of {pid}"] = Path(f"/proc/{pid}/cmdline").read_text()
        for task in Path(f"/proc/{pid}/task").iterdir():
            left += [int(child) for child in (task / "children").read_text().split()]
    return found


def stored_rows(url: str) -> dict[str, str]:
    """Every row of every table, but for the contents of mails."""
    synchronous = sa.make_url(url).set(drivername="mysql+pymysql")
    engine = sa.create_engine(synchronous, poolclass=sa.NullPool)
    found = {}
    with engine.connect() as connection:
        for table in sa.inspect(engine).get_table_names():
            if table != "ops_mail_blob_chunk":
                rows = connection.execute(sa.text(f"SELECT * FROM {table}")).all()
                found[f"table {table}"] = "\n".join(map(repr, rows))
    assert "table ops_mail_message" in found
    return found


def commands(
    process: OpsMail, lines: Sequence[str], codes: Mapping[str, int] | None = None, folder: Path | None = None
) -> dict[str, str]:
    """What `ops-mail LINE` says with the settings of `process`, all at once. `codes`: which are not to end with 0."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.secrets.many_commands", *lines],
        cwd=folder or ROOT,
        env=process.environment() | {"COLUMNS": "1000"},  # a secret that is wrapped would not be found
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    said = json.loads(done.stdout)
    assert {line: code for line, (code, _) in said.items() if code} == dict(codes or {}), said
    return {f"ops-mail {line}": text for line, (_, text) in said.items()}


def settings_shown(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings as a debugger, or a careless line of log, would show them."""
    settings = load_settings(environment, env_file=None)
    parts = [getattr(settings, name) for name in settings.__slots__]
    return {"repr of the settings": repr(settings), "str of their parts": " ".join(map(str, parts))}

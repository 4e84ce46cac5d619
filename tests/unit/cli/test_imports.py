"""What a start or a command loads is what a user waits for: these libraries take a quarter of a second each."""

from __future__ import annotations

import subprocess
import sys

LIBRARIES = (
    "aiohttp", "aioimaplib", "alembic", "jinja2", "ops_mail.mime.parser", "ops_mail.web", "prometheus_client",
)  # fmt: skip

# Each stage may add to what the ones before it have loaded, so that one process is enough.
STAGES = {
    "the database alone": (
        ("migrate", "status", "status_watch", "mail_commands", "export"),
        set(),
    ),
    "the server, too": (("verify", "check"), {"aioimaplib"}),
    "and the parser": (("reparse",), {"aioimaplib", "ops_mail.mime.parser"}),
}


def loaded_after(program: str) -> list[set[str]]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_a_command_loads_nothing_large_that_it_does_not_need() -> None:
    look = f"print(*[name for name in {LIBRARIES!r} if name in sys.modules])"
    stages = [f"import {', '.join(f'ops_mail.cli.{name}' for name in names)}; {look}" for names, _ in STAGES.values()]
    stages.append(f"import ops_mail.app.process; {look}")
    *commands, process = loaded_after("\n".join(["import sys", *stages]))
    for (stage, (_, expected)), found in zip(STAGES.items(), commands, strict=True):
        assert found == expected, stage
    assert set(LIBRARIES) - process == {"alembic"}


def test_the_parsers_process_loads_the_parser_alone() -> None:
    others = ("aiohttp", "alembic", "asyncio", "pydantic", "sqlalchemy", "structlog", "typer")
    program = f"import sys, ops_mail.mime.worker; print('ready', *[name for name in {others!r} if name in sys.modules])"
    assert loaded_after(program) == [{"ready"}]

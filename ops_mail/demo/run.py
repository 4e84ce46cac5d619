"""The demo: the composition of `ops-mail run`, unchanged, on servers of its own."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ops_mail.app.process import Hooks, serve
from ops_mail.demo.feeding import Feeder
from ops_mail.demo.screen import Screen, landed_line
from ops_mail.demo.server import EmbeddedServer
from ops_mail.listener.tools import Landed
from ops_mail.logs import configure_logging
from ops_mail.settings import Settings, load_settings

_USERNAME = "demo@example.org"
_USUAL_PORT = 8080


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """`count`: end after so many mails (None: run on). `port` of the endpoints (None: 8080, or a free one)."""

    count: int | None = None
    every_seconds: float = 3.0
    port: int | None = None


def run_demo(options: DemoOptions | None = None, out: TextIO | None = None) -> int:
    """Run until Ctrl-C, SIGTERM or `count` mails, leaving nothing behind; give the exit code (1: the port is taken)."""
    return asyncio.run(_run(options or DemoOptions(), out or sys.stdout))


async def _run(options: DemoOptions, out: TextIO) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):  # from the first moment; the listener's own take over when it runs
        loop.add_signal_handler(number, stop.set)
    password = secrets.token_urlsafe(16)
    server = EmbeddedServer(_USERNAME, password)
    with tempfile.TemporaryDirectory(prefix="ops-mail-demo-") as folder:
        try:
            await server.start()
            settings = _settings(options, server.port, password, Path(folder))
            with configure_logging(settings.log, settings.role, settings.instance_name):
                return await _Demo(options, server, stop, Screen(out, stop.set)).run(settings)
        finally:
            await server.close()


class _Demo:
    def __init__(self, options: DemoOptions, server: EmbeddedServer, stop: asyncio.Event, screen: Screen) -> None:
        self._left = options.count
        self._feeder = Feeder(server, options.every_seconds, options.count)
        self._stop = stop
        self._screen = screen

    async def run(self, settings: Settings) -> int:
        feeding = asyncio.create_task(self._feeder.run(), name="demo feeder")
        hooks = Hooks(on_landed=self._on_landed, on_listening=self._on_listening, stop=self._stop)
        try:
            return await serve(settings, hooks)
        finally:
            feeding.cancel()
            await asyncio.wait({feeding})
            self._screen.say("the demo has ended, its folder is removed")

    def _on_listening(self, port: int) -> None:
        self._screen.say(f"page     http://127.0.0.1:{port}/")
        self._screen.say(f"metrics  http://127.0.0.1:{port}/metrics")
        self._screen.say("mails arrive in an embedded IMAP server and land in SQLite; Ctrl-C ends it")

    def _on_landed(self, landed: Landed) -> None:
        seconds = self._feeder.seconds_since_arrival(landed.mail.mail.message_id)
        self._screen.say(landed_line(landed.mail, seconds))
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self._stop.set()


def _settings(options: DemoOptions, imap_port: int, password: str, folder: Path) -> Settings:
    """Read as always, but from these values alone: neither .env nor the environment of the shell plays a part."""
    return load_settings(
        {
            "OPS_MAIL_IMAP_HOST": "127.0.0.1",
            "OPS_MAIL_IMAP_PORT": str(imap_port),
            "OPS_MAIL_IMAP_SECURITY": "plain",
            "OPS_MAIL_IMAP_USERNAME": _USERNAME,
            "OPS_MAIL_IMAP_PASSWORD": password,
            "OPS_MAIL_DATABASE_URL": f"sqlite+aiosqlite:///{folder / 'ops-mail.db'}",
            "OPS_MAIL_HTTP_HOST": "127.0.0.1",
            "OPS_MAIL_HTTP_PORT": str(_free_port() if options.port is None else options.port),
            "OPS_MAIL_LOG_LEVEL": "WARNING",  # the landed mails are the show
        },
        env_file=None,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", _USUAL_PORT))
        except OSError:
            return 0  # taken: let the system choose
        return _USUAL_PORT

"""Servers whose passwords are like no other word."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sqlalchemy as sa

from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.s3 import S3Server


@pytest.fixture
def guarded_dovecot() -> Iterator[Dovecot]:
    """Any user, and a password that looks different inside a URL and in base64."""
    server = Dovecot()
    server.password = "Imap/Word+7=&x?"
    with server:
        yield server


@pytest.fixture
def guarded_url(own_mariadb: MariaDb) -> str:
    """A database of its own whose account has such a password, on a server that the test may kill."""
    url = sa.make_url(own_mariadb.create_database())
    secret = "Base/Word+8=&%41#?"
    own_mariadb.execute(f"SET PASSWORD FOR '{url.username}'@'127.0.0.1' = PASSWORD('{secret}')")
    return url.set(password=secret).render_as_string(hide_password=False)


@pytest.fixture
def bucket() -> Iterator[S3Server]:
    """An object store."""
    server = S3Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def echoing_receiver() -> Iterator[str]:
    """The address of a webhook receiver that refuses everything and repeats what it was sent, as debug pages do."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.block_on_close = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()
    thread.join()


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        text = f"you asked for http://{self.headers['Host']}{self.path}\n{self.headers}".encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""

"""`check` on this machine: the port of the endpoints and the place for contents."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops_mail.cli.check.contents import contents_row
from ops_mail.cli.check.port import port_row
from ops_mail.cli.check.rows import Verdict
from ops_mail.settings import HttpSettings
from tests.servers.product import OpsMail
from tests.servers.s3 import S3Server


def http(port: int, host: str = "127.0.0.1") -> HttpSettings:
    return HttpSettings(host, port, show_content=False, token=None)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which something listens that is no ops-mail, and says nothing that HTTP would understand."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_free_port_is_free_and_stays_so(taken: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for _ in range(2):
        row = await port_row(http(port))
        assert (row.verdict, row.detail) == (Verdict.OK, f"127.0.0.1 port {port} is free")


async def test_port_0_is_left_to_the_system() -> None:
    assert (await port_row(http(0))).verdict is Verdict.OK


async def test_a_port_held_by_another_program_is_a_failure(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops_mail.cli.check.port._ASK_SECONDS", 0.2)
    row = await port_row(http(taken))
    assert (row.verdict, row.detail) == (Verdict.FAIL, f"127.0.0.1 port {taken} is held by another program")
    assert "OPS_MAIL_HTTP_PORT" in row.advice


async def test_an_address_of_another_machine_is_a_failure() -> None:
    row = await port_row(http(8080, "192.0.2.1"))
    assert row.verdict is Verdict.FAIL
    assert "OPS_MAIL_HTTP_HOST" in row.advice


async def test_a_port_held_by_a_running_ops_mail_is_as_it_should_be(tmp_path: Path) -> None:
    host = "0.0.0.0"
    with OpsMail(tmp_path, {"ENABLED": "false", "HTTP_HOST": host}, name="here") as running:
        row = await port_row(http(running.port, host))
        assert row.verdict is Verdict.OK
        assert row.detail.startswith(f"{host} port {running.port} is held by a running ops-mail (here, version ")


async def test_contents_in_the_database_need_no_trial() -> None:
    row = await contents_row("db:")
    assert (row.verdict, row.detail) == (Verdict.OK, "contents are kept in the database (OPS_MAIL_STORE_URL is db:)")


async def test_a_folder_is_written_to_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    row = await contents_row(f"file://{tmp_path}")
    assert row.verdict is Verdict.OK
    assert row.detail.startswith(f"{tmp_path}: written, read and removed, ")
    assert [each.name for each in tmp_path.rglob("*")] == ["ab"]


async def test_a_folder_that_does_not_exist_yet_is_not_made(tmp_path: Path) -> None:
    row = await contents_row(f"file://{tmp_path}/a/b")
    assert (row.verdict, row.detail) == (Verdict.WARN, f"{tmp_path}/a/b does not exist yet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["file", "file/folder"])
async def test_a_folder_that_cannot_be_one_is_a_failure(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    row = await contents_row(f"file://{tmp_path}/{below}")
    assert row.verdict is Verdict.FAIL
    assert row.detail.startswith(f"{tmp_path}/{below}: ")
    assert "OPS_MAIL_STORE_URL" in row.advice


async def test_a_bucket_is_written_to_and_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    server = S3Server()
    server.start()
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    try:
        row = await contents_row("s3://bucket/prefix")
    finally:
        server.stop()
    assert row.verdict is Verdict.OK
    assert server.requests >= 3
    assert server.objects == {}

"""Webhooks against a real HTTP server: what is sent, what each answer means, and whom nothing is sent to."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ops_mail.handlers.loading import LoadedHandler, load_handler
from ops_mail.handlers.webhook.addresses import PrivateAddressError, is_private, refuse_private_literal
from ops_mail.handlers.webhook.signing import sign
from ops_mail.settings import HandlerOrder, HandlerSettings, Secret, WebhookTarget
from ops_mail.store import Store
from tests.handlers.schema_check import check
from tests.handlers.seeding import mail_values, seed_store
from tests.integration.handlers.conftest import Serve, until
from tests.integration.handlers.test_service import attempts, land, mail_with, statuses
from tests.servers.tables import Tables

SCHEMA = json.loads(Path("ops_mail/handlers/schema/webhook.json").read_text())
SECRET = "a secret of the receiver's"


@dataclass
class Receiver:
    """An HTTP server that answers as it is told and keeps what it got."""

    url: str = ""
    answer: Callable[[web.Request], web.StreamResponse] = lambda _request: web.Response(text="thanks")
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    elsewhere: int = 0


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    one = Receiver()

    async def receive(request: web.Request) -> web.StreamResponse:
        one.got.append((dict(request.headers), await request.read()))
        return one.answer(request)

    async def elsewhere(_request: web.Request) -> web.StreamResponse:
        one.elsewhere += 1
        return web.Response()

    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_post("/hook", receive)
    application.router.add_route("*", "/elsewhere", elsewhere)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield one
    await runner.cleanup()


def webhook(url: str, *, secret: str | None = SECRET, block_private: bool = False, seconds: float = 5) -> LoadedHandler:
    kept = None if secret is None else Secret("OPS_MAIL_WEBHOOK_SECRET", value=secret)
    target = WebhookTarget(url, kept, block_private)
    loaded = load_handler(HandlerSettings(target, 4, seconds, 5, HandlerOrder.ANY))
    assert loaded is not None
    return loaded


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_mail_is_posted_signed_and_as_the_schema_says(
    store: Store, tables: Tables, serve: Serve, receiver: Receiver, tmp_path: Path
) -> None:
    await land(store, mail_with(b"\x00\xff file"), tmp_path)
    async with serve(webhook(receiver.url)):
        await until(lambda: statuses(tables) == {"done": 1}, "done")
    ((headers, body),) = receiver.got
    event = json.loads(body)
    check(event, SCHEMA)
    assert event["data"]["subject"] == "files"
    (attachment,) = event["data"]["attachments"]
    assert base64.b64decode(attachment["content_base64"]) == b"\x00\xff file"
    assert headers["webhook-id"] == event["id"]
    signed = b".".join((event["id"].encode(), headers["webhook-timestamp"].encode(), body))
    expected = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert "thanks" in str(attempts(tables)[0]["result"])


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_is_large_is_left_out_whole_and_repeats_are_equal(
    store: Store, tables: Tables, serve: Serve, receiver: Receiver, tmp_path: Path
) -> None:
    await land(store, mail_with(b"x" * 300_000), tmp_path)
    tables.execute("UPDATE ops_mail_message SET text_body = :text", text="é" * 200_000)
    receiver.answer = lambda _request: web.Response(status=500 if len(receiver.got) == 1 else 204)
    async with serve(webhook(receiver.url, secret=None)):
        await until(lambda: statuses(tables) == {"done": 1}, "done")
    (first, body), (second, again) = receiver.got
    assert body == again
    assert (first["X-Ops-Mail-Attempt"], second["X-Ops-Mail-Attempt"]) == ("1", "2")
    assert first["webhook-id"] == second["webhook-id"]
    assert "webhook-signature" not in first
    data = json.loads(body)["data"]
    check(json.loads(body), SCHEMA)
    assert data["text"] == {"value": None, "omitted": True, "size_bytes": 400_000}
    assert (data["attachments"][0]["content_base64"], data["attachments"][0]["omitted"]) == (None, True)
    assert len(body) < 10_000


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("status", "headers", "ends_as", "waits"),
    [
        (200, {}, "done", None),
        (404, {}, "dead", None),
        (408, {}, "retry", 2),
        (425, {"Retry-After": "50"}, "retry", 50),
        (429, {"Retry-After": "70"}, "retry", 70),
        (500, {}, "retry", 2),
        (503, {"Retry-After": "999999999"}, "retry", 3600),
    ],
)
async def test_each_answer_has_its_consequence(
    store: Store, tables: Tables, serve: Serve, receiver: Receiver,
    status: int, headers: dict[str, str], ends_as: str, waits: float | None,
) -> None:  # fmt: skip
    receiver.answer = lambda _request: web.Response(status=status, headers=headers, text="said so")
    await seed_store(store, [mail_values(1)])
    async with serve(webhook(receiver.url)):
        await until(lambda: statuses(tables).keys() == {ends_as}, "the end")
    (row,) = tables.rows("SELECT *, 1 AS one FROM ops_mail_message")
    if ends_as != "done":
        assert f"the receiver answered {status}: said so" in row["last_error"]
    if waits is not None:
        seconds = tables.value(
            "SELECT ROUND((julianday(next_attempt_at) - julianday(updated_at)) * 86400) FROM ops_mail_message"
        )
        assert seconds == waits


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_redirect_is_not_followed(store: Store, tables: Tables, serve: Serve, receiver: Receiver) -> None:
    receiver.answer = lambda _request: web.Response(status=307, headers={"Location": "/elsewhere"})
    await seed_store(store, [mail_values(1)])
    async with serve(webhook(receiver.url)):
        await until(lambda: statuses(tables) == {"retry": 1}, "the end")
    assert receiver.elsewhere == 0
    assert "307" in tables.value("SELECT last_error FROM ops_mail_message")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_nobody_there_no_answer_and_an_endless_answer_are_tried_again(
    store: Store, tables: Tables, serve: Serve, receiver: Receiver
) -> None:
    await seed_store(store, [mail_values(1)])
    async with serve(webhook("http://127.0.0.1:1/hook?token=T0K3N-to-hide")):
        await until(lambda: statuses(tables) == {"retry": 1}, "the end")
    error = tables.value("SELECT last_error FROM ops_mail_message")
    assert "no answer" in error
    assert "T0K3N" not in error

    stopped = asyncio.Event()

    async def silence(request: web.Request) -> web.StreamResponse:
        await stopped.wait()
        return web.Response()

    application = web.Application()
    application.router.add_post("/hook", silence)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    tables.execute("UPDATE ops_mail_message SET status = 'landed', next_attempt_at = NULL")
    async with serve(webhook(f"http://127.0.0.1:{runner.addresses[0][1]}/hook", seconds=0.5), timeout_seconds=0.5):
        await until(lambda: len(attempts(tables)) == 2 and statuses(tables) == {"retry": 1}, "the end")
    stopped.set()
    await runner.cleanup()
    assert attempts(tables)[1]["outcome"] in ("timed_out", "retry")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_answer_that_is_no_http_does_not_tell_the_url(store: Store, tables: Tables, serve: Serve) -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET LOST\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    await seed_store(store, [mail_values(1)])
    port = server.sockets[0].getsockname()[1]
    async with serve(webhook(f"http://127.0.0.1:{port}/hook/T0K3N?token=T0K3N to hide")):
        await until(lambda: statuses(tables) == {"retry": 1}, "the end")
    server.close()
    error = tables.value("SELECT last_error FROM ops_mail_message")
    assert "the answer is no HTTP that can be read" in error
    assert "T0K3N" not in error


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_private_addresses_can_be_refused(store: Store, tables: Tables, serve: Serve, receiver: Receiver) -> None:
    await seed_store(store, [mail_values(1), mail_values(2)])
    async with serve(webhook(receiver.url, block_private=True)):
        await until(lambda: statuses(tables) == {"retry": 2}, "the end")
    tables.execute("UPDATE ops_mail_message SET status = 'landed', next_attempt_at = NULL")
    by_name = receiver.url.replace("127.0.0.1", "localhost")
    async with serve(webhook(by_name, block_private=True)):
        await until(lambda: len(attempts(tables)) == 4 and statuses(tables) == {"retry": 2}, "the end")
    assert receiver.got == []
    assert "OPS_MAIL_WEBHOOK_BLOCK_PRIVATE" in tables.value("SELECT last_error FROM ops_mail_message WHERE uid = 1")


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("127.0.0.1", True), ("10.0.0.1", True), ("192.168.1.1", True), ("169.254.169.254", True), ("0.0.0.0", True),
        ("100.64.0.1", True), ("224.0.0.1", True), ("::1", True), ("fe80::1%eth0", True), ("fd00::1", True),
        ("::ffff:10.0.0.1", True), ("8.8.8.8", False), ("2606:4700:4700::1111", False), ("::10.0.0.1", True),
        ("64:ff9b::7f00:1", True), ("64:ff9b::808:808", False), ("2002:a00:1::1", True), ("2002:808:808::1", False),
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str, private: bool) -> None:
    assert is_private(address) is private


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "127.1", "2130706433", "0", "0177.0.0.1", "127.0.0.1.", "127。0。0。1", "１２７.0.0.1"],
)
def test_an_address_is_one_in_every_spelling(host: str) -> None:
    with pytest.raises(PrivateAddressError):
        refuse_private_literal(f"https://{host}:8443/hook")
    refuse_private_literal("https://hooks.example.org/127.0.0.1")


def test_the_signature_is_that_of_the_specification() -> None:
    # The example of the Standard Webhooks specification.
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_schema_refuses_what_it_does_not_know() -> None:
    event: dict[str, Any] = {
        "type": "mail.landed",
        "version": 1,
        "id": "mail_" + "0" * 32,
        "timestamp": "x",
        "data": {},
    }
    with pytest.raises(AssertionError, match="timestamp"):
        check(event, SCHEMA)

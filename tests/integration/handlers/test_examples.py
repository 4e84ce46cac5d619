"""The examples that are documented, run as documented: by name, in a real process, on each engine."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from ops_mail.store import Store
from tests.handlers.seeding import MAILBOX, mail_values, seed_store
from tests.integration.handlers.conftest import until
from tests.integration.handlers.test_service import land, mail_with, statuses
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

EXAMPLES = Path(__file__).resolve().parents[3] / "deploy" / "examples"


@contextlib.contextmanager
def consumer(name: str, database_url: str, folder: Path) -> Iterator[OpsMail]:
    """The product with the example in its folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text((EXAMPLES / f"{name}.py").read_text())
    settings = {"ROLE": "consumer", "DATABASE_URL": database_url, "HANDLER": f"{name}:handle"}
    process = OpsMail(folder, settings)
    try:
        yield process.launch()
        assert process.terminate() == 0
    finally:
        process.close()


async def test_attachments_are_saved(
    store: Store, database_url: str, tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPS_ATTACHMENTS_DIR", str(tmp_path / "saved"))
    await land(store, mail_with(b"\x00content"), tmp_path)
    await seed_store(store, [mail_values(2)])
    with consumer("save_attachments", database_url, tmp_path / "run"):
        await until(lambda: statuses(tables) == {"done": 1, "skipped": 1}, "ends", 60)
    key = hashlib.sha256(f"{MAILBOX}/INBOX/7/1".encode()).hexdigest()[:16]
    assert (tmp_path / "saved" / key / "00-big.bin").read_bytes() == b"\x00content"


async def test_an_api_is_called(
    store: Store, database_url: str, tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []

    async def ticket(request: web.Request) -> web.Response:
        body = await request.json()
        seen.append((request.headers["Idempotency-Key"], body["title"]))
        if body["title"] == "mail 2":
            return web.Response(status=422, text="no such customer")
        if len(seen) == 1:
            return web.Response(status=503)
        return web.json_response({"id": 17})

    application = web.Application()
    application.router.add_post("/tickets", ticket)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("OPS_TICKET_URL", f"http://127.0.0.1:{runner.addresses[0][1]}/tickets")
    await seed_store(store, [mail_values(1), mail_values(2)])
    with consumer("call_api", database_url, tmp_path / "run") as process:
        await until(lambda: statuses(tables) == {"done": 1, "dead": 1}, "ends", 60)
        assert "Traceback" not in process.log_text()
        await asyncio.to_thread(process.terminate)
    await runner.cleanup()
    assert sorted({key for key, title in seen if title == "mail 1"}) == [f"{MAILBOX}/INBOX/7/1"]
    assert "no such customer" in tables.value("SELECT last_error FROM ops_mail_message WHERE uid = 2")
    assert "17" in str(tables.value("SELECT result FROM ops_mail_attempt WHERE outcome = 'done'"))


async def test_fields_are_extracted_exactly_once(
    store: Store, database_url: str, tables: Tables, tmp_path: Path
) -> None:
    statement = (EXAMPLES / "extract_invoice.py").read_text().split("    CREATE", 1)[1].split(";", 1)[0]
    tables.execute("CREATE" + statement)
    texts = ["Invoice No. A-17\nTotal: EUR 1234,50\n", "hello", "Invoice number B-1, total unreadable"]
    await seed_store(store, [mail_values(uid, text_body=text) for uid, text in enumerate(texts, 1)])
    with consumer("extract_invoice", database_url, tmp_path / "run"):
        await until(lambda: statuses(tables) == {"done": 1, "skipped": 1, "dead": 1}, "ends", 60)
    assert tables.rows("SELECT * FROM ops_invoice") == [
        {"mail_key": f"{MAILBOX}/INBOX/7/1", "number": "A-17", "cents": 123450}
    ]

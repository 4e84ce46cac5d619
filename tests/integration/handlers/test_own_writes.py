"""A handler's own writes and results that the database does not take: nobody else waits, and what was done is done."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from ops_mail.core.outcome import EndKind
from ops_mail.errors import StoreRefused
from ops_mail.handlers import Done, Mail, Write
from ops_mail.store import Store
from ops_mail.store.schema import message
from tests.handlers.seeding import mail_values, seed_store
from tests.integration.handlers.conftest import Serve, until
from tests.integration.handlers.test_claims import ended, handling, wish
from tests.integration.handlers.test_service import attempts, statuses
from tests.servers.tables import Tables


async def test_a_value_that_no_driver_can_send_is_refused(store: Store, tables: Tables) -> None:
    tables.execute("CREATE TABLE ops_x (a VARCHAR(100))")
    await seed_store(store, [mail_values(1)])
    work = handling(store)
    (claim,) = await work.claim(wish())
    write = Write("INSERT INTO ops_x (a) VALUES (:a)", {"a": {"b": "c"}})
    (unwritten,) = await work.write([ended(claim, EndKind.SUCCEEDED, writes=(write,))])
    assert type(unwritten.error) is StoreRefused
    assert not unwritten.alone


@pytest.mark.parametrize("database_url", ["mariadb"], indirect=True)
async def test_a_write_that_the_database_never_takes_fails_its_mail_and_holds_up_no_other(
    store: Store, tables: Tables, serve: Serve
) -> None:
    tables.execute("CREATE TABLE ops_x (a VARCHAR(100))")
    # What a server says when it gives a statement up; as if this one took too long each time.
    tables.execute(
        "CREATE TRIGGER ops_slow BEFORE INSERT ON ops_x FOR EACH ROW IF NEW.a = 'slow' THEN"
        " SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'given up'; END IF"
    )

    def handle(mail: Mail) -> Done | None:
        value = "slow" if mail.uid == 1 else f"mail {mail.uid}"
        return Done({"uid": mail.uid}, writes=[Write("INSERT INTO ops_x (a) VALUES (:a)", {"a": value})])

    await seed_store(store, [mail_values(uid) for uid in range(1, 7)])
    async with serve(handle, max_attempts=1):
        await until(lambda: statuses(tables) == {"done": 5, "dead": 1}, "ends")
    assert tables.value("SELECT COUNT(*) FROM ops_x") == 5
    (dead,) = tables.rows("SELECT uid, last_error FROM ops_mail_message WHERE status = 'dead'")
    assert dead["uid"] == 1
    assert "3 times the database did not take it, although it took others" in dead["last_error"]


@pytest.mark.parametrize("database_url", ["mysql"], indirect=True)
async def test_a_result_that_the_server_does_not_take_leaves_the_mail_done(
    store: Store, tables: Tables, serve: Serve
) -> None:
    calls = []

    def handle(mail: Mail) -> dict[str, int]:
        calls.append(mail.uid)
        return {"number": 10**400}

    await seed_store(store, [mail_values(1)])
    async with serve(handle):
        await until(lambda: statuses(tables) == {"done": 1}, "the end")
    assert calls == [1]
    (attempt,) = attempts(tables)
    assert attempt["result"] is None
    assert "the result was not kept" in attempt["error"]


async def test_a_lease_is_renewed_beside_a_row_that_is_being_written(server_store: Store) -> None:
    await seed_store(server_store, [mail_values(uid) for uid in (1, 2)])
    work = handling(server_store)
    claims = await work.claim(wish())
    engine, lease = server_store.engine, sa.select(message.c.id, message.c.lease_until)
    async with engine.connect() as reader:
        before = {row.id: row.lease_until for row in await reader.execute(lease)}
    locked, free = (claim.message_pk for claim in claims)
    async with engine.connect() as writer, writer.begin():
        await writer.execute(sa.update(message).where(message.c.id == locked).values(subject="being written"))
        assert await work.renew(claims) == set(), "none of them is lost"
        assert await work.renew([replace(claims[0], lease_id="another"), claims[1]]) == {f"another/{locked}"}
        async with engine.connect() as reader:
            after = {row.id: row.lease_until for row in await reader.execute(lease)}
    assert after[free] > before[free]
    assert after[locked] == before[locked]

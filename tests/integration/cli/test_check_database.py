"""`check` on real database servers: driver and version, schema, privileges, guard; and that nothing is written."""

from __future__ import annotations

import asyncio
import json

import pytest

from ops_mail.core.ids import FolderKey
from ops_mail.store import Guard, open_store
from tests.integration.cli.conftest import Cli, CompletedProcess
from tests.servers.process import SqlServer
from tests.servers.tables import Tables

# Nothing listens there: these tests are about the database, and its rows come first.
MAILBOX = {"IMAP_HOST": "127.0.0.1", "IMAP_PORT": 1, "IMAP_USERNAME": "billing", "IMAP_PASSWORD": "hunter2"}


def rows(done: CompletedProcess) -> dict[str, dict[str, str]]:
    assert done.stderr == ""
    return {row["step"]: row for row in json.loads(done.stdout)["checks"] if row["group"] == "database"}


def database_of(url: str) -> str:
    return url.rpartition("/")[2].partition("?")[0]


def test_a_migrated_database_passes(cli: Cli, sql_server: SqlServer) -> None:
    url = sql_server.create_database()
    assert cli("migrate", DATABASE_URL=url).returncode == 0
    found = rows(cli("check", "--json", DATABASE_URL=url, **MAILBOX))
    assert {step: row["verdict"] for step, row in found.items()} == {
        "reachable": "ok",
        "clock": "ok",
        "schema": "ok",
        "privileges": "ok",
        "guard": "ok",
    }
    assert found["reachable"]["detail"].endswith(" by aiomysql")
    assert any(f": {name} " in found["reachable"]["detail"] for name in ("MariaDB", "MySQL"))
    assert found["guard"]["detail"] == "billing/INBOX is free"


def test_nothing_is_written(cli: Cli, sql_server: SqlServer) -> None:
    url = sql_server.create_database()
    found = rows(cli("check", "--json", DATABASE_URL=url, **MAILBOX))
    assert found["schema"]["verdict"] == "warn"
    assert found["schema"]["detail"] == "there are no tables yet"
    assert sql_server.execute("SHOW TABLES", database_of(url)) == ()
    cli("migrate", DATABASE_URL=url)
    cli("check", DATABASE_URL=url, **MAILBOX)
    assert Tables(url).value("SELECT COUNT(*) FROM ops_mail_cursor") == 0


def test_without_auto_migrate_missing_tables_are_a_failure(cli: Cli, sql_server: SqlServer) -> None:
    url = sql_server.create_database()
    done = cli("check", "--json", DATABASE_URL=url, AUTO_MIGRATE="false", **MAILBOX)
    assert done.returncode == 1
    row = rows(done)["schema"]
    assert (row["verdict"], row["advice"]) == ("fail", "OPS_MAIL_AUTO_MIGRATE is false: run `ops-mail migrate`")


def test_an_account_that_can_write_a_forbidden_table_fails(cli: Cli, sql_server: SqlServer) -> None:
    url = sql_server.create_database()
    cli("migrate", DATABASE_URL=url)
    sql_server.execute("CREATE TABLE domain_event_outbox (id INT PRIMARY KEY)", database_of(url))
    done = cli("check", "--json", DATABASE_URL=url, **MAILBOX)
    assert done.returncode == 1
    row = rows(done)["privileges"]
    assert row["verdict"] == "fail"
    assert "INSERT on domain_event_outbox" in row["detail"]
    assert "OPS_MAIL_FORBIDDEN_TABLES" in row["advice"]
    harmless = rows(cli("check", "--json", DATABASE_URL=url, FORBIDDEN_TABLES="another_table", **MAILBOX))
    assert harmless["privileges"]["verdict"] == "ok"


def test_an_account_that_may_only_read_fails(cli: Cli, sql_server: SqlServer) -> None:
    url = sql_server.create_database("SELECT")
    row = rows(cli("check", "--json", DATABASE_URL=url, **MAILBOX))["privileges"]
    assert row["verdict"] == "fail"
    assert "INSERT on ops_mail_" in row["detail"]


def test_the_guards_holder_is_named(cli: Cli, database_url: str) -> None:
    key = FolderKey("billing", "INBOX")

    async def hold() -> CompletedProcess:
        store = open_store(database_url, lease_seconds=60)
        guard = Guard(store, "node-1:10:abc", lease_seconds=60)
        try:
            await store.migrate()
            assert await guard.try_acquire(key) is not None
            return await asyncio.to_thread(cli, "check", "--json", DATABASE_URL=database_url, **MAILBOX)
        finally:
            await guard.close()
            await store.close()

    row = rows(asyncio.run(hold()))["guard"]
    assert row["verdict"] == "ok"
    assert row["detail"] == "billing/INBOX is held by node-1:10:abc; another instance would stand by"


@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("mysql+aiomysql://u:hunter2@127.0.0.1:1/db", "Can't connect to MySQL server"),
        ("mysql+aiomysql://u:hunter2@no.such.host.invalid/db", "Can't connect to MySQL server"),
    ],
)
def test_a_database_that_is_not_there_fails_and_the_rest_is_skipped(cli: Cli, url: str, detail: str) -> None:
    done = cli("check", "--json", DATABASE_URL=url, **MAILBOX)
    assert done.returncode == 1
    assert "hunter2" not in done.stdout
    found = rows(done)
    assert {step: row["verdict"] for step, row in found.items()} == {
        "reachable": "fail",
        "clock": "skipped",
        "schema": "skipped",
        "privileges": "skipped",
        "guard": "skipped",
    }
    assert detail in found["reachable"]["detail"]
    assert found["reachable"]["advice"] == "check OPS_MAIL_DATABASE_URL"


def test_a_wrong_password_is_told_without_it(cli: Cli, sql_server: SqlServer) -> None:
    url = sql_server.create_database()
    name, _, rest = url.partition("://")
    user, _, place = rest.partition("@")
    wrong = f"{name}://{user.partition(':')[0]}:hunter2-wrong@{place}"
    done = cli("check", "--json", DATABASE_URL=wrong, **MAILBOX)
    row = rows(done)["reachable"]
    assert row["verdict"] == "fail"
    assert "Access denied" in row["detail"]
    assert "hunter2" not in done.stdout


def test_a_sqlite_file_that_cannot_be_made_fails(cli: Cli) -> None:
    done = cli("check", "--json", DATABASE_URL="sqlite+aiosqlite:////no/such/folder/ops-mail.db", **MAILBOX)
    row = rows(done)["reachable"]
    assert (row["verdict"], row["detail"]) == (
        "fail",
        "/no/such/folder/ops-mail.db cannot be made in /no/such/folder",
    )

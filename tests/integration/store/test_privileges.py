from __future__ import annotations

import sqlalchemy as sa

from ops_mail.store import PrivilegeReport, Store, open_store
from ops_mail.store.schema import metadata
from tests.servers.process import SqlServer

FORBIDDEN = ("domain_event_outbox", "memory_sync_outbox")


async def report(url: str) -> PrivilegeReport:
    store = open_store(url, lease_seconds=5, forbidden_tables=FORBIDDEN)
    try:
        return await store.privileges()
    finally:
        await store.close(2)


def account(url: str) -> tuple[str, str]:
    """(database, account in quotes)."""
    name = str(sa.make_url(url).database)
    return name, f"'{name}'@'127.0.0.1'"


async def test_everything_on_the_schema_includes_the_forbidden_tables(sql_server: SqlServer) -> None:
    url = sql_server.create_database()
    assert await report(url) == PrivilegeReport()  # they do not exist here
    sql_server.execute("CREATE TABLE domain_event_outbox (id INT)", account(url)[0])
    found = await report(url)
    assert "INSERT on domain_event_outbox" in found.forbidden
    assert "DROP on domain_event_outbox" in found.forbidden
    assert (found.missing, found.complete) == ((), True)


async def test_an_account_for_the_ops_tables_alone(sql_server: SqlServer) -> None:
    url = sql_server.create_database("SELECT")
    name, user = account(url)
    sql_server.execute("CREATE TABLE memory_sync_outbox (id INT)", name)
    found = await report(url)
    assert found.forbidden == ()
    assert found.missing == ("INSERT on ops_mail_*", "UPDATE on ops_mail_*", "DELETE on ops_mail_*")
    for table in [*metadata.tables, "ops_mail_alembic_version"]:
        rights = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX"
        sql_server.execute(f"GRANT {rights} ON {name}.{table} TO {user}")
    assert await report(url) == PrivilegeReport()
    store = open_store(url, lease_seconds=5)
    assert await store.migrate() != []  # and with these it runs
    await store.close(2)
    sql_server.execute(f"REVOKE DELETE ON {name}.ops_mail_attempt FROM {user}")
    sql_server.execute(f"GRANT UPDATE (id) ON {name}.memory_sync_outbox TO {user}")
    found = await report(url)
    assert found.missing == ("DELETE on ops_mail_attempt",)
    assert found.forbidden == ("UPDATE on memory_sync_outbox",)


async def test_rights_by_a_role_count(sql_server: SqlServer) -> None:
    url = sql_server.create_database("SELECT")
    name, user = account(url)
    sql_server.execute(f"CREATE ROLE role_{name}")
    sql_server.execute(f"GRANT INSERT, UPDATE, DELETE ON {name}.* TO role_{name}")
    sql_server.execute(f"GRANT role_{name} TO {user}")
    is_mariadb = "MariaDB" in str(sql_server.execute("SELECT VERSION()"))
    sql_server.execute(f"SET DEFAULT ROLE role_{name} {'FOR' if is_mariadb else 'TO'} {user}")
    found = await report(url)
    assert (found.missing, found.complete) == ((), True)
    assert found.missing_for_migrate != ()


async def test_sqlite_has_no_accounts(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        assert await report(database_url) == PrivilegeReport()
    else:
        assert (await report(database_url)).complete


async def test_instances_come_and_go(store: Store) -> None:
    await store.upsert_instance("one", "all", {"pid": 1})
    await store.upsert_instance("two", "consumer", None)
    await store.upsert_instance("one", "leader", {"pid": 2})
    found = {one.instance: one for one in await store.list_instances()}
    assert (found["one"].role, found["one"].detail, found["two"].detail) == ("leader", {"pid": 2}, None)
    assert 0 <= found["one"].age_seconds < 30
    await store.remove_instance("one")
    assert [one.instance for one in await store.list_instances()] == ["two"]

"""The account that deploy/mysql makes can run ops-mail, and the server refuses it everything else."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import CLIENT, ER

from ops_mail.store.schema import VERSION_TABLE, metadata
from tests.integration.deploy.files import DEPLOY
from tests.servers.dovecot import Dovecot
from tests.servers.process import SqlServer
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

PASSWORD = "Correct-horse-9"
_users = itertools.count(1)


@dataclass(frozen=True)
class Account:
    """The account under test; `foreign` is another system's schema, where its outbox lives."""

    server: SqlServer
    schema: str
    foreign: str

    @property
    def url(self) -> str:
        return f"mysql+aiomysql://ops_mail:{PASSWORD}@127.0.0.1:{self.server.port}/{self.schema}"

    def error_of(self, statement: str) -> int | None:
        """The server's error number for a statement of this account; None when it is carried out."""
        with (
            pymysql.connect(
                host="127.0.0.1", port=self.server.port, user="ops_mail", password=PASSWORD, autocommit=True
            ) as connection,
            connection.cursor() as cursor,
        ):
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                return int(error.args[0])
        return None


@pytest.fixture(params=["grants.sql", "grants-shared-schema.sql"])
def account(request: pytest.FixtureRequest, sql_server: SqlServer) -> Iterator[Account]:
    """The account as an administrator makes it: the file as it is, then the password."""
    shared = request.param == "grants-shared-schema.sql"
    sql_server.execute("CREATE DATABASE app")
    sql_server.execute("CREATE TABLE app.domain_event_outbox (id INT PRIMARY KEY, payload TEXT)")
    sql_server.execute("INSERT INTO app.domain_event_outbox VALUES (1, 'theirs')")
    run_script(sql_server, (DEPLOY / "mysql" / request.param).read_text())
    sql_server.execute(f"ALTER USER 'ops_mail'@'%' IDENTIFIED BY '{PASSWORD}' ACCOUNT UNLOCK")
    yield Account(sql_server, "app" if shared else "opsmail", "app")
    sql_server.execute("DROP USER 'ops_mail'@'%'")
    sql_server.execute("DROP DATABASE app")
    sql_server.execute("DROP DATABASE IF EXISTS opsmail")


def run_script(server: SqlServer, text: str) -> None:
    with (
        pymysql.connect(
            host="127.0.0.1", port=server.port, user="root", password="", client_flag=CLIENT.MULTI_STATEMENTS
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(text)
        while cursor.nextset():
            pass


def migrate(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ops_mail", "migrate"],
        env={**os.environ, "OPS_MAIL_DATABASE_URL": url, "PYTHONPATH": str(DEPLOY.parent)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_migrating_and_landing_work_and_another_systems_table_is_out_of_reach(
    account: Account, dovecot: Dovecot, tmp_path: Path
) -> None:
    done = migrate(account.url, tmp_path)
    assert done.returncode == 0, done.stderr

    user = f"granted{next(_users)}"
    dovecot.append(user, "INBOX", b"Subject: one\r\n\r\nbody\r\n")
    settings = {
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": dovecot.port,
        "IMAP_SECURITY": "plain",
        "IMAP_USERNAME": user,
        "IMAP_PASSWORD": dovecot.password,
        "DATABASE_URL": account.url,
    }
    with OpsMail(tmp_path, settings) as process:
        process.wait_state("idling")
        assert process.terminate() == 0
    assert Tables(account.url).count() == 1

    outbox = f"{account.foreign}.domain_event_outbox"
    for statement in (
        f"INSERT INTO {outbox} VALUES (2, 'ours')",
        f"UPDATE {outbox} SET payload = 'ours'",
        f"DELETE FROM {outbox}",
        f"SELECT * FROM {outbox}",
        f"DROP TABLE {outbox}",
        f"ALTER TABLE {outbox} ADD COLUMN ours INT",
        f"CREATE TABLE {account.foreign}.another (id INT)",
    ):
        assert account.error_of(statement) in (ER.TABLEACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR), statement
    assert account.server.execute(f"SELECT * FROM {outbox}") == ((1, "theirs"),)


def test_the_account_is_locked_until_it_has_a_password(sql_server: SqlServer) -> None:
    run_script(sql_server, (DEPLOY / "mysql" / "grants.sql").read_text())
    try:
        with pytest.raises(pymysql.MySQLError):
            pymysql.connect(host="127.0.0.1", port=sql_server.port, user="ops_mail", password="")
    finally:
        sql_server.execute("DROP USER 'ops_mail'@'%'")
        sql_server.execute("DROP DATABASE opsmail")


def test_the_shared_schemas_grants_name_every_table_of_ours() -> None:
    text = (DEPLOY / "mysql" / "grants-shared-schema.sql").read_text()
    named = re.findall(r"ON `app`\.`(\w+)`", text)
    assert len(named) == len(set(named))
    assert {*metadata.tables, VERSION_TABLE} <= set(named)
    assert all(name.startswith("ops_mail_") for name in named)

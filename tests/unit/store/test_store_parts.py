from __future__ import annotations

import asyncio
import re

import pymysql
import pytest
import sqlalchemy.exc as sa_exc
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.grants import read_grants
from ops_mail.core.guardname import MAX_LENGTH, guard_name
from ops_mail.core.ids import FolderKey
from ops_mail.errors import ConfigError, StoreError, StoreRefused, StoreUnavailable
from ops_mail.store.edge import edge, is_contention, translate
from ops_mail.store.engine import Session, init_command, parse_url
from ops_mail.store.rows import RowLimits
from ops_mail.store.tableguard import Problem, problem_of

texts = st.text(min_size=1, max_size=90)


@given(texts, texts, texts, texts, texts, texts)
def test_lock_names_are_short_and_apart(s1: str, m1: str, f1: str, s2: str, m2: str, f2: str) -> None:
    one, two = guard_name(s1, FolderKey(m1, f1)), guard_name(s2, FolderKey(m2, f2))
    assert len(one) <= MAX_LENGTH
    assert re.fullmatch(r"ops_mail:[a-z0-9_.@/:+-]*", one)
    if (s1, m1, f1) != (s2, m2, f2) and "/" not in m1 + m2 + s1 + s2 and ":" not in m1 + m2 + s1 + s2:
        assert one != two


def test_a_lock_name_is_readable_when_it_can_be() -> None:
    assert guard_name("mails", FolderKey("a@b.org", "archive")) == "ops_mail:mails:a@b.org/archive"
    assert guard_name("mails", FolderKey("a@b.org", "INBOX")).startswith("ops_mail:a@b.org:")


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("sqlite:///x.db", "sqlite+aiosqlite"),
        ("mysql://u:p@h/d", "mysql+aiomysql"),
        ("mariadb+asyncmy://u:p@h/d", "mariadb+asyncmy"),
    ],
)
def test_urls_get_an_asynchronous_driver(url: str, driver: str) -> None:
    assert parse_url(url).drivername == driver


@pytest.mark.parametrize("url", ["postgresql://u:geheim@h/d", "mysql+pymysql://u:geheim@h/d", "geheim"])
def test_other_urls_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_url(url)
    assert "geheim" not in str(told.value)


def test_the_session_has_a_limit_for_either_server() -> None:
    command = init_command(Session(idle_seconds=60, statement_seconds=1.5))
    assert "/*M!100100 , max_statement_time=1.5 */" in command
    assert "/*!80000 , max_execution_time=1500 */" in command
    assert "wait_timeout=60" in command


def database_error(kind: type[sa_exc.DBAPIError], *args: object) -> sa_exc.DBAPIError:
    return kind("INSERT secret", {"body": "secret"}, pymysql.err.OperationalError(*args))


@pytest.mark.parametrize(
    ("code", "becomes"),
    [
        (2006, StoreUnavailable),
        (2013, StoreUnavailable),
        (1205, StoreUnavailable),
        (1213, StoreUnavailable),
        (1290, StoreUnavailable),
        (1114, StoreUnavailable),
        (1045, StoreUnavailable),
        (1146, StoreUnavailable),
        (1969, StoreUnavailable),
        (3024, StoreUnavailable),
        (3140, StoreRefused),
        (4025, StoreRefused),
        (1366, StoreRefused),
        (1153, StoreRefused),
    ],
)
def test_each_servers_error_has_its_meaning(code: int, becomes: type[StoreError]) -> None:
    told = translate(database_error(sa_exc.OperationalError, code, "what it says"), "landing")
    assert type(told) is becomes
    assert "secret" not in str(told)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (1044, "may not use this database"),
        (1045, "refused the login"),
        (1049, "no database of this name"),
        (2003, "cannot be reached"),
    ],
)
def test_why_nobody_gets_in_is_told_apart(code: int, says: str) -> None:
    told = str(translate(database_error(sa_exc.OperationalError, code, "what it says"), "asking"))
    assert says in told
    assert "check OPS_MAIL_DATABASE_URL" in told


def test_contention_is_worth_another_try() -> None:
    assert is_contention(database_error(sa_exc.OperationalError, 1213, "deadlock"))
    assert is_contention(database_error(sa_exc.IntegrityError, 1062, "duplicate"))
    assert not is_contention(database_error(sa_exc.DataError, 1406, "too long"))
    assert not is_contention(ValueError())


async def test_silence_and_data_errors_are_translated_and_bugs_are_not() -> None:
    with pytest.raises(StoreUnavailable, match="no answer"):
        async with edge("asking", 0.01):
            await asyncio.sleep(5)
    with pytest.raises(StoreRefused):
        async with edge("asking", 1):
            "\ud800".encode()
    with pytest.raises(StoreUnavailable):
        async with edge("asking", 1):
            raise ConnectionResetError
    with pytest.raises(KeyError):
        async with edge("asking", 1):
            raise KeyError


@given(st.integers(1024 * 1024, 2**30))
def test_a_row_fits_its_packet(packet: int) -> None:
    limits = RowLimits.for_packet(packet)
    assert limits.piece_chars is not None
    in_one_insert = 3 * 2 * limits.json_bytes + 2 * 2 * 4 * limits.piece_chars + 2 * 2 * 65_535
    assert in_one_insert < packet
    assert limits.body_bytes + 3 * limits.json_bytes < packet


def test_grants_are_read_as_the_servers_write_them() -> None:
    grants = read_grants(
        [
            "GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*X'",
            "GRANT SELECT, INSERT ON `ops\\_db`.* TO `u`@`%`",
            "GRANT UPDATE (`a`, `b`), DELETE ON `other`.`t` TO `u`@`%`",
            "GRANT `role`@`%` TO `u`@`%`",
            "GRANT EXECUTE ON PROCEDURE `x`.`p` TO `u`@`%`",
        ]
    )
    assert grants.complete
    assert grants.allows("INSERT", "ops_db", "x")
    assert not grants.allows("INSERT", "opsXdb", "x")
    assert not grants.allows("UPDATE", "ops_db", "x")
    assert grants.allows("UPDATE", "other", "t")
    assert not grants.allows("UPDATE", "other", "u")
    assert read_grants(["GRANT ALL PRIVILEGES ON `a%`.* TO `u`@`%`"]).allows("DROP", "abc", "x")
    assert read_grants(["GRANT ALL PRIVILEGES ON *.* TO `u`@`%` WITH GRANT OPTION"]).allows("DROP", "abc", "x")
    assert not read_grants(["REVOKE INSERT ON `db`.* FROM `u`@`%`"]).complete


def test_foreign_tables_are_a_problem_and_the_catalogue_is_none() -> None:
    assert problem_of("SELECT * FROM ops_mail_message") is None
    assert problem_of("SELECT * FROM own.ops_mail_message", "own") is None
    assert problem_of("SELECT * FROM information_schema.tables") is None
    assert problem_of("SELECT * FROM sqlite_master") is None
    for sql in ("SELECT * FROM x", "SELECT * FROM other.ops_x", "SELECT * FROM OPS_X", "SELECT * FROM ops", "CALL x()"):
        assert problem_of(sql, "own") is not None, sql
    told = problem_of("CALL x('a mail')")
    assert told is not None
    assert "a mail" not in told.text


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("INSERT INTO VALUES ('a mail')", "a table's name was expected after INTO, not VALUES"),
        ("UPDATE SET x = 'a mail'", "a table's name was expected after UPDATE, not SET"),
        ("SELECT 'a mail' FROM", "a table's name was expected after FROM, where the statement ends"),
        ("INSERT INTO ops_x VALUES ('a mail'", "a parenthesis without an end"),
        ("INSERT INTO ops_x VALUES ('a mail)", "a quote without an end"),
        ("SELCT 'a mail'", "the kind of statement is unknown: SELCT"),
        ("'a mail'", "the kind of statement is unknown: it begins with no word"),
    ],
)
def test_a_statement_with_a_slip_is_told_as_one_that_was_not_understood(sql: str, says: str) -> None:
    assert problem_of(sql) == Problem(f"the statement was not sent, it could not be understood: {says}", True)


def test_a_foreign_table_is_told_as_such() -> None:
    told = problem_of("DELETE FROM memory_sync_outbox")
    assert told is not None
    assert not told.unreadable
    assert "names the table 'memory_sync_outbox'" in told.text

from __future__ import annotations

import pytest

from ops_mail.core.handler_sql import MAX_SQL_CHARS, handler_sql_problem

ALLOWED = [
    "INSERT INTO ops_x (a) VALUES (:a)",
    "INSERT INTO ops_x SELECT subject FROM ops_mail_message WHERE id = :id",
    "INSERT INTO ops_x VALUES (1) ON DUPLICATE KEY UPDATE a = a + 1",
    "INSERT INTO ops_x VALUES (1) ON CONFLICT (a) DO UPDATE SET a = a + 1",
    "REPLACE INTO ops_x VALUES (:a)",
    "UPDATE ops_x SET a = (SELECT COUNT(*) FROM ops_mail_message)",
    "DELETE FROM ops_x WHERE a IN (SELECT id FROM ops_mail_message);",
    "WITH x AS (SELECT id FROM ops_mail_message) DELETE FROM ops_x WHERE a IN (SELECT id FROM x)",
    "SELECT LAST_INSERT_ID() INTO @id",
    "SELECT a FROM ops_x WHERE b = :b FOR UPDATE",
]
# What ends the transaction, at once or by implication (DDL), so that writes and `done` would no longer be one.
ENDS_IT = [
    "COMMIT", "ROLLBACK", "BEGIN", "START TRANSACTION", "/* INSERT */ COMMIT", "SAVEPOINT a", "RELEASE SAVEPOINT a",
    "CREATE TABLE ops_y (i INT)", "DROP TABLE ops_x", "ALTER TABLE ops_x ADD b INT", "RENAME TABLE ops_x TO ops_y",
    "TRUNCATE TABLE ops_x", "CREATE INDEX ops_i ON ops_x (a)", "ANALYZE TABLE ops_x", "LOCK TABLES ops_x WRITE",
    "UNLOCK TABLES", "SET autocommit = 1", "LOAD DATA INFILE 'x' INTO TABLE ops_x",
]  # fmt: skip
# What stays behind on a connection that is used by others afterwards, or hits other connections.
OUTLIVES_IT = [
    "SET SESSION sql_mode = ''", "SET @x = 1", "USE other", "DO GET_LOCK('a', 0)", "SELECT GET_LOCK('a', 0)",
    "INSERT INTO ops_x VALUES (get_lock('a', 1))", "SELECT `GET_LOCK`('a', 0)", "SELECT RELEASE_ALL_LOCKS()",
    "KILL 5", "PRAGMA journal_mode = DELETE", "CALL ops_p()", "HANDLER ops_x OPEN", "PREPARE x FROM 'COMMIT'",
]  # fmt: skip
OWN_TABLES = [
    "UPDATE ops_mail_message SET status = 'landed'",
    "DELETE FROM `ops_mail_attempt`",
    "INSERT INTO ops_MAIL_audit VALUES (1)",
    "REPLACE ops_mail_cursor VALUES (1)",
    "DELETE ops_mail_blob FROM ops_x JOIN ops_mail_blob",
    "DELETE FROM ops_x USING ops_x JOIN ops_mail_blob",
    "UPDATE ops_x, ops_mail_message SET status = 'done'",
    "WITH ops_mail_message AS (SELECT 1) DELETE FROM ops_mail_message",
    "INSERT INTO here.ops_mail_audit VALUES (1)",
]
MORE = [
    "",
    ";",
    "INSERT INTO ops_x VALUES (1); COMMIT",
    "INSERT INTO ops_x VALUES (1) /*! , (2) */",
    "EXPLAIN SELECT 1",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_a_handler_may_read_and_change_rows(sql: str) -> None:
    assert handler_sql_problem(sql) is None


@pytest.mark.parametrize("sql", [*ENDS_IT, *OUTLIVES_IT, *MORE])
def test_nothing_ends_or_outlives_the_transaction(sql: str) -> None:
    assert handler_sql_problem(sql) is not None


@pytest.mark.parametrize("sql", OWN_TABLES)
def test_the_tables_of_ops_mail_can_only_be_read(sql: str) -> None:
    assert "can only be read" in (handler_sql_problem(sql) or "")


def test_a_statement_has_a_length_that_the_main_loop_can_read_in_passing() -> None:
    start, end = "INSERT INTO ops_x VALUES ('", "')"
    fits = start + "x" * (MAX_SQL_CHARS - len(start) - len(end)) + end
    assert handler_sql_problem(fits) is None
    assert "parameters" in (handler_sql_problem(fits + " ") or "")

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.sqlnames import UnreadableSqlError, tables_named

READABLE = {
    "SELECT 1": set(),
    "SELECT * FROM a": {"a"},
    "select * from a as x, b y join (c cross join d) on 1=1, e where x.i in (select j from f)": set("abcdef"),
    "SELECT * FROM ((a))": {"a"},
    "(SELECT * FROM a) UNION (SELECT * FROM b)": {"a", "b"},
    "SELECT * FROM a LEFT JOIN b USING (id), c": {"a", "b", "c"},
    "SELECT * FROM a USE INDEX (i, j), b": {"a", "b"},
    "SELECT * FROM a PARTITION (p0, p1), b": {"a", "b"},
    "SELECT * FROM a ON_, LATERAL (SELECT * FROM b) x": {"a", "b"},
    "SELECT (SELECT MAX(i) FROM a), b FROM c": {"a", "c"},
    "SELECT 'x from s', \"y from s\", `from` FROM a -- from s\n, b # from s": {"a", "b"},
    "SELECT * FROM a /* from s */ WHERE 'it''s' = 'from s'": {"a"},
    "SELECT EXTRACT(YEAR FROM s), TRIM(BOTH 'x' FROM s) FROM a": {"a"},
    "SELECT TRIM(BOTH 'x' FROM (SELECT i FROM a))": {"a"},
    "SELECT * FROM a WHERE x IS NOT DISTINCT FROM y": {"a"},
    "SELECT * FROM a JOIN b ON t.where = 1, c": {"a", "b", "c"},
    "SELECT * FROM a JOIN b ON @where = 1, c": {"a", "b", "c"},
    "SELECT * FROM a offset, b": {"a", "b"},
    "SELECT * FROM a WHERE x IN b": {"a", "b"},
    "SELECT * FROM a FOR UPDATE SKIP LOCKED": {"a"},
    "SELECT * FROM a LOCK IN SHARE MODE": {"a"},
    "SELECT * FROM a ORDER BY x, y LIMIT 1, 2": {"a"},
    "SELECT * FROM DUAL": set(),
    "SELECT * FROM JSON_TABLE('[]', '$' COLUMNS (x INT PATH '$')) t, a": {"a"},
    "WITH x AS (SELECT * FROM a) SELECT * FROM x, b": {"a", "b"},
    "WITH x AS (SELECT * FROM x) SELECT * FROM x": {"x"},
    "WITH x AS (SELECT 1), y (i, j) AS (SELECT * FROM x, a) SELECT * FROM y, x": {"a"},
    "WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT i+1 FROM x) SELECT * FROM x": set(),
    "SELECT * FROM s WHERE i IN (WITH s AS (SELECT 1) SELECT * FROM s)": {"s"},
    "WITH s AS (SELECT 1) DELETE FROM s": {"s"},
    "WITH S AS (SELECT 1) SELECT * FROM s": {"s"},
    "INSERT INTO a (x, y) VALUES (%s, %s), (%s, %s)": {"a"},
    "INSERT IGNORE a SET x = 1": {"a"},
    "INSERT OR REPLACE INTO a SELECT * FROM b": {"a", "b"},
    "INSERT INTO a SELECT * FROM b ON DUPLICATE KEY UPDATE x = 1, y = 2": {"a", "b"},
    "INSERT INTO a VALUES (1) ON CONFLICT (x) DO UPDATE SET x = 1, y = 2": {"a"},
    "INSERT INTO a TABLE b": {"a", "b"},
    "REPLACE INTO a VALUES (REPLACE('x', 'y', 'z'), INSERT('x', 1, 2, 'z'))": {"a"},
    "REPLACE a VALUES (1)": {"a"},
    "UPDATE a, b SET a.x = b.x": {"a", "b"},
    "UPDATE LOW_PRIORITY a JOIN b ON 1 SET x = (SELECT MAX(i) FROM c)": {"a", "b", "c"},
    "DELETE a FROM a JOIN b": {"a", "b"},
    "DELETE FROM a USING a JOIN b": {"a", "b"},
    "TABLE a": {"a"},
    "CREATE TABLE IF NOT EXISTS a (i INT, j INT REFERENCES b (i) ON DELETE CASCADE ON UPDATE CASCADE)": {"a", "b"},
    "CREATE TABLE a LIKE b": {"a", "b"},
    "CREATE TABLE a (LIKE b)": {"a", "b"},
    "CREATE TABLE a AS SELECT * FROM b": {"a", "b"},
    "CREATE UNIQUE INDEX i ON a (x, y)": {"a"},
    "DROP INDEX i ON a": {"i", "a"},
    "DROP TABLE IF EXISTS a, b": {"a", "b"},
    "ALTER TABLE a ADD COLUMN x INT, ADD COLUMN y INT": {"a"},
    "ALTER TABLE a RENAME TO b": {"a", "b"},
    "ALTER TABLE a RENAME COLUMN x TO y": {"a"},
    "ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b": {"a", "b"},
    "RENAME TABLE a TO b, c TO d": set("abcd"),
    "TRUNCATE a": {"a"},
    "LOCK TABLES a READ, b AS x WRITE": {"a", "b"},
    "LOAD DATA INFILE 'f' INTO TABLE a": {"a"},
    "SHOW CREATE TABLE a": {"a"},
    "SHOW FULL COLUMNS FROM a": {"a"},
    "SHOW FULL TABLES FROM `s`": set(),
    "SHOW VARIABLES LIKE 'x'": set(),
    "DESCRIBE `a`": {"a"},
    "EXPLAIN FORMAT=JSON SELECT * FROM a": {"a"},
    "EXPLAIN QUERY PLAN SELECT * FROM a": {"a"},
    'PRAGMA main.table_info("a")': set(),
    "BEGIN IMMEDIATE": set(),
    "SELECT GET_LOCK(%s, 0)": set(),
    "SET @x = (SELECT MAX(i) FROM a)": {"a"},
    "SELECT 1 INTO @x FROM a": {"a"},
    "": set(),
}

UNREADABLE = [
    "SELECT 1; DELETE FROM s",
    "PRAGMA foreign_keys; DELETE FROM s",
    "SELECT * FROM ops_a /*! , s */",
    "SELECT * FROM ops_a /*M!100100 , s */",
    "SELECT 1--1 FROM s",
    "SELECT 'a\\' FROM s -- '",
    "SELECT 1.FROM s",
    "SELECT * FROM [s]",
    "SELECT * FROM { OJ s }",
    "SELECT * FROM %s",
    "SELECT * FROM ?",
    "SELECT * FROM :t",
    "SELECT * FROM f(1)",
    "SELECT * FROM a.b.c",
    "SELECT * FROM a INTO OUTFILE 'x'",
    "SELECT NEXT VALUE FOR s",
    "SELECT NEXTVAL(s)",
    "CALL p()",
    "PREPARE x FROM 'DELETE FROM s'",
    "EXECUTE IMMEDIATE 'DELETE FROM s'",
    "HANDLER s OPEN",
    "USE other",
    "ATTACH 'f' AS x",
    "VACUUM",
    "GRANT ALL ON s TO u",
    "CREATE VIEW ops_v AS SELECT * FROM s",
    "CREATE TRIGGER ops_t AFTER INSERT ON s BEGIN DELETE FROM s; END",
    "CREATE PROCEDURE ops_p() DELETE FROM s",
    "CREATE TABLE ops_a (i INT) ENGINE=MERGE UNION=(s)",
    "DROP DATABASE x",
    "SET STATEMENT max_statement_time=1 FOR UPDATE s SET x = 1",
    "PRAGMA writable_schema = 1",
    "SHOW CREATE VIEW s",
    "SELECT (1",
    "SELECT 1)",
    "SELECT 'x",
    "SELECT /* x",
    "`s`",
]


@pytest.mark.parametrize("sql", READABLE)
def test_every_table_is_named(sql: str) -> None:
    assert tables_named(sql) == {(None, name) for name in READABLE[sql]}


def test_schemas_are_told_apart() -> None:
    assert tables_named("SELECT * FROM ops_a.s, `o p`.`x``y` JOIN ops_b") == {
        ("ops_a", "s"),
        ("o p", "x`y"),
        (None, "ops_b"),
    }
    assert tables_named("SHOW COLUMNS FROM a FROM b") == {("b", "a")}


@pytest.mark.parametrize("sql", UNREADABLE)
def test_what_cannot_be_told_for_certain_is_refused(sql: str) -> None:
    with pytest.raises(UnreadableSqlError):
        tables_named(sql)


blanks = st.sampled_from([" ", "\n", "\t", "/* x, y FROM z */", " -- FROM z\n", " # , z\n"])
names = st.sampled_from(["ops_a", "`ops_b`", '"ops_c"', "ops_d AS x", "ops_e y", "ops_f offset"])
filters = st.sampled_from(["", " WHERE 'FROM z' = x", " GROUP BY x, y", " ORDER BY x, y", " LIMIT 1, 2"])
joins = st.sampled_from([", ", " JOIN ", " LEFT OUTER JOIN ", " CROSS JOIN ", " NATURAL JOIN "])


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> str:
    """A SELECT over tables and subqueries, nested in FROM, WHERE or WITH."""
    parts = [draw(names)]
    for _ in range(draw(st.integers(0, 3))):
        inner = f"({draw(queries(depth=depth - 1))}) q" if depth and draw(st.booleans()) else draw(names)
        parts += [draw(joins), inner]
    sql = f"SELECT x, (y), f(z, 1){draw(blanks)}FROM {''.join(parts)}{draw(blanks)}{draw(filters)}"
    if depth and draw(st.booleans()):
        sql = f"WITH ops_w AS ({draw(queries(depth=depth - 1))}) {sql}"
    return sql


@given(queries())
def test_a_query_of_ops_tables_names_ops_tables_alone(sql: str) -> None:
    assert {table.startswith("ops_") for _, table in tables_named(sql)} == {True}


@given(queries(), st.data())
def test_a_foreign_table_is_found_wherever_it_stands(sql: str, data: st.DataObject) -> None:
    spots = [at for at in range(len(sql)) if sql.startswith(("ops_", "`ops_", '"ops_'), at) and sql[at - 1] not in '`"']
    spots = [at for at in spots if not sql.startswith("ops_w AS", at)]
    at = data.draw(st.sampled_from(spots))
    spoilt = sql[:at] + "secret, " + sql[at:]
    assert (None, "secret") in tables_named(spoilt)


@given(st.text(alphabet=st.sampled_from("'\"`\\-#/*!;()., \nFROMselctjinwhausdv@:%1"), max_size=60))
def test_any_text_is_read_or_refused(sql: str) -> None:
    try:
        names_found = tables_named(sql)
    except UnreadableSqlError:
        return
    assert all(isinstance(table, str) for _, table in names_found)

"""The runbook says the same in both languages, and what it says to type works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest
import sqlalchemy as sa
import typer.main
from pymysql.constants import CLIENT
from typer.core import TyperGroup

from ops_mail.cli.main import app
from ops_mail.core.audit_action import AuditAction
from tests.integration.deploy.files import DEPLOY, ROOT, RUNBOOKS, alerts
from tests.servers.commands import CommandLine, environment_with
from tests.servers.dovecot import Dovecot
from tests.servers.process import SqlServer
from tests.servers.product import OpsMail, wait_for
from tests.servers.tables import Tables

ENGLISH, CHINESE = (book.read_text() for book in RUNBOOKS)
_cli = typer.main.get_command(app)
assert isinstance(_cli, TyperGroup)
COMMANDS = set(_cli.commands)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, without the indentation of a list."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def sql_with(part: str) -> str:
    """The one block of SQL with these words."""
    (found,) = [block for block in blocks(ENGLISH, "sql") if part in block]
    return found


def anchors(text: str) -> list[str]:
    """What a link can lead to, in order: explicit ones, and the alerts' headings as every renderer makes them."""
    found = re.findall(r'^<a id="([^"]+)"></a>$|^### (OpsMail\w+)$', text, re.MULTILINE)
    return [(explicit or heading).lower() for explicit, heading in found]


def test_both_languages_have_the_same_entries_in_the_same_order() -> None:
    assert anchors(ENGLISH) == anchors(CHINESE)
    assert [name for name in anchors(ENGLISH) if name.startswith("opsmail")] == [
        alert["alert"].lower() for alert in alerts()
    ]


@pytest.mark.parametrize("language", ["sh", "sql"])
def test_both_languages_say_to_type_the_same(language: str) -> None:
    assert blocks(ENGLISH, language) == blocks(CHINESE, language)
    assert len(blocks(ENGLISH, language)) > 5


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_links_lead_somewhere(text: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        assert not path or (DEPLOY / path).exists(), target
        assert not anchor or anchor in anchors(text), target


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_each_alert_tells_what_it_means_how_to_see_it_and_how_to_mend_it(text: str) -> None:
    words = ("**Means**", "**See**", "**Mend**") if text is ENGLISH else ("**含义**", "**查看**", "**处理**")
    for alert in alerts():
        entry = text.split(f"\n### {alert['alert']}\n")[1].split("\n#", maxsplit=1)[0]
        for word in words:
            assert word in entry or word.lower() in entry, (alert["alert"], word)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_the_commands_and_settings_it_names_exist(text: str) -> None:
    typed = "\n".join(blocks(text, "sh"))
    named = {*re.findall(r"`ops-mail ([a-z]+)", text), *re.findall(r"(?:^|-- )ops-mail ([a-z]+)", typed, re.MULTILINE)}
    assert {"status", "check", "verify", "migrate", "parse"} <= named
    assert named <= COMMANDS
    known = (ROOT / ".env.example").read_text()
    for name in re.findall(r"OPS_MAIL_([A-Z_]+[A-Z])\b", text):
        assert f"OPS_MAIL_{name}" in known or name in ("X", "X_FILE"), name


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_action_of_the_audit_trail_is_explained(text: str) -> None:
    entry = text.split('<a id="audit"></a>')[1].split("<a id=", maxsplit=1)[0]
    explained = re.findall(r"^\| `([a-z_]+)` \| (?:system|operator) \| .", entry, re.MULTILINE)
    by_hand = [block for block in blocks(text, "sql") if "INSERT INTO ops_mail_audit" in block]
    written = re.findall(r"'operator', '([a-z_]+)'", "".join(by_hand))
    assert sorted(explained) == sorted([*AuditAction, *written])


def test_the_log_events_it_names_exist() -> None:
    source = "".join(path.read_text() for path in (ROOT / "ops_mail").rglob("*.py"))
    several = r"log events?((?: and|,|, or)? `[a-z_]+`(?:(?:,| and|, or) `[a-z_]+`)*)"
    named = re.findall(several, ENGLISH.replace("\n", " "))
    events = {event for group in named for event in re.findall(r"`([a-z_]+)`", group)}
    assert len(events) >= 8
    assert {event for event in events if f'"{event}"' not in source} == set()


@dataclass(frozen=True)
class Landed:
    """A database that ops-mail has filled from a mailbox; `environment` is that of the process."""

    server: SqlServer
    url: str
    environment: dict[str, str]
    process: OpsMail
    command_line: CommandLine

    def type(self, line: str, folder: Path) -> None:
        """Runs a line that begins with `ops-mail`; it has to end with 0."""
        env = environment_with(**self.environment, OPS_MAIL_HTTP_PORT=0)
        done = self.command_line.run(tuple(line.split()[1:]), env, folder)
        assert done.returncode == 0, f"{line}: {(done.stdout + done.stderr).decode()}"

    def run_sql(self, script: str) -> list[tuple[object, ...]]:
        """Runs a block as an administrator would; the rows of all its queries."""
        url = sa.make_url(self.url)
        rows: list[tuple[object, ...]] = []
        with (
            pymysql.connect(
                host="127.0.0.1",
                port=self.server.port,
                user="root",
                password="",
                database=url.database,
                client_flag=CLIENT.MULTI_STATEMENTS,
                autocommit=True,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(script)
            rows += cursor.fetchall()
            while cursor.nextset():
                rows += cursor.fetchall()
        return rows


SHARED = "SGVsbG8gV29ybGQ="


def mail(sender: str, number: int, attachment: str) -> bytes:
    return (
        f"From: {sender}\r\nSubject: {number}\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
        f"--b\r\nContent-Type: text/plain\r\n\r\ntext {number}\r\n"
        '--b\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename="a.bin"\r\n'
        f"Content-Transfer-Encoding: base64\r\n\r\n{attachment}\r\n--b--\r\n"
    ).encode()


@pytest.fixture
def landed(
    sql_server: SqlServer,
    dovecot: Dovecot,
    command_line: CommandLine,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Landed]:
    user = f"runbook-{abs(hash(request.node.nodeid))}"
    own = "cHJpdmF0ZSB0byBvbmU="
    mails = [mail("Someone <someone@example.org>", 1, own), mail("Someone@Example.org", 2, SHARED)]
    dovecot.append_many(user, "INBOX", [*mails, mail("else@example.org", 3, SHARED)])
    url = sql_server.create_database()
    settings = {
        "IMAP_HOST": "127.0.0.1",
        "IMAP_PORT": dovecot.port,
        "IMAP_SECURITY": "plain",
        "IMAP_USERNAME": user,
        "IMAP_PASSWORD": dovecot.password,
        "DATABASE_URL": url,
    }
    environment = {f"OPS_MAIL_{name}": str(value) for name, value in settings.items()}
    with OpsMail(tmp_path, settings) as process:
        process.wait_state("idling")
        # The row follows the process's own state, and `status` reads the row.
        wait_for(lambda: Tables(url).value("SELECT state FROM ops_mail_cursor") == "idling", "row that idles", 20)
        yield Landed(sql_server, url, environment, process, command_line)


def test_its_queries_commands_and_addresses_answer(landed: Landed, tmp_path: Path) -> None:
    queries = [block for block in blocks(ENGLISH, "sql") if block.startswith("SELECT")]
    assert len(queries) >= 5
    for query in queries:
        landed.run_sql(query)
    lines = [line for block in blocks(ENGLISH, "sh") for line in block.splitlines()]
    ours = {line for line in lines if line.startswith("ops-mail ") and not line.startswith("ops-mail dead")}
    assert {"ops-mail status", "ops-mail check", "ops-mail migrate", "ops-mail verify"} <= ours
    for line in ours:
        landed.type(line, tmp_path)
    for path in re.findall(r"curl -s localhost:8080(\S+)", ENGLISH):
        assert landed.process.get(path)[0] == 200, path


def test_forgetting_a_sender_leaves_nothing_of_theirs_and_all_that_others_share(landed: Landed) -> None:
    tables = Tables(landed.url)
    before = {row["sha256"] for row in tables.rows("SELECT sha256 FROM ops_mail_blob")}
    theirs = tables.rows(
        "SELECT m.id, m.raw_sha256, a.sha256 FROM ops_mail_message m JOIN ops_mail_attachment a ON a.message_pk = m.id"
        " WHERE m.from_addr LIKE 'someone%'"
    )
    (other,) = tables.rows(
        "SELECT m.id, m.raw_sha256, a.sha256 FROM ops_mail_message m JOIN ops_mail_attachment a ON a.message_pk = m.id"
        " WHERE m.from_addr = 'else@example.org'"
    )
    assert len(theirs) == 2
    assert other["sha256"] in {row["sha256"] for row in theirs}

    landed.run_sql(sql_with("ops_mail_forget"))

    assert [row["id"] for row in tables.rows("SELECT id FROM ops_mail_message")] == [other["id"]]
    assert [row["message_pk"] for row in tables.rows("SELECT message_pk FROM ops_mail_attachment")] == [other["id"]]
    gone = {row["raw_sha256"] for row in theirs} | {row["sha256"] for row in theirs} - {other["sha256"]}
    for table in ("ops_mail_blob", "ops_mail_blob_chunk"):
        assert {row["sha256"] for row in tables.rows(f"SELECT sha256 FROM {table}")} == before - gone
    (audit,) = tables.rows("SELECT actor, detail FROM ops_mail_audit WHERE action = 'sender_forgotten'")
    assert audit["actor"] == "operator"
    assert re.search(r'"mails": ?2', str(audit["detail"]))


def test_dead_letters_are_retried_or_given_up(landed: Landed, tmp_path: Path) -> None:
    tables = Tables(landed.url)
    tables.execute("UPDATE ops_mail_message SET status = 'dead', attempts = 5, last_error = 'no' WHERE id <= 3")
    (block,) = [block for block in blocks(ENGLISH, "sh") if "dead retry" in block]
    for line in block.splitlines():
        landed.type(line, tmp_path)
    rows = tables.rows("SELECT status, attempts - attempts_forgiven AS counting FROM ops_mail_message ORDER BY id")
    assert [row["status"] for row in rows] == ["retry", "skipped", "dead"]
    assert rows[0]["counting"] == 0
    assert tables.value("SELECT COUNT(*) FROM ops_mail_audit WHERE actor = 'operator'") == 2


def test_a_mailbox_that_is_renamed_goes_on_where_it_was(landed: Landed, tmp_path: Path) -> None:
    assert landed.process.terminate() == 0
    old = landed.environment["OPS_MAIL_IMAP_USERNAME"]
    landed.run_sql(sql_with("'new-name'").replace("old-name", old))
    mailboxes = tmp_path / "mailboxes.toml"
    keys = ("host", "username", "password", "security")
    lines = [f'{key} = "{landed.environment[f"OPS_MAIL_IMAP_{key.upper()}"]}"' for key in keys]
    lines.append(f"port = {landed.environment['OPS_MAIL_IMAP_PORT']}")
    mailboxes.write_text("\n".join(["[[mailbox]]", 'name = "new-name"', *lines]))
    mailboxes.chmod(0o600)
    with OpsMail(tmp_path, {"MAILBOXES_FILE": mailboxes, "DATABASE_URL": landed.url}, name="renamed") as process:
        process.wait_state("idling")
    tables = Tables(landed.url)
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE mailbox = 'new-name'") == 3
    assert tables.count() == 3
    assert tables.cursor()["epoch"] == 2

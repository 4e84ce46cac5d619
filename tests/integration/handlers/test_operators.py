"""`dead` and `messages`, run as an operator runs them, on each engine."""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ops_mail.store import Store
from tests.handlers.seeding import MAILBOX, mail_values, seed_store
from tests.integration.handlers.test_service import land, mail_with
from tests.servers.commands import CommandLine, Done, environment_with
from tests.servers.tables import Tables

Cli = Callable[..., Done]


@pytest.fixture
def cli(command_line: CommandLine, database_url: str, tmp_path: Path) -> Cli:
    """Runs `ops-mail …` on the test's database; no terminal on standard input."""
    env = environment_with(OPS_MAIL_DATABASE_URL=database_url, COLUMNS=250)
    return lambda *arguments: command_line.run(arguments, env, tmp_path)


async def three_dead_and_one_done(store: Store) -> None:
    dead = {"status": "dead", "attempts": 5, "crashes": 2}
    await seed_store(
        store,
        [
            mail_values(1, **dead, last_error="TimeoutError: the API\n  at line 1"),
            mail_values(2, **dead, last_error="ValueError: 100% odd"),
            mail_values(3, **dead, mailbox="other", last_error="ValueError: other"),
            mail_values(4, status="done"),
        ],
    )


async def test_dead_mails_are_listed_by_mailbox_age_and_error(store: Store, cli: Cli, tables: Tables) -> None:
    await three_dead_and_one_done(store)
    tables.execute("UPDATE ops_mail_message SET updated_at = '2020-01-01 00:00:00' WHERE uid = 1")

    def uids(*options: str) -> list[int]:
        done = cli("dead", "list", "--json", *options)
        assert done.returncode == 0, done.stderr
        return sorted(int(line["key"].rsplit("/")[-1]) for line in json.loads(done.stdout))

    assert uids() == [1, 2, 3]
    assert uids("--mailbox", MAILBOX) == [1, 2]
    assert uids("--older-than", "1d") == [1]
    assert uids("--newer-than", "2h") == [2, 3]
    assert uids("--error", "valueerror") == [2, 3]
    assert uids("--error", "100%") == [2], "a % is a %"
    shown = cli("dead", "list").stdout.decode()
    assert "mail 2" in shown
    assert "ValueError: 100% odd" in shown
    assert cli("dead", "list", "--older-than", "soon").returncode == 2


async def test_a_dead_mail_is_retried_with_all_its_attempts_and_its_history(
    store: Store, cli: Cli, tables: Tables
) -> None:
    await three_dead_and_one_done(store)
    key = f"{MAILBOX}/INBOX/7/2"
    done = cli("dead", "retry", key)
    assert (done.returncode, done.stdout) == (0, b"retry: 1 mail\n"), done.stderr
    (row,) = tables.rows("SELECT * FROM ops_mail_message WHERE uid = 2")
    assert (row["status"], row["attempts"], row["attempts_forgiven"], row["crashes"]) == ("retry", 5, 5, 0)
    (audit,) = tables.rows("SELECT * FROM ops_mail_audit")
    assert (audit["actor"], audit["action"], audit["message_pk"]) == ("operator", "dead_retry", row["id"])
    detail = json.loads(audit["detail"]) if isinstance(audit["detail"], str) else audit["detail"]
    assert detail == {
        "by": f"{getpass.getuser()}@{socket.gethostname()}",
        "attempts": 5,
        "error": "ValueError: 100% odd",
    }
    shown = json.loads(cli("dead", "show", key, "--json").stdout)
    assert shown["audit"][0]["action"] == "dead_retry"


async def test_more_than_one_needs_a_word(store: Store, cli: Cli, tables: Tables) -> None:
    await three_dead_and_one_done(store)
    assert cli("dead", "discard").returncode == 2, "which ones?"
    assert cli("dead", "discard", "--all").returncode == 2, "really?"
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'dead'") == 3
    done = cli("dead", "discard", "--all", "--yes")
    assert done.stdout == b"discard: 3 mails\n"
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'skipped'") == 3
    assert tables.value("SELECT COUNT(*) FROM ops_mail_audit WHERE action = 'dead_discard'") == 3
    assert cli("dead", "discard", "--all", "--yes").returncode == 1, "there is none any more"


async def test_only_dead_mails_are_touched(store: Store, cli: Cli, tables: Tables) -> None:
    await three_dead_and_one_done(store)
    done_id = tables.value("SELECT id FROM ops_mail_message WHERE status = 'done'")
    assert cli("dead", "retry", str(done_id)).returncode == 1
    assert cli("dead", "retry", "' OR 1=1 --").returncode == 1
    assert tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status = 'retry'") == 0


async def test_many_dead_mails_are_changed_in_batches(store: Store, cli: Cli, tables: Tables) -> None:
    await seed_store(store, [mail_values(uid, status="dead", attempts=1) for uid in range(1, 251)])
    assert cli("dead", "retry", "--all", "--yes").stdout == b"retry: 250 mails\n"
    assert tables.value("SELECT COUNT(*) FROM ops_mail_audit") == 250


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_mail_that_dies_again_meanwhile_is_retried_once(store: Store, cli: Cli, tables: Tables) -> None:
    await seed_store(store, [mail_values(uid, status="dead", attempts=1) for uid in range(1, 251)])
    # The fastest handler there is: its mail is dead again before the next batch is looked for.
    tables.execute(
        "CREATE TRIGGER ops_dies AFTER UPDATE OF status ON ops_mail_message WHEN NEW.status = 'retry'"
        " BEGIN UPDATE ops_mail_message SET status = 'dead' WHERE id = NEW.id; END"
    )
    assert cli("dead", "retry", "--all", "--yes").stdout == b"retry: 250 mails\n"
    assert tables.value("SELECT COUNT(*) FROM ops_mail_audit") == 250


async def test_mails_come_out_as_they_went_in(store: Store, cli: Cli, tables: Tables, tmp_path: Path) -> None:
    raw = mail_with(b"content")
    await land(store, raw, tmp_path)
    await seed_store(store, [mail_values(2)])
    first, second = (row["id"] for row in tables.rows("SELECT id FROM ops_mail_message ORDER BY uid"))
    assert cli("messages", "raw", str(first)).stdout == raw
    missing = cli("messages", "raw", str(second))
    assert missing.returncode == 1
    assert b"no content is stored" in missing.stderr
    assert cli("messages", "raw", "999999").returncode == 1
    shown = cli("messages", "show", str(first)).stdout.decode()
    assert "files" in shown
    assert "big.bin" in shown
    assert json.loads(cli("messages", "show", str(first), "--json").stdout)["text"].strip() == "hello"
    done = cli("messages", "export", "out")
    assert done.returncode == 1, "one has no bytes"
    assert (tmp_path / "out" / f"{first}.eml").read_bytes() == raw
    index = [json.loads(line) for line in (tmp_path / "out" / "index.jsonl").read_text().splitlines()]
    assert [(line["id"], line["file"]) for line in index] == [(second, None), (first, f"{first}.eml")]
    listed = json.loads(cli("messages", "list", "--status", "landed", "--limit", "1", "--json").stdout)
    assert [line["id"] for line in listed] == [second]

"""`messages export` into the same folder again, and what `messages show` tells of the attempts."""

from __future__ import annotations

import json
from pathlib import Path

from ops_mail.store import open_store
from tests.handlers.seeding import mail_values, seed_store
from tests.integration.cli.conftest import Cli
from tests.integration.handlers.test_service import land, mail_with
from tests.servers.tables import Tables


async def seeded(tmp_path: Path) -> Tables:
    """A mail with bytes (id 1) and a dead one without (id 2), in the database that the commands use by themselves."""
    url = f"sqlite+aiosqlite:///{tmp_path}/ops-mail.db"
    store = open_store(url, lease_seconds=30)
    await store.migrate()
    await land(store, mail_with(b"content"), tmp_path)
    await seed_store(store, [mail_values(2, status="dead", attempts=2, last_error="ValueError: no")])
    await store.close()
    return Tables(url)


async def test_a_second_export_adds_to_the_index_and_a_folder_that_cannot_be_written_is_told(
    cli: Cli, tmp_path: Path
) -> None:
    await seeded(tmp_path)

    def index() -> list[tuple[int, str | None]]:
        lines = (tmp_path / "out" / "index.jsonl").read_text().splitlines()
        return [(line["id"], line["file"]) for line in map(json.loads, lines)]

    first = cli("messages", "export", "out", "--status", "landed")
    assert (first.returncode, first.stdout) == (0, "1 mail written to out\n"), first.stderr
    assert index() == [(1, "1.eml")]
    second = cli("messages", "export", "out", "--status", "dead")
    assert (second.returncode, second.stdout) == (1, "0 mails written to out, 1 without bytes (index.jsonl says why)\n")
    assert index() == [(2, None), (1, "1.eml")]
    (tmp_path / "file").touch()
    refused = cli("messages", "export", "file/out")
    assert (refused.returncode, refused.stderr) == (1, "cannot write file/out: Not a directory\n")


async def test_what_attempts_returned_and_why_they_failed_is_shown_within_bounds(cli: Cli, tmp_path: Path) -> None:
    tables = await seeded(tmp_path)
    insert = (
        "INSERT INTO ops_mail_attempt"
        " (message_pk, attempt_no, handler, instance, started_at, finished_at, outcome, result, error)"
        " VALUES (2, :no, 'shop:handle', 'a:1:b', '2026-01-05 10:00:00', '2026-01-05 10:00:01',"
        " :outcome, :result, :error)"
    )
    hostile = json.dumps({"order": 4711, "note": "\x1b[2J" + "x" * 5000}, ensure_ascii=False)
    tables.execute(insert, no=1, outcome="retry", result=None, error="ValueError: odd \x1b]0;title\x07\n  at line 1")
    tables.execute(insert, no=2, outcome="done", result=hostile, error="the result (set) was not kept")
    shown = cli("dead", "show", "2")  # as `messages show`
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    assert "ValueError: odd \\u001b]0;title\\u0007" in text
    assert '{"order": 4711, "note": ' in text
    assert "the result (set) was not kept" in text
    assert len(text) < 2000
    assert "\x1b" not in shown.stdout

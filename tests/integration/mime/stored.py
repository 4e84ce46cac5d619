"""Mails that have landed as the product lands them, ways to spoil what was derived from them, and looks at the rows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ops_mail.cli.reparse import reparse_mails
from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import Listed, RawMail
from ops_mail.mime.prepare import PrepareLimits, prepare
from ops_mail.settings import load_settings
from ops_mail.store import Guard, LandingBatch, open_store
from ops_mail.store.blob_choice import keep_contents_in
from ops_mail.store.reparse import DERIVED
from ops_mail.store.reparse_run import Tally
from tests.servers.tables import Tables

ROOT = Path(__file__).resolve().parents[3]
KEY = FolderKey("ops@example.org", "INBOX")
OTHER = FolderKey("sales@example.org", "INBOX")
DAY = datetime(2026, 1, 5, 10, 0, 0, 654321, tzinfo=UTC)
LEASE_SECONDS = 10.0


def no_limit(seconds: float) -> AbstractContextManager[None]:
    """Stands for the parsing process's alarm: these mails are harmless."""
    return nullcontext()


def land(
    url: str, contents: Iterable[bytes], key: FolderKey = KEY, *, oversize: bool = False, store_url: str = "db:"
) -> None:
    """Land mails; the tables are made if they are not there. `oversize` ones are known by these headers alone."""
    asyncio.run(_land(url, list(contents), key, oversize, store_url))


async def _land(url: str, contents: Sequence[bytes], key: FolderKey, oversize: bool, store_url: str) -> None:
    store = open_store(url, lease_seconds=LEASE_SECONDS)
    keep_contents_in(store, store_url)
    try:
        await store.migrate()
        guard = Guard(store, "test:1:x", LEASE_SECONDS)
        try:
            lease = await guard.try_acquire(key)
            assert lease is not None
            await store.start_cursor(lease, UidValidity(7), Uid(0), Uid(0))
            for at in range(0, len(contents), 200):
                with tempfile.TemporaryDirectory() as spool:
                    mails = [
                        prepare(_raw(uid, content, oversize=oversize), Path(spool), PrepareLimits(), no_limit)
                        for uid, content in enumerate(contents[at : at + 200], 1 + at)
                    ]
                    last = mails[-1].listed.uid
                    await store.land(lease, LandingBatch(UidValidity(7), tuple(mails), last, DAY))
            await guard.release(lease)
        finally:
            await guard.close()
    finally:
        await store.close(2)


def _raw(uid: int, content: bytes, *, oversize: bool) -> RawMail:
    size = 60_000_000 if oversize else len(content)
    return RawMail(Listed(Uid(uid), size, DAY, ("\\Flagged", f"$uid{uid}")), content, oversize)


def spoil(url: str, where: str = "1 = 1") -> None:
    """Make of what was derived from the matching mails what a worse parser might have made of it."""
    tables = Tables(url)
    wrong = dict.fromkeys(DERIVED, "NULL") | {
        "subject": "'=?utf-8?q?raw?='",
        "from_addr": "'nobody@example.org'",
        "to_addrs": "'[]'",
        "headers": """'[["X","y"]]'""",
        "sent_at": "'2001-01-01 00:00:00.000000'",
        "text_body": "'garbage'",
    }
    assert set(wrong) == set(DERIVED)
    columns = ", ".join(f"{name} = {value}" for name, value in wrong.items())
    tables.execute(f"UPDATE ops_mail_message SET {columns} WHERE {where}")
    ids = [row["id"] for row in tables.rows(f"SELECT id FROM ops_mail_message WHERE {where}")]
    for at, message_pk in enumerate(ids):
        if at % 2:  # half of them were not found at all, half under another name, one too many
            tables.execute("DELETE FROM ops_mail_attachment WHERE message_pk = :id", id=message_pk)
        else:
            tables.execute("UPDATE ops_mail_attachment SET filename = 'x' WHERE message_pk = :id", id=message_pk)
            tables.execute(
                "INSERT INTO ops_mail_attachment (message_pk, position, content_type, size_bytes, sha256)"
                " VALUES (:id, 99, 'text/plain', 1, :hash)",
                id=message_pk,
                hash="0" * 64,
            )


def messages(url: str) -> list[dict[str, Any]]:
    """Every column of every mail as the database holds it."""
    return Tables(url).rows("SELECT * FROM ops_mail_message ORDER BY id")


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def attachments(url: str) -> list[dict[str, Any]]:
    """Every attachment; its number in the table may change."""
    return without(Tables(url).rows("SELECT * FROM ops_mail_attachment ORDER BY message_pk, position"), "id")


def audits(url: str, action: str) -> list[dict[str, Any]]:
    return Tables(url).rows("SELECT * FROM ops_mail_audit WHERE action = :action ORDER BY id", action=action)


def start_reparse(url: str, folder: Path, *arguments: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """`ops-mail reparse …`, its output in pipes unless another place is named."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
    environment |= {"OPS_MAIL_DATABASE_URL": url, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "COLUMNS": "200"}
    return subprocess.Popen(
        [sys.executable, "-m", "ops_mail", "reparse", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def reparse_here(url: str, since: int | None = None, mailbox: str | None = None, **more: str) -> Tally:
    """The same within the test's own process, which saves the seconds of a start."""
    given = {f"OPS_MAIL_{name}": value for name, value in {"DATABASE_URL": url, **more}.items()}
    settings = load_settings(given, env_file=None, mailboxes_required=False)
    return asyncio.run(reparse_mails(settings, since, mailbox)).tally


def reparse(url: str, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a whole run."""
    with start_reparse(url, folder, *arguments) as process:
        out, err = process.communicate(timeout=100)
        return process.returncode, out, err

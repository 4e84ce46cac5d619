"""`ops-mail messages export`: mails as files, with an index beside them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ops_mail.cli.database import opened_store
from ops_mail.cli.export_index import ExportIndex
from ops_mail.cli.mail_lists import line_json
from ops_mail.cli.quiet import quiet_logs
from ops_mail.cli.raw_mail import raw_sha256
from ops_mail.cli.terminal import printable
from ops_mail.core.counted import counted
from ops_mail.errors import OpsMailError, StoreError
from ops_mail.settings import Settings
from ops_mail.store import Store
from ops_mail.store.selection import MailLine, Selection, select_lines


def export_command(settings: Settings, selection: Selection, folder: Path) -> int:
    """1 when a mail could not be written; the others are. Raises OpsMailError when the folder cannot be used."""
    quiet_logs()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written, failed = asyncio.run(_export(settings, selection, folder))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OpsMailError(f"cannot write {printable(str(error.filename or folder))}: {reason}") from error
    without = f", {failed} without bytes (index.jsonl says why)" if failed else ""
    print(f"{counted(written, 'mail')} written to {printable(str(folder))}{without}")
    return 1 if failed else 0


async def _export(settings: Settings, selection: Selection, folder: Path) -> tuple[int, int]:
    """How many were written (or were there already), and how many could not be."""
    written = failed = 0
    async with opened_store(settings) as store:
        with ExportIndex(folder) as index:
            async for line in select_lines(store.database, selection, None):
                name, problem = f"{line.message_pk}.eml", None
                try:
                    await _write_file(store, line, folder / name)
                    written += 1
                except StoreError as error:
                    failed += 1
                    problem = str(error)
                record = {"file": None if problem else name, "problem": problem}
                index.add(line.message_pk, line_json(line) | record)
    return written, failed


async def _write_file(store: Store, line: MailLine, path: Path) -> None:
    if path.exists():  # noqa: ASYNC240 - a command has nothing else to do meanwhile
        return
    partial = path.with_suffix(".part")
    try:
        with partial.open("wb") as file:
            async for piece in store.open_blob(await raw_sha256(store, line)):
                file.write(piece)
        os.replace(partial, path)  # noqa: PTH105 - the name appears when the file is whole
    finally:
        partial.unlink(missing_ok=True)

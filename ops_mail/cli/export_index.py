"""The index of a folder of exported mails: one line of JSON for each, and complete however often mails are added."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from ops_mail.cli.terminal import json_line, printable
from ops_mail.errors import OpsMailError

INDEX = "index.jsonl"
_UNFINISHED = "index.jsonl.part"


class ExportIndex:
    """Adds mails by descending id to the index of `folder`, in place of what it said of the same ones.

    It keeps the lines of other mails whose files are still there. The new index takes the old one's place at the end,
    as a whole, also when the export ends early: what was written by then is in it. Raises OpsMailError when another
    export into the folder is going on, or when there is an index that no export has written; OSError of the disk.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._old: Iterator[tuple[int, bytes, dict[str, Any]]] = iter(())
        self._next: tuple[int, bytes, dict[str, Any]] | None = None
        self._lock = -1
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self._lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for _ in _lines(self._folder / INDEX):
                pass  # an index that cannot be read through is told before anything is written
            self._old = _lines(self._folder / INDEX)
            self._next = next(self._old, None)
            self._file = (self._folder / _UNFINISHED).open("wb")
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, BlockingIOError):
                shown = printable(str(self._folder))
                raise OpsMailError(f"another export into {shown} is going on: wait for its end") from error
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._copy_down_to(0)
            file = self._open_file()
            with file:
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._folder / _UNFINISHED, self._folder / INDEX)  # noqa: PTH105 - both names are this folder's
        finally:
            os.close(self._lock)

    def add(self, message_pk: int, record: dict[str, Any]) -> None:
        """The line of one mail; `record` holds its id as `id`. Ids must descend."""
        self._copy_down_to(message_pk)
        if self._next is not None and self._next[0] == message_pk:
            self._next = next(self._old, None)
        self._open_file().write(json_line(record))

    def _copy_down_to(self, message_pk: int) -> None:
        """The old lines of greater ids, but for those whose files are gone."""
        while self._next is not None and self._next[0] > message_pk:
            _, line, record = self._next
            name = record.get("file")
            if name is None or (self._folder / str(name)).is_file():
                self._open_file().write(line)
            self._next = next(self._old, None)

    def _open_file(self) -> BinaryIO:
        assert self._file is not None  # noqa: S101 - __enter__ comes first
        return self._file


def _lines(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Id, line and record of each line; none without a file. A last line without an end was never whole."""
    if not path.exists():
        return
    before: int | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            record = _record(line)
            message_pk = None if record is None else record.get("id")
            if record is None or not isinstance(message_pk, int) or (before is not None and message_pk >= before):
                raise OpsMailError(
                    f"{printable(str(path))}, line {number}: no index that this command has written; move it away, or"
                    " export into another folder"
                )
            before = message_pk
            yield message_pk, line, record


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None

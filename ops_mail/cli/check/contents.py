"""The place for contents: a small object is written there, read back and removed again."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import tempfile
import time
from pathlib import Path

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.errors import ConfigError, StoreError
from ops_mail.store.blob_choice import objects_of
from ops_mail.store.blobs_external import Objects, object_name
from ops_mail.store.blobs_file import FileObjects

GROUP, WRITABLE = "contents", "writable"
_LIMIT_SECONDS = 20.0
_REMOVAL_SECONDS = 10.0
_SHOWN = 3
_SETTING = "OPS_MAIL_STORE_URL"


async def contents_row(store_url: str) -> Row:
    """Whether what lands could be kept there, and read."""
    try:
        objects = objects_of(store_url)
        if objects is None:
            return Row(GROUP, WRITABLE, Verdict.OK, f"contents are kept in the database ({_SETTING} is {store_url})")
        async with asyncio.timeout(_LIMIT_SECONDS):
            if isinstance(objects, FileObjects):
                return await _in_folder(objects.directory)
            seconds = await _round_trip(objects)
    except TimeoutError:
        return _failed(store_url, f"no answer within {_LIMIT_SECONDS:g} s")
    except OSError as error:
        return _failed(store_url, error.strerror or str(error))
    except (StoreError, ConfigError) as error:
        return _failed(store_url, str(error).removeprefix(f"{_SETTING}: "))
    return _well(store_url, seconds)


async def _in_folder(folder: Path) -> Row:
    """In a folder of its own there, which is removed with it: nothing stays."""
    if (found := await asyncio.to_thread(_problem_of, folder)) is not None:
        return found
    with tempfile.TemporaryDirectory(prefix=".ops-mail-check-", dir=folder) as own:
        return _well(str(folder), await _round_trip(FileObjects(Path(own))))


def _problem_of(folder: Path) -> Row | None:
    """What keeps a folder from being written to, without writing."""
    if not folder.exists():
        above = next(each for each in folder.absolute().parents if each.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return Row(GROUP, WRITABLE, Verdict.WARN, f"{folder} does not exist yet", "the first mail makes it")
        return _failed(str(folder), f"it does not exist and cannot be made in {above}")
    if not folder.is_dir():
        return _failed(str(folder), "it is no folder")
    closed = [one.name for one in folder.glob("??") if one.is_dir() and not os.access(one, os.W_OK | os.X_OK)]
    if closed:
        return _failed(str(folder), f"this account may not write into {', '.join(sorted(closed)[:_SHOWN])} there")
    return None


async def _round_trip(objects: Objects) -> float:
    """Seconds for writing, reading and deleting. Named as contents are: if it stays, it is collected as an orphan."""
    content = secrets.token_bytes(64)
    name = object_name(hashlib.sha256(content).hexdigest(), "identity")
    began = time.monotonic()
    try:
        await objects.write(name, [content])
        found = b"".join([piece async for piece in objects.read(name)])
    except BaseException:
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_REMOVAL_SECONDS):
                await objects.delete(name)
        raise
    await objects.delete(name)
    if found != content:
        raise OSError("what was read is not what was written")
    return time.monotonic() - began


def _well(where: str, seconds: float) -> Row:
    return Row(GROUP, WRITABLE, Verdict.OK, f"{where}: written, read and removed, {seconds * 1000:.0f} ms")


def _failed(where: str, reason: str) -> Row:
    advice = f"check {_SETTING}, and that this account may write, read and delete there"
    return Row(GROUP, WRITABLE, Verdict.FAIL, f"{where}: {reason}", advice)

"""Handlers for chaos: they succeed, take their time, fail and hang by turns, and tell whether a mail is in two hands.

Run in the product's own process; `CHAOS_FOLDER` names the folder of what they leave behind.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ops_mail.handlers import Discard, Done, Mail, Permanent, Write

FOLDER = os.environ.get("CHAOS_FOLDER", "/nonexistent")
TABLE = "CREATE TABLE ops_chaos (mail_key VARCHAR(191) PRIMARY KEY, attempt INTEGER NOT NULL)"


def turn(mail: Mail) -> str:
    """What is to happen at this attempt: fixed by mail and attempt, so that every run has its share of each."""
    if mail.uid % 40 == 7:
        return "permanent"
    if mail.uid % 40 == 8:
        return "discard"
    number = hashlib.sha256(f"{mail.uid}/{mail.attempt}".encode()).digest()[0] % 20
    if mail.attempt > 2 or number < 10:
        return "quick"
    return {10: "hang", 11: "hang", 12: "slow", 13: "slow"}.get(number, "fail" if number < 17 else "quick")


def plain(mail: Mail) -> Done:
    """A plain function; its hang is Python code that waits for something that never comes."""
    with in_one_hand(mail):
        match turn(mail):
            case "hang":
                while True:
                    time.sleep(0.01)
            case "slow":
                time.sleep(0.3)
            case what:
                raise_for(what)
        return effect(mail)


async def on_loop(mail: Mail) -> Done:
    """An async function."""
    with in_one_hand(mail):
        match turn(mail):
            case "hang":
                await asyncio.sleep(3600)
            case "slow":
                await asyncio.sleep(0.3)
            case what:
                raise_for(what)
        return effect(mail)


def raise_for(what: str) -> None:
    if what == "fail":
        raise RuntimeError("failed on purpose")
    if what == "permanent":
        raise Permanent("on purpose")
    if what == "discard":
        raise Discard("on purpose")


@contextmanager
def in_one_hand(mail: Mail) -> Iterator[None]:
    """A lock that ends with the process, however it ends: a second hand is noticed while the first still holds."""
    handle = os.open(f"{FOLDER}/lock-{mail.message_pk}", os.O_CREAT | os.O_RDWR)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("twice", f"{mail.key} {mail.attempt} {os.getpid()}")
            raise
        yield
    finally:
        os.close(handle)


def effect(mail: Mail) -> Done:
    note("effects", mail.key)
    values = {"key": mail.key, "attempt": mail.attempt}
    write = Write("INSERT INTO ops_chaos (mail_key, attempt) VALUES (:key, :attempt)", values)
    return Done({"attempt": mail.attempt} if mail.uid % 2 else None, writes=[write])


def note(name: str, line: str) -> None:
    handle = os.open(f"{FOLDER}/{name}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(handle, (line + "\n").encode())
    os.close(handle)

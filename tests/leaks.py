"""No test may leave a task, a thread, a process or a socket behind: the one that does fails, and names it.

What fixtures of a wider scope hold (the servers of a session) is theirs, however late in a test they are asked for.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import socket
import threading
import time
import warnings
from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_GRACE_SECONDS = (
    2.0  # what is being ended may take a moment: threads of child watchers, a child that was just told to stop
)


@dataclass(frozen=True)
class Holdings:
    """What this process holds now."""

    threads: frozenset[threading.Thread] = frozenset()
    processes: frozenset[int] = frozenset()
    sockets: frozenset[str] = frozenset()

    def __or__(self, other: Holdings) -> Holdings:
        return Holdings(self.threads | other.threads, self.processes | other.processes, self.sockets | other.sockets)

    def __sub__(self, other: Holdings) -> Holdings:
        return Holdings(self.threads - other.threads, self.processes - other.processes, self.sockets - other.sockets)

    def __bool__(self) -> bool:
        return bool(self.threads or self.processes or self.sockets)

    def __str__(self) -> str:
        named = [f"thread {thread.name}" for thread in self.threads]
        named += [f"process {pid} ({_command(pid)})" for pid in self.processes]
        named += [_ends_of(sock) for sock in self.sockets]
        return ", ".join(sorted(named))


@dataclass
class _Session:
    """What fixtures of a wider scope hold, seen when each was set up."""

    held: Holdings = field(default_factory=Holdings)


_session = _Session()
_BEFORE = pytest.StashKey[Holdings]()


def holdings() -> Holdings:
    """Look at the threads that run, the children (also those not waited for) and the open sockets."""
    sockets = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
        if target.startswith("socket:"):
            sockets.add(target)
    return Holdings(frozenset(threading.enumerate()), frozenset(_children()), frozenset(sockets))


def _children() -> Iterator[int]:
    me = str(os.getpid())
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                continue
            if after_name[1] == me:
                yield int(entry.name)


def _ends_of(sock: str) -> str:
    """A socket by its addresses and state, so that one can tell whose it was."""
    inode = sock.removeprefix("socket:[").removesuffix("]")
    for table in ("tcp", "tcp6", "unix"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if table == "unix" and inode == fields[6]:
                return f"socket {sock} unix {' '.join(fields[7:])}"
            if table != "unix" and inode == fields[9]:
                here, there = (int(end.rpartition(":")[2], 16) for end in fields[1:3])
                return f"socket {sock} {table} from port {here} to port {there}, state {fields[3]}"
    return f"socket {sock} not connected, held by {_holders_of(inode)}"


def _holders_of(inode: str) -> str:
    """What refers to the socket object, one step further for the transports of asyncio."""
    found = []
    for one in gc.get_objects():
        if not isinstance(one, socket.socket) or one.fileno() < 0:
            continue
        if os.fstat(one.fileno()).st_ino == int(inode):
            holders = [each for each in gc.get_referrers(one) if isinstance(each, (dict, asyncio.BaseTransport))]
            found.append(f"{one!r} {[str(each)[:600] for each in holders]}")
    return "; ".join(found) or "nothing that Python knows"


def _command(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip() or "ended"
        )
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    before = holdings()
    try:
        return (yield)
    finally:
        _session.held |= holdings() - before


def pytest_addoption(parser: pytest.Parser) -> None:
    # What is being ended may take a moment: threads of child watchers, a child that was just told to stop.
    parser.addini("leak_grace_seconds", "how long what a test has left may take to end", default="2")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "collects_garbage: a server is killed under open connections; the traceback of what broke may hold a socket, in"
        " a cycle that only the garbage collector finds, which it does soon in a process that goes on",
    )


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # what was imported is never looked at again: a collection after each test costs little


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    item.stash[_BEFORE] = holdings()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield  # after all fixtures of the test, its event loop among them, have gone
    if item.get_closest_marker("collects_garbage"):
        with warnings.catch_warnings(action="ignore"):
            gc.collect()
    deadline = time.monotonic() + float(item.config.getini("leak_grace_seconds"))
    while left := holdings() - item.stash[_BEFORE] - _session.held:
        if time.monotonic() > deadline:
            with warnings.catch_warnings(action="ignore"):  # it is told here, with the test's name
                gc.collect()
            pytest.fail(f"left behind: {left}", pytrace=False)
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def looks_for_tasks(request: pytest.FixtureRequest) -> None:
    """Set `no_task_is_left_behind` up before all others of a coroutine test, so that it looks after they have gone."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("no_task_is_left_behind")


@pytest.fixture
async def no_task_is_left_behind() -> AsyncIterator[None]:
    """Look for tasks on the test's own loop before it ends: closing the loop would cancel them unseen."""
    before = asyncio.all_tasks()
    yield
    gc.collect()  # an unclosed connection in a cycle complains now, as this test's, and not in a later one
    rounds = 20
    while left := asyncio.all_tasks() - before - {asyncio.current_task()}:
        rounds -= 1
        if rounds == 0:
            break
        await asyncio.sleep(0.01)  # a task that was cancelled, or is at its end, may need some rounds to finish
    else:
        return
    names = ", ".join(sorted(str(task.get_coro()) for task in left))
    pytest.fail(f"tasks left behind: {names}", pytrace=False)

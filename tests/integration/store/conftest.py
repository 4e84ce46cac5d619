"""A migrated store on each engine, and leaders for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ops_mail.core.ids import FolderKey, Uid
from ops_mail.store import Guard, Lease, Store, open_store
from tests.integration.store.samples import KEY, V1
from tests.servers.fixtures import *  # noqa: F403 - fixtures are found by name
from tests.servers.process import SqlServer

LEASE_SECONDS = 10.0

Lead = Callable[..., Awaitable[Lease]]


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = open_store(database_url, lease_seconds=LEASE_SECONDS)
    await opened.migrate()
    yield opened
    await opened.close(2)


@pytest.fixture
async def server_store(sql_server: SqlServer) -> AsyncIterator[Store]:
    """A store on the two servers alone, for what SQLite has no notion of."""
    opened = open_store(sql_server.create_database(), lease_seconds=LEASE_SECONDS)
    await opened.migrate()
    yield opened
    await opened.close(2)


@pytest.fixture
async def lead() -> AsyncIterator[Lead]:
    """Takes a folder by a guard of its own and starts it at UIDVALIDITY V1; the guards end with the test."""
    guards: list[Guard] = []

    async def take(store: Store, key: FolderKey = KEY, holder: str | None = None, *, start: bool = True) -> Lease:
        guard = Guard(store, holder or f"host:{len(guards)}:x", LEASE_SECONDS)
        guards.append(guard)
        lease = await guard.try_acquire(key)
        assert lease is not None
        if start:
            await store.start_cursor(lease, V1, Uid(0), Uid(0))
        return lease

    yield take
    for guard in guards:
        await guard.close()

"""Bring the schema up to date, then keep an eye on the database for `/readyz` and the row counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from ops_mail.core.backoff import BackoffPolicy
from ops_mail.core.health import Pulse
from ops_mail.core.mail import MessageStatus
from ops_mail.core.repeats import RepeatLimiter
from ops_mail.core.status import ProcessStatus
from ops_mail.errors import StoreError
from ops_mail.metrics import Metrics
from ops_mail.store import STATEMENT_SECONDS, SchemaStatus, Store
from ops_mail.waiting import sleep_or_stop

log = structlog.get_logger("ops_mail.database")

_WATCH_SECONDS = 10.0
_CALL_SECONDS = STATEMENT_SECONDS + 2
_MIGRATION_SECONDS = 600.0  # other instances may migrate first, and altering a large table takes its time


class DatabaseWatch:
    """`schema_ready` is set once the tables fit; the database's condition goes into the process status."""

    def __init__(
        self,
        store: Store,
        status: ProcessStatus,
        metrics: Metrics,
        *,
        auto_migrate: bool,
        backoff: BackoffPolicy,
        random: Callable[[], float],
        stop: asyncio.Event,
        schema_ready: asyncio.Event,
        pulse: Pulse,
    ) -> None:
        self._store = store
        self._status = status
        self._metrics = metrics
        self._auto_migrate = auto_migrate
        self._backoff = backoff
        self._random = random
        self._stop = stop
        self._schema_ready = schema_ready
        self._pulse = pulse
        self._failures = 0
        self._repeats = RepeatLimiter()

    async def run(self) -> None:
        """Until the stop."""
        while not self._stop.is_set():
            self._pulse.expect(
                _CALL_SECONDS if self._schema_ready.is_set() else _MIGRATION_SECONDS, "asking the database"
            )
            try:
                await self._look()
            except StoreError as error:
                delay_seconds = self._failed(str(error))
            else:
                delay_seconds = self._went_well()
            self._pulse.expect(delay_seconds, "waiting")
            await sleep_or_stop(delay_seconds, self._stop)
        self._pulse.rest()

    async def _look(self) -> None:
        if not self._schema_ready.is_set():
            await self._make_ready()
        counts = await self._store.count_by_status()
        for status in MessageStatus:
            self._metrics.messages.labels(status=status).set(counts.get(status, 0))

    async def _make_ready(self) -> None:
        if self._auto_migrate:
            applied = await self._store.migrate()
            log.info("schema_ready", applied=applied)
        else:
            state = await self._store.schema_state()
            # Ahead is fine: a newer version has migrated during a rolling upgrade, and migrations only add.
            if state.status in (SchemaStatus.BEHIND, SchemaStatus.MISSING):
                raise StoreError(
                    f"the schema is {state.status} and OPS_MAIL_AUTO_MIGRATE is false: run `ops-mail migrate`"
                )
        self._schema_ready.set()

    def _failed(self, error: str) -> float:
        self._failures += 1
        self._status.database_ok, self._status.database_error = False, error
        self._metrics.db_errors.inc()
        delay_seconds = min(_WATCH_SECONDS, self._backoff.delay_seconds(self._failures, self._random()))
        count = self._repeats.admit_error(error)
        if count:
            log.error("database_down", error=error, retry_in_seconds=round(delay_seconds, 1), times=count)
        return delay_seconds

    def _went_well(self) -> float:
        if self._failures:
            log.info("database_back", failures=self._failures)
        self._failures = 0
        self._repeats.forget()
        self._status.database_ok, self._status.database_error = True, None
        return _WATCH_SECONDS

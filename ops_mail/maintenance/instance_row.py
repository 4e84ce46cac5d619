"""This process's own row in `ops_mail_instance`, so that `status` sees standbys and consumers too."""

from __future__ import annotations

import asyncio

import structlog

from ops_mail.core.health import Pulse
from ops_mail.core.status import ProcessStatus
from ops_mail.errors import StoreError
from ops_mail.store import STATEMENT_SECONDS, Store
from ops_mail.waiting import sleep_or_stop

log = structlog.get_logger("ops_mail.instance")

_REMOVE_SECONDS = 1.0
_CALL_SECONDS = STATEMENT_SECONDS + 2


class InstanceRow:
    """Written every third of a lease; removed at an orderly end."""

    def __init__(
        self,
        store: Store,
        status: ProcessStatus,
        *,
        instance_id: str,
        lease_seconds: float,
        stop: asyncio.Event,
        schema_ready: asyncio.Event,
        pulse: Pulse,
    ) -> None:
        self._store = store
        self._status = status
        self._instance_id = instance_id
        self._every_seconds = lease_seconds / 3
        self._stop = stop
        self._schema_ready = schema_ready
        self._pulse = pulse

    async def run(self) -> None:
        """Until the stop."""
        while not self._stop.is_set():
            if self._schema_ready.is_set():
                self._pulse.expect(_CALL_SECONDS, "writing the instance row")
                try:
                    await self._store.upsert_instance(self._instance_id, self._status.role, self._detail())
                except StoreError as error:  # the database watch tells it loudly
                    log.debug("instance_row_failed", error=str(error))
            self._pulse.expect(self._every_seconds, "waiting")
            # Soon again while the schema is not there yet.
            await sleep_or_stop(self._every_seconds if self._schema_ready.is_set() else 0.5, self._stop)
        await self._remove()
        self._pulse.rest()

    def _detail(self) -> dict[str, object]:
        return {
            "name": self._status.instance,
            "mailboxes": {str(mailbox.key): mailbox.state.value for mailbox in self._status.mailboxes},
        }

    async def _remove(self) -> None:
        if not self._schema_ready.is_set():
            return
        try:
            async with asyncio.timeout(_REMOVE_SECONDS):
                await self._store.remove_instance(self._instance_id)
        except (StoreError, TimeoutError) as error:
            log.debug("instance_row_not_removed", error=str(error))

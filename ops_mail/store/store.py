"""The store: everything the rest of ops-mail asks of the database, in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ops_mail.core.audit_action import AuditAction
from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import MessageStatus
from ops_mail.store import after_actions, audit, cursors, instances, landing, numbering
from ops_mail.store.blobs import BlobStore, DatabaseBlobs
from ops_mail.store.database import Database
from ops_mail.store.edge import LANDING_SECONDS, STATEMENT_SECONDS
from ops_mail.store.engine import parse_url
from ops_mail.store.migrate import migrate, schema_state
from ops_mail.store.model import (
    Anchor,
    CursorReport,
    CursorState,
    InstanceState,
    LandingBatch,
    LandingResult,
    Lease,
    PrivilegeReport,
    SchemaState,
)
from ops_mail.store.privileges import read_privileges
from ops_mail.store.schema import message

MAX_UIDS = 100_000
DEFAULT_FORBIDDEN = ("domain_event_outbox", "memory_sync_outbox")


def open_store(
    url: str,
    *,
    lease_seconds: float,
    forbidden_tables: Sequence[str] = DEFAULT_FORBIDDEN,
    blobs: BlobStore | None = None,
) -> Store:
    """A store that connects when it is first asked. Raises ConfigError for a URL of another kind."""
    database = Database(parse_url(url), lease_seconds)
    return Store(database, tuple(forbidden_tables), blobs or DatabaseBlobs(database))


class Store:
    """Each call is bounded in time and raises StoreUnavailable, StoreRefused, Fenced or ForbiddenTable."""

    def __init__(self, database: Database, forbidden_tables: tuple[str, ...], blobs: BlobStore) -> None:
        self.database = database
        self.blobs = blobs
        self._forbidden = forbidden_tables

    @property
    def engine(self) -> AsyncEngine:
        """The engine, for other packages' own queries; its statements pass the table guard as well."""
        return self.database.engine

    @property
    def dialect(self) -> str:
        """`sqlite` or `mysql`."""
        return "mysql" if self.database.mysql else "sqlite"

    async def ping(self) -> None:
        """Raises StoreUnavailable unless the database answers within a few seconds."""
        async with self.database.reading("asking the database for an answer", 5.0) as connection:
            await connection.execute(sa.select(1))

    async def migrate(self) -> list[str]:
        """Applies what is due; returns the revisions. Several processes may call it at once."""
        return await migrate(self.database)

    async def schema_state(self) -> SchemaState:
        """Whether the tables fit this program."""
        return await schema_state(self.database)

    async def close(self, timeout_seconds: float = 5.0) -> None:
        """Closes the pool. Logs, never raises."""
        await self.database.close(timeout_seconds)

    async def land(self, lease: Lease, batch: LandingBatch) -> LandingResult:
        """Lands a batch and moves the cursor, all or nothing.

        StoreUnavailable may also mean that only the answer to COMMIT was lost: read the cursor before trying again.
        Raises ValueError for a batch out of order.
        """
        landing.check_batch(batch)

        async def work(connection: AsyncConnection) -> LandingResult:
            limits = await self.database.row_limits(connection)
            return await landing.land(connection, self.blobs, limits, lease, batch)

        return await self.database.writing("landing", work, LANDING_SECONDS)

    async def heartbeat(self, lease: Lease, report: CursorReport) -> None:
        """Prolongs the lease by its whole length and writes the report, within half of it. Raises Fenced."""
        seconds = self.database.lease_seconds
        work = partial(cursors.heartbeat, lease=lease, report=report, lease_seconds=seconds)
        # Without an answer for longer the lease would be over before its holder could notice.
        await self.database.writing("heartbeat", work, min(STATEMENT_SECONDS, max(1.0, seconds / 2)))

    async def read_cursor(self, key: FolderKey) -> CursorState | None:
        """The folder's cursor, if an instance has ever held it."""
        async with self.database.reading("reading the cursor") as connection:
            return await cursors.read_cursor(connection, key)

    async def list_cursors(self) -> tuple[CursorState, ...]:
        """All cursors by mailbox and folder."""
        async with self.database.reading("reading the cursors") as connection:
            return await cursors.list_cursors(connection)

    async def start_cursor(self, lease: Lease, uid_validity: UidValidity, last_uid: Uid, start_uid: Uid) -> None:
        """The first place of a folder that was never selected. Repeating it is harmless. Raises Fenced."""
        work = partial(
            cursors.start_cursor, lease=lease, uid_validity=uid_validity, last_uid=last_uid, start_uid=start_uid
        )
        await self.database.writing("starting the cursor", work)

    async def due_actions(
        self, key: FolderKey, uid_validity: UidValidity, *, complete_only: bool, limit: int = 500
    ) -> list[Uid]:
        """UIDs of landed mails whose after-action is due; `complete_only`: just those with every byte in the store."""
        async with self.database.reading("reading due actions") as connection:
            return await after_actions.due_actions(
                connection, key, uid_validity, complete_only=complete_only, limit=limit
            )

    async def mark_acted(self, key: FolderKey, uid_validity: UidValidity, uids: Sequence[Uid]) -> None:
        """The after-action of these mails has been carried out."""
        work = partial(after_actions.mark_acted, key=key, uid_validity=uid_validity, uids=uids)
        await self.database.writing("marking actions as done", work)

    async def begin_numbering(self, lease: Lease, old: UidValidity | None, new: UidValidity) -> None:
        """UIDVALIDITY changed: the cursor starts over at 0. Repeating it is harmless. Raises Fenced."""
        await numbering.begin_numbering(self.database, lease, old, new)

    async def retire_numbering(self, lease: Lease) -> int:
        """UIDs went backwards: old rows move to a negative UIDVALIDITY, the cursor to 0. Returns how many. Fenced."""
        return await numbering.retire_numbering(self.database, lease)

    async def anchor(self, key: FolderKey, uid_validity: UidValidity, uid: Uid) -> Anchor | None:
        """What the row at that UID says of its mail; None without such a row."""
        find = sa.select(message.c.received_at, message.c.size_bytes, message.c.raw_sha256).where(
            *_numbered(key, uid_validity), message.c.uid == uid
        )
        async with self.database.reading("reading a row") as connection:
            row = (await connection.execute(find)).one_or_none()
        return None if row is None else Anchor(row.received_at, row.size_bytes, row.raw_sha256)

    async def known_uids(self, key: FolderKey, uid_validity: UidValidity, low: Uid, high: Uid) -> frozenset[Uid]:
        """The UIDs from `low` to `high` that have rows. Raises ValueError for a range of more than 100,000."""
        if high - low >= MAX_UIDS:
            raise ValueError(f"at most {MAX_UIDS} UIDs at a time")
        find = sa.select(message.c.uid).where(*_numbered(key, uid_validity), message.c.uid.between(low, high))
        async with self.database.reading("reading UIDs") as connection:
            return frozenset((await connection.execute(find)).scalars())

    async def incomplete_uids(self, key: FolderKey, uid_validity: UidValidity, max_bytes: int, limit: int) -> list[Uid]:
        """UIDs of rows without the content that the server did not give; none whose size is over `max_bytes`."""
        find = (
            sa.select(message.c.uid)
            .where(*_numbered(key, uid_validity), landing.incomplete(), message.c.size_bytes <= max_bytes)
            .order_by(message.c.updated_at)
            .limit(limit)
        )
        async with self.database.reading("reading rows without content") as connection:
            return [Uid(uid) for uid in (await connection.execute(find)).scalars()]

    async def rekeyed(self, key: FolderKey, uid_validity: UidValidity) -> int:
        """How many mails of this numbering had landed under an older one, and kept their rows."""
        async with self.database.reading("reading the audit trail") as connection:
            return await audit.rekeyed(connection, key, uid_validity)

    async def count_by_status(self) -> dict[MessageStatus, int]:
        """How many mails are in each status; every status is named."""
        count = sa.select(message.c.status, sa.func.count().label("n")).group_by(message.c.status)
        async with self.database.reading("counting mails") as connection:
            found = {row.status: row.n for row in await connection.execute(count)}
        return {status: found.get(status.value, 0) for status in MessageStatus}

    async def audit(
        self,
        actor: str,
        action: AuditAction,
        mailbox: str | None,
        message_pk: int | None,
        detail: Mapping[str, Any] | None,
    ) -> None:
        """Writes one audit row."""

        async def work(connection: AsyncConnection) -> None:
            await audit.add_audit(connection, actor, action, mailbox, message_pk, detail)

        await self.database.writing("writing the audit trail", work)

    async def start_instance(self, instance: str, role: str, detail: object) -> None:
        """Says that the process has just started."""
        work = partial(instances.restart_instance, name=instance, role=role, detail=detail)
        await self.database.writing("registering the instance", work)

    async def upsert_instance(self, instance: str, role: str, detail: object) -> None:
        """Says that the process is alive."""
        work = partial(instances.upsert_instance, name=instance, role=role, detail=detail)
        await self.database.writing("registering the instance", work)

    async def remove_instance(self, instance: str) -> None:
        """Says that the process has ended."""
        await self.database.writing("removing the instance", partial(instances.remove_instance, name=instance))

    async def list_instances(self) -> tuple[InstanceState, ...]:
        """The processes that have not said goodbye, the freshest first."""
        async with self.database.reading("reading the instances") as connection:
            return await instances.list_instances(connection)

    async def privileges(self) -> PrivilegeReport:
        """What the account may do and should not, or should and may not."""
        return await read_privileges(self.database, self._forbidden)

    def open_blob(self, sha256: str) -> AsyncIterator[bytes]:
        """The plain content in pieces; StoreRefused if it is absent or damaged."""
        return self.blobs.open(sha256)

    async def read_blob(self, sha256: str) -> bytes:
        """The plain content as a whole: for content known to be small."""
        return b"".join([piece async for piece in self.open_blob(sha256)])


def _numbered(key: FolderKey, uid_validity: UidValidity) -> tuple[sa.ColumnElement[bool], ...]:
    return (message.c.mailbox == key.mailbox, message.c.folder == key.folder, message.c.uid_validity == uid_validity)

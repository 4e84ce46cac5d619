"""The processes that are alive, for `status` and the page; times are the database's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.store.columns import db_now
from ops_mail.store.model import InstanceState
from ops_mail.store.schema import instance


async def upsert_instance(connection: AsyncConnection, name: str, role: str, detail: object) -> None:
    """Says that the process `name` is alive."""
    values: dict[str, Any] = {"role": role, "detail": detail, "heartbeat_at": db_now()}
    update = sa.update(instance).where(instance.c.instance == name).values(**values)
    if (await connection.execute(update)).rowcount == 0:
        await connection.execute(sa.insert(instance).values(instance=name, started_at=db_now(), **values))


async def restart_instance(connection: AsyncConnection, name: str, role: str, detail: object) -> None:
    """Says that the process `name` has just started."""
    await remove_instance(connection, name)
    await upsert_instance(connection, name, role, detail)


async def remove_instance(connection: AsyncConnection, name: str) -> None:
    """Says that the process `name` has ended."""
    await connection.execute(sa.delete(instance).where(instance.c.instance == name))


async def list_instances(connection: AsyncConnection) -> tuple[InstanceState, ...]:
    """All that have not said goodbye, the freshest first."""
    rows = await connection.execute(sa.select(instance, db_now().label("now")).order_by(instance.c.heartbeat_at.desc()))
    return tuple(
        InstanceState(
            instance=row.instance,
            role=row.role,
            started_at=row.started_at,
            heartbeat_at=row.heartbeat_at,
            age_seconds=_age(row.now, row.heartbeat_at),
            detail=row.detail,
        )
        for row in rows
    )


def _age(now: datetime, then: datetime) -> float:
    return max(0.0, (now - then).total_seconds())

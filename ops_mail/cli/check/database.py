"""The database: reachable, current, with the right privileges, and who holds the guard. Nothing is written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import sqlalchemy as sa

from ops_mail.cli.check.clock import database_clock_row
from ops_mail.cli.check.guard import guard_rows
from ops_mail.cli.check.rows import Row, Rows, Verdict, skipped
from ops_mail.cli.database import missing_sqlite_file, opened_store
from ops_mail.errors import StoreError
from ops_mail.settings import Settings
from ops_mail.store import PrivilegeReport, SchemaState, SchemaStatus, Store

GROUP = "database"
_REACHABLE, _CLOCK, _SCHEMA, _PRIVILEGES, _GUARD = STEPS = ("reachable", "clock", "schema", "privileges", "guard")
_OLDEST = {"MySQL": (8, 0), "MariaDB": (10, 6)}


async def database_rows(settings: Settings) -> Rows:
    """The rows in the order of `STEPS`; those after a failure to connect are skipped."""
    if (missing := missing_sqlite_file(settings)) is not None:
        folder = missing.absolute().parent
        if os.access(folder, os.W_OK):
            advice = "`ops-mail run` or `ops-mail migrate` makes it"
            yield Row(GROUP, _REACHABLE, Verdict.WARN, f"{missing} does not exist yet", advice)
        else:
            advice = "check OPS_MAIL_DATABASE_URL and the folder's owner"
            yield Row(GROUP, _REACHABLE, Verdict.FAIL, f"{missing} cannot be made in {folder}", advice)
        for row in skipped(GROUP, STEPS[1:], _REACHABLE):
            yield row
        return
    async with opened_store(settings, contents=False) as store:
        async for row in _looked_at(settings, store):
            yield row


async def _looked_at(settings: Settings, store: Store) -> Rows:
    try:
        yield await _reachable_row(settings, store)
    except StoreError as error:
        yield Row(GROUP, _REACHABLE, Verdict.FAIL, f"{settings.safe_url}: {error}", "check OPS_MAIL_DATABASE_URL")
        for row in skipped(GROUP, STEPS[1:], _REACHABLE):
            yield row
        return
    try:
        yield await database_clock_row(store, settings.store.lease_seconds, GROUP, _CLOCK)
    except StoreError as error:
        yield Row(GROUP, _CLOCK, Verdict.FAIL, str(error))
    state: SchemaState | None = None
    try:
        state = await store.schema_state()
        yield _schema_row(settings, state)
    except StoreError as error:
        yield Row(GROUP, _SCHEMA, Verdict.FAIL, str(error), "check the privileges of OPS_MAIL_DATABASE_URL's account")
    try:
        due = state is None or state.status in (SchemaStatus.MISSING, SchemaStatus.BEHIND)
        yield _privileges_row(settings, store, await store.privileges(), migration_due=due)
    except StoreError as error:
        yield Row(GROUP, _PRIVILEGES, Verdict.FAIL, str(error))
    has_tables = state is not None and state.status is not SchemaStatus.MISSING
    try:
        for row in await guard_rows(settings, store, GROUP, _GUARD, has_tables=has_tables):
            yield row
    except StoreError as error:
        yield Row(GROUP, _GUARD, Verdict.FAIL, str(error))


async def _reachable_row(settings: Settings, store: Store) -> Row:
    await store.ping()
    driver = store.engine.dialect.driver
    question = "SELECT VERSION()" if store.dialect == "mysql" else "SELECT sqlite_version()"
    async with store.database.reading("asking for the server's version") as connection:
        version = str((await connection.execute(sa.text(question))).scalar_one())
    if store.dialect == "sqlite":
        return Row(GROUP, _REACHABLE, Verdict.OK, f"{settings.safe_url}: SQLite {version} by {driver}")
    product = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    detail = f"{settings.safe_url}: {product} {version} by {driver}"
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < _OLDEST[product]:
        oldest = ".".join(str(number) for number in _OLDEST[product])
        return Row(GROUP, _REACHABLE, Verdict.FAIL, detail, f"ops-mail needs {product} {oldest} or newer")
    return Row(GROUP, _REACHABLE, Verdict.OK, detail)


def _schema_row(settings: Settings, state: SchemaState) -> Row:
    match state.status:
        case SchemaStatus.CURRENT:
            return Row(GROUP, _SCHEMA, Verdict.OK, f"current, revision {state.found}")
        case SchemaStatus.AHEAD:
            detail = f"a newer ops-mail has been here: revision {state.found}, this one knows {state.wanted}"
            return Row(GROUP, _SCHEMA, Verdict.WARN, detail, "upgrade this instance soon")
    what = "there are no tables yet" if state.status is SchemaStatus.MISSING else f"revision {state.found} is old"
    if settings.store.auto_migrate:
        return Row(GROUP, _SCHEMA, Verdict.WARN, what, "`ops-mail run` or `ops-mail migrate` brings it up to date")
    advice = "OPS_MAIL_AUTO_MIGRATE is false: run `ops-mail migrate`"
    return Row(GROUP, _SCHEMA, Verdict.FAIL, what, advice)


def _privileges_row(settings: Settings, store: Store, report: PrivilegeReport, *, migration_due: bool) -> Row:
    if store.dialect == "sqlite":
        return Row(GROUP, _PRIVILEGES, Verdict.OK, "SQLite has no accounts")
    if report.missing:
        return Row(GROUP, _PRIVILEGES, Verdict.FAIL, f"missing: {_listed(report.missing)}", "grant these")
    if report.forbidden:
        detail = f"the account may write where it must not: {_listed(report.forbidden)}"
        return Row(GROUP, _PRIVILEGES, Verdict.FAIL, detail, "revoke these, or name other OPS_MAIL_FORBIDDEN_TABLES")
    if report.missing_for_migrate:
        detail = f"missing for migrations: {_listed(report.missing_for_migrate)}"
        needed = migration_due and settings.store.auto_migrate
        advice = (
            "grant these, or set OPS_MAIL_AUTO_MIGRATE to false and run `ops-mail migrate` with an account that may"
        )
        return Row(GROUP, _PRIVILEGES, Verdict.FAIL if needed else Verdict.WARN, detail, advice)
    if not report.complete:
        return Row(
            GROUP, _PRIVILEGES, Verdict.WARN, "the account's grants cannot be read in full", "compare them by hand"
        )
    tables = ", ".join(settings.store.forbidden_tables)
    return Row(GROUP, _PRIVILEGES, Verdict.OK, f"ops_mail_* can be written, {tables} cannot")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)

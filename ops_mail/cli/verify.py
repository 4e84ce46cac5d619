"""`ops-mail verify`: every UID on the server against the tables, mailbox by mailbox."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from datetime import datetime

from ops_mail.app.options import listener_options
from ops_mail.cli.database import opened_store
from ops_mail.cli.quiet import quiet_logs
from ops_mail.cli.terminal import write_json
from ops_mail.core.ids import FolderKey
from ops_mail.errors import OpsMailError
from ops_mail.imap import ImapSession, open_session
from ops_mail.listener.comparison import compare, scope_of
from ops_mail.listener.reconcile import earliest_wanted
from ops_mail.settings import MailboxSettings, Settings
from ops_mail.store import CursorState, Store

_LOGOUT_SECONDS = 2.0
_SHOWN_UIDS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One mailbox. `missing`: on the server, behind the cursor, without a row. `extra`: a row whose mail is no longer
    on the server. `pending`: beyond the cursor, the running listener lands them next. `rekeyed`: rows that had landed
    under an older UIDVALIDITY. `error` instead of figures when the comparison was impossible.
    """

    name: str
    folder: str
    on_server: int = 0
    missing: int = 0
    missing_uids: tuple[int, ...] = ()
    extra: int = 0
    pending: int = 0
    rekeyed: int = 0
    error: str | None = None

    @property
    def good(self) -> bool:
        """Nothing is missing, and that is known."""
        return self.error is None and self.missing == 0


def verify_command(settings: Settings, *, as_json: bool) -> int:
    """1 when anything is missing or could not be compared."""
    quiet_logs()
    findings = asyncio.run(_verify_all(settings))
    good = all(finding.good for finding in findings)
    if as_json:
        write_json({"complete": good, "mailboxes": [asdict(finding) for finding in findings]})
    else:
        from ops_mail.cli.verify_table import print_findings  # noqa: PLC0415 - rich is imported only when it draws

        print_findings(findings)
    return 0 if good else 1


async def _verify_all(settings: Settings) -> list[Finding]:
    async with opened_store(settings) as store:
        return [await _verify_one(settings, mailbox, store) for mailbox in settings.mailboxes]


async def _verify_one(settings: Settings, mailbox: MailboxSettings, store: Store) -> Finding:
    options = listener_options(settings, mailbox)
    try:
        session = await open_session(options.session)
        try:
            cursor = await store.read_cursor(options.key)
            if cursor is None or cursor.uid_validity is None:
                return Finding(mailbox.name, mailbox.folder, error=_never_read(cursor))
            begun_at = cursor.created_at if cursor.renumbered else None
            earliest = earliest_wanted(start_now=options.start_now, start_date=options.start_date, begun_at=begun_at)
            return await _compare(store, session, options.key, cursor, earliest)
        finally:
            await session.logout(_LOGOUT_SECONDS)
    except OpsMailError as error:
        return Finding(mailbox.name, mailbox.folder, error=str(error))


def _never_read(cursor: CursorState | None) -> str:
    """The login goes well: so it is the listener that has not come to it."""
    if cursor is not None and cursor.last_error:
        return f"never read; its listener says: {cursor.last_error}"
    if cursor is not None and cursor.lease_live:
        return "never read yet; an instance has just begun to listen to it"
    return "never read: no instance listens to it; start `ops-mail run`"


async def _compare(
    store: Store, session: ImapSession, key: FolderKey, cursor: CursorState, earliest: datetime | None
) -> Finding:
    selected = await session.select(key.folder)
    scope = scope_of(cursor, selected.uid_validity, earliest)
    on_server = missing = extra = pending = 0
    uids: list[int] = []
    async for page in compare(store, session, key, scope):
        on_server += page.on_server
        missing += len(page.missing)
        extra += page.extra
        pending += page.pending
        uids += [mail.uid for mail in page.missing[: _SHOWN_UIDS - len(uids)]]
    rekeyed = await store.rekeyed(key, selected.uid_validity)
    return Finding(key.mailbox, key.folder, on_server, missing, tuple(uids), extra, pending, rekeyed)

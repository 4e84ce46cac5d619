"""One mailbox, from the name of its server to a round trip of IDLE. Nothing on the server changes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from ops_mail.app.options import session_options
from ops_mail.cli.check.network import DNS, TCP, dial, look_up
from ops_mail.cli.check.rows import Row, Rows, Verdict, skipped
from ops_mail.errors import Failure, ImapError
from ops_mail.imap import ImapSession, SelectedFolder, open_session
from ops_mail.settings import MailboxSettings, Security, Settings, StartMode

_TLS, _LOGIN, _CAPABILITIES, _FOLDER, _IDLE = "tls", "login", "capabilities", "folder", "idle"
STEPS = (DNS, TCP, _TLS, _LOGIN, _CAPABILITIES, _FOLDER, _IDLE)
_CERTIFICATE_WARNING_DAYS = 14
_IDLE_SECONDS = 0.2
_LOGOUT_SECONDS = 2.0
# Advice where the error's own text gives none.
_ADVICE = {
    Failure.UNREACHABLE: "check OPS_MAIL_IMAP_HOST, OPS_MAIL_IMAP_PORT and the firewall",
    Failure.TLS: "check OPS_MAIL_IMAP_SECURITY, OPS_MAIL_IMAP_PORT and OPS_MAIL_IMAP_CA_FILE",
    Failure.AUTH: "check OPS_MAIL_IMAP_USERNAME, OPS_MAIL_IMAP_PASSWORD and OPS_MAIL_IMAP_AUTH",
    Failure.FOLDER: "check OPS_MAIL_IMAP_FOLDER",
    Failure.TIMEOUT: "try again; raise OPS_MAIL_COMMAND_TIMEOUT_SECONDS if the server is always this slow",
    Failure.LOST: "check OPS_MAIL_IMAP_PORT and OPS_MAIL_IMAP_SECURITY",
    Failure.BYE: "the server's own text says why",
    Failure.PROTOCOL: "the server's own text says why",
}


async def mailbox_rows(settings: Settings, mailbox: MailboxSettings, steps: Sequence[str] = STEPS) -> Rows:
    """The rows of one mailbox in the order of `STEPS`; those after a failure are skipped."""
    group = f"{mailbox.name}/{mailbox.folder}"
    done = 0
    async with contextlib.aclosing(_tried(settings, mailbox, group)) as rows:
        async for row in rows:
            yield row
            done = steps.index(row.step) + 1
            if row.verdict is Verdict.FAIL:
                for rest in skipped(group, tuple(steps[done:]), row.step):
                    yield rest
                return


async def _tried(settings: Settings, mailbox: MailboxSettings, group: str) -> Rows:
    limit = settings.session.connect_timeout_seconds
    addresses, row = await look_up(mailbox, group, limit)
    yield row
    if not addresses:
        return
    row = await dial(addresses, mailbox, group, limit)
    yield row
    if row.verdict is Verdict.FAIL:
        return
    try:
        began = time.monotonic()
        session = await open_session(session_options(settings, mailbox))
    except ImapError as error:
        for row in _not_opened(mailbox, group, error):
            yield row
        return
    try:
        async for row in _in_session(settings, mailbox, group, session, time.monotonic() - began):
            yield row
    finally:
        await session.logout(_LOGOUT_SECONDS)


async def _in_session(
    settings: Settings, mailbox: MailboxSettings, group: str, session: ImapSession, opened_seconds: float
) -> Rows:
    yield _tls_row(mailbox, group, session)
    yield Row(group, _LOGIN, Verdict.OK, f"as {mailbox.username}, {opened_seconds:.2f} s with the connection")
    yield _capabilities_row(settings, group, session)
    try:
        yield _folder_row(mailbox, group, await session.select(mailbox.folder, read_only=True))
    except ImapError as error:
        yield _failed(group, _FOLDER, error)
        return
    try:
        yield await _idle_row(settings, group, session)
    except ImapError as error:
        yield _failed(group, _IDLE, error)


def _not_opened(mailbox: MailboxSettings, group: str, error: ImapError) -> list[Row]:
    """Which of the steps inside `open_session` failed; those before it are then known to have gone well."""
    if mailbox.security is Security.PLAIN:
        before = [Row(group, _TLS, Verdict.SKIPPED, "OPS_MAIL_IMAP_SECURITY is plain")]
        return [*before, _failed(group, _LOGIN, error)]
    if error.failure in (Failure.TLS, Failure.UNREACHABLE):
        return [_failed(group, _TLS, error)]
    return [Row(group, _TLS, Verdict.OK, mailbox.security.value), _failed(group, _LOGIN, error)]


def _tls_row(mailbox: MailboxSettings, group: str, session: ImapSession) -> Row:
    if mailbox.security is Security.PLAIN:
        return Row(group, _TLS, Verdict.SKIPPED, "OPS_MAIL_IMAP_SECURITY is plain")
    ends = session.certificate_expires_at
    if ends is None:
        return Row(group, _TLS, Verdict.OK, f"{mailbox.security}, the certificate's end is unknown")
    days = (ends - datetime.now(UTC)).days
    detail = f"{mailbox.security}, the certificate is good for {days} days"
    if days < _CERTIFICATE_WARNING_DAYS:
        return Row(group, _TLS, Verdict.WARN, detail, f"whoever runs {mailbox.host} has to renew it")
    return Row(group, _TLS, Verdict.OK, detail)


def _capabilities_row(settings: Settings, group: str, session: ImapSession) -> Row:
    provider = session.provider
    known = [name for name in ("IDLE", "UIDPLUS", "MOVE", "ID", "CONDSTORE") if name in session.capabilities]
    detail = f"{provider.label}: {', '.join(known) or 'none that matters'}"
    if not session.can_idle:
        why = "IDLE is announced but not to be trusted there" if "IDLE" in session.capabilities else "no IDLE"
        seconds = settings.session.poll_seconds
        advice = f"the folder is polled every OPS_MAIL_POLL_SECONDS ({seconds:g})"
        if seconds < provider.poll_seconds:
            advice += f"; this provider wants at least {provider.poll_seconds}"
        return Row(group, _CAPABILITIES, Verdict.WARN, f"{detail}; {why}", advice)
    return Row(group, _CAPABILITIES, Verdict.OK, detail)


def _folder_row(mailbox: MailboxSettings, group: str, found: SelectedFolder) -> Row:
    mails = "1 mail" if found.exists == 1 else f"{found.exists} mails"
    detail = f"{mails}, UIDVALIDITY {found.uid_validity}"
    if mailbox.start is not StartMode.ALL:
        detail += f"; OPS_MAIL_IMAP_START is {mailbox.start}"
    return Row(group, _FOLDER, Verdict.OK, detail)


async def _idle_row(settings: Settings, group: str, session: ImapSession) -> Row:
    if _is_polled(session):
        return Row(group, _IDLE, Verdict.SKIPPED, "the folder is polled")
    began = time.monotonic()
    await session.idle(_IDLE_SECONDS, asyncio.Event(), lambda: None)
    seconds = time.monotonic() - began
    if _is_polled(session):
        advice = f"the folder will be polled every OPS_MAIL_POLL_SECONDS ({settings.session.poll_seconds:g})"
        return Row(group, _IDLE, Verdict.WARN, "the server refused IDLE or ended it at once", advice)
    return Row(group, _IDLE, Verdict.OK, f"begun and ended, {max(0.0, seconds - _IDLE_SECONDS) * 1000:.0f} ms")


def _is_polled(session: ImapSession) -> bool:
    return not session.can_idle


def _failed(group: str, step: str, error: ImapError) -> Row:
    detail, found, advice = str(error).rpartition(": check ")
    if found:
        return Row(group, step, Verdict.FAIL, detail, f"check {advice}")
    # Many of these errors say what to do by themselves.
    advice = "" if "OPS_MAIL_" in str(error) else _ADVICE.get(error.failure, "")
    return Row(group, step, Verdict.FAIL, str(error), advice)

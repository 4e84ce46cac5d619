"""One mailbox, from the name of its server to a round trip of IDLE, and to a test mail if that is wanted.

Nothing else on the server changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import UTC, datetime

from ops_mail.app.options import session_options
from ops_mail.cli.check.network import DNS, TCP, dial, look_up
from ops_mail.cli.check.provider import provider_row
from ops_mail.cli.check.push import STEPS as PUSH_STEPS
from ops_mail.cli.check.push import push_rows
from ops_mail.cli.check.rows import Row, Rows, Verdict, skipped
from ops_mail.core.counted import counted
from ops_mail.errors import Failure, ImapError
from ops_mail.imap import ImapSession, SelectedFolder, open_session
from ops_mail.settings import MailboxSettings, Security, Settings, StartMode

_TLS, _LOGIN, _CAPABILITIES, _PROVIDER, _FOLDER, _IDLE = "tls", "login", "capabilities", "provider", "folder", "idle"
_STEPS = (DNS, TCP, _TLS, _LOGIN, _CAPABILITIES, _PROVIDER, _FOLDER, _IDLE)
_CERTIFICATE_WARNING_DAYS = 14
_IDLE_SECONDS = 0.2
_LOGOUT_SECONDS = 2.0
# Advice where the error's own text gives none: the settings to check, or a sentence.
_KEYS = {
    Failure.TLS: ("security", "port", "ca_file"),
    Failure.AUTH: ("username", "password", "auth"),
    Failure.FOLDER: ("folder",),
    Failure.LOST: ("port", "security"),
}
_SENTENCES = {
    Failure.TIMEOUT: "try again; raise OPS_MAIL_COMMAND_TIMEOUT_SECONDS if the server is always this slow",
    Failure.BYE: "the server's own text says why",
    Failure.PROTOCOL: "the server's own text says why",
}


def steps_of(*, send_test: bool) -> tuple[str, ...]:
    """The steps of one mailbox in their order."""
    return (*_STEPS, *PUSH_STEPS) if send_test else _STEPS


async def mailbox_rows(settings: Settings, mailbox: MailboxSettings, *, send_test: bool) -> Rows:
    """The rows of one mailbox in the order of `steps_of`; those after a failure are skipped."""
    group = f"{mailbox.name}/{mailbox.folder}"
    steps = steps_of(send_test=send_test)
    async with contextlib.aclosing(_tried(settings, mailbox, group, send_test=send_test)) as rows:
        async for row in rows:
            yield row
            if row.verdict is Verdict.FAIL and row.step not in PUSH_STEPS:
                for rest in skipped(group, steps[steps.index(row.step) + 1 :], row.step):
                    yield rest
                return


async def _tried(settings: Settings, mailbox: MailboxSettings, group: str, *, send_test: bool) -> Rows:
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
            if row.verdict is Verdict.FAIL:
                return
        if send_test:
            for row in await push_rows(settings, mailbox, group, session):
                yield row
    finally:
        await session.logout(_LOGOUT_SECONDS)


async def _in_session(
    settings: Settings, mailbox: MailboxSettings, group: str, session: ImapSession, opened_seconds: float
) -> Rows:
    yield _tls_row(mailbox, group, session)
    yield Row(group, _LOGIN, Verdict.OK, f"as {mailbox.username}, {opened_seconds:.2f} s with the connection")
    yield _capabilities_row(settings, group, session)
    yield provider_row(
        session.provider, mailbox, settings.session, polled=_is_polled(session), group=group, step=_PROVIDER
    )
    try:
        yield _folder_row(mailbox, group, await session.select(mailbox.folder, read_only=True))
    except ImapError as error:
        yield _failed(mailbox, group, _FOLDER, error)
        return
    try:
        yield await _idle_row(settings, group, session)
    except ImapError as error:
        yield _failed(mailbox, group, _IDLE, error)


def _not_opened(mailbox: MailboxSettings, group: str, error: ImapError) -> list[Row]:
    """Which of the steps inside `open_session` failed; those before it are then known to have gone well."""
    if mailbox.security is Security.PLAIN:
        return [_no_tls(mailbox, group), _failed(mailbox, group, _LOGIN, error)]
    if error.failure in (Failure.TLS, Failure.UNREACHABLE):
        return [_failed(mailbox, group, _TLS, error)]
    return [Row(group, _TLS, Verdict.OK, mailbox.security.value), _failed(mailbox, group, _LOGIN, error)]


def _tls_row(mailbox: MailboxSettings, group: str, session: ImapSession) -> Row:
    if mailbox.security is Security.PLAIN:
        return _no_tls(mailbox, group)
    ends = session.certificate_expires_at
    if ends is None:
        return Row(group, _TLS, Verdict.OK, f"{mailbox.security}, the certificate's end is unknown")
    days = (ends - datetime.now(UTC)).days
    detail = f"{mailbox.security}, the certificate is good for {counted(days, 'day')}"
    if days < _CERTIFICATE_WARNING_DAYS:
        return Row(group, _TLS, Verdict.WARN, detail, f"whoever runs {mailbox.host} has to renew it")
    return Row(group, _TLS, Verdict.OK, detail)


def _no_tls(mailbox: MailboxSettings, group: str) -> Row:
    return Row(group, _TLS, Verdict.SKIPPED, f"{mailbox.source.names('security')} is plain")


def _capabilities_row(settings: Settings, group: str, session: ImapSession) -> Row:
    known = [name for name in ("IDLE", "UIDPLUS", "MOVE", "ID", "CONDSTORE") if name in session.capabilities]
    detail = ", ".join(known) or "none that matters"
    if not session.can_idle:
        why = "IDLE is announced but not to be trusted there" if "IDLE" in session.capabilities else "no IDLE"
        advice = f"the folder is polled every OPS_MAIL_POLL_SECONDS ({settings.session.poll_seconds:g})"
        return Row(group, _CAPABILITIES, Verdict.WARN, f"{detail}; {why}", advice)
    return Row(group, _CAPABILITIES, Verdict.OK, detail)


def _folder_row(mailbox: MailboxSettings, group: str, found: SelectedFolder) -> Row:
    detail = f"{counted(found.exists, 'mail')}, UIDVALIDITY {found.uid_validity}"
    if mailbox.start is not StartMode.ALL:
        detail += f"; {mailbox.source.names('start')} is {mailbox.start}"
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


def _failed(mailbox: MailboxSettings, group: str, step: str, error: ImapError) -> Row:
    detail, found, advice = str(error).rpartition(": check ")
    if found:
        return Row(group, step, Verdict.FAIL, detail, f"check {advice}")
    # Many of these errors say what to do by themselves.
    advice = "" if mailbox.source.is_named_in(str(error)) else _advice(mailbox, error.failure)
    return Row(group, step, Verdict.FAIL, str(error), advice)


def _advice(mailbox: MailboxSettings, failure: Failure) -> str:
    if failure is Failure.UNREACHABLE:
        return f"check {mailbox.source.names('host', 'port', also='the firewall')}"
    if failure in _KEYS:
        return f"check {mailbox.source.names(*_KEYS[failure])}"
    return _SENTENCES.get(failure, "")

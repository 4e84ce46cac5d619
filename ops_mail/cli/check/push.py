"""`check --send-test`: how soon the server announces a mail to a session in IDLE. The mail is removed in any case."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from ops_mail.app.options import session_options
from ops_mail.cli.check.clock import between, skew_row
from ops_mail.cli.check.probe_mail import SUBJECT, Courier, ProbeMail
from ops_mail.cli.check.rows import Row, Verdict, skipped
from ops_mail.cli.terminal import printable
from ops_mail.core.mail import Listed
from ops_mail.errors import ImapError
from ops_mail.imap import UNKNOWN_DATE, IdleOutcome, ImapSession, Refused
from ops_mail.settings import AfterAction, MailboxSettings, SessionSettings, Settings
from ops_mail.waiting import end_tasks

T = TypeVar("T")

PUSH, CLOCK, REMOVED = STEPS = ("push", "clock", "test mail")
PUSH_SECONDS = 30.0
_APPEND_ADVICE = "if this account may not put mails there, send one from elsewhere and look at `ops-mail status`"
_INTERNALDATE_SECONDS = 1.0  # its resolution


@dataclass(frozen=True, slots=True)
class _Trial:
    """What is known after the mail was sent: the push's row, and between which times the server took it."""

    push: Row
    asked: datetime | None = None
    answered: datetime | None = None


async def push_rows(
    settings: Settings, mailbox: MailboxSettings, group: str, idling: ImapSession, push_seconds: float = PUSH_SECONDS
) -> list[Row]:
    """The rows of `STEPS`. `idling` has the folder open; the mail is put there by a session of its own."""
    if not idling.can_idle:
        return [Row(group, step, Verdict.SKIPPED, "the folder is polled, nothing is pushed") for step in STEPS]
    courier = Courier(session_options(settings, mailbox), mailbox.folder, ProbeMail.new())
    try:
        trial = await _tried(settings.session, group, idling, courier, push_seconds)
    except ImapError as error:
        trial = _Trial(Row(group, PUSH, Verdict.FAIL, str(error), _APPEND_ADVICE if isinstance(error, Refused) else ""))
    except asyncio.CancelledError:
        if courier.sent:
            _tell("interrupted; the test mail is being removed")
        row, _ = await _to_its_end(_removed(settings.session, mailbox, group, courier))
        if courier.sent:
            _tell(f"{row.detail}; {row.advice}" if row.advice else row.detail)
        raise
    row, listed = await _to_its_end(_removed(settings.session, mailbox, group, courier))
    return [trial.push, _clock_row(group, trial, listed), row]


async def _tried(
    session: SessionSettings, group: str, idling: ImapSession, courier: Courier, push_seconds: float
) -> _Trial:
    await courier.open()
    loop = asyncio.get_running_loop()
    idling.clear_hint()
    wake, begun = asyncio.Event(), asyncio.Event()
    longest = 2 * session.command_timeout_seconds + push_seconds
    waiting = asyncio.create_task(idling.idle(longest, wake, lambda: None, begun.set))
    beginning = asyncio.create_task(begun.wait())
    try:
        await asyncio.wait({waiting, beginning}, return_when=asyncio.FIRST_COMPLETED)
        if not begun.is_set():
            return _Trial(_without_sending(group, await waiting))
        began, asked = loop.time(), datetime.now(UTC)
        await courier.put()
        stored, answered = loop.time(), datetime.now(UTC)
        await asyncio.wait({waiting}, timeout=push_seconds)
        wake.set()
        outcome = await waiting
        hint = idling.hint_at if outcome is IdleOutcome.PUSH else None
        return _Trial(_push_row(session, group, hint, began, stored, push_seconds), asked, answered)
    finally:
        await end_tasks(waiting, beginning)


def _without_sending(group: str, outcome: IdleOutcome) -> Row:
    """IDLE was over before it had well begun."""
    if outcome is IdleOutcome.PUSH:
        return Row(group, PUSH, Verdict.OK, "another mail was announced just now, so none was sent")
    return Row(group, PUSH, Verdict.WARN, "the server refused IDLE, so none was sent", "the folder will be polled")


def _push_row(
    session: SessionSettings, group: str, hint: float | None, began: float, stored: float, push_seconds: float
) -> Row:
    if hint is None:
        detail = f"the server accepts IDLE, but announced no mail within {push_seconds:g} s"
        advice = (
            f"mails land at the end of each IDLE all the same: lower OPS_MAIL_IDLE_SECONDS ({session.idle_seconds:g}) "
            f"to have them sooner; once some were missed, OPS_MAIL_POLL_SECONDS ({session.poll_seconds:g}) counts too"
        )
        return Row(group, PUSH, Verdict.FAIL, detail, advice)
    if hint < began:
        return Row(group, PUSH, Verdict.OK, "announced another mail first, so the time was not taken")
    milliseconds = max(0.0, hint - stored) * 1000
    return Row(group, PUSH, Verdict.OK, f"a test mail was announced {milliseconds:.0f} ms after it was stored")


def _clock_row(group: str, trial: _Trial, listed: Listed | None) -> Row:
    """The server's clock by the INTERNALDATE that it gave. A warning at most: it times nothing that must hold."""
    if trial.asked is None or trial.answered is None or listed is None or listed.internal_date == UNKNOWN_DATE:
        return skipped(group, (CLOCK,), PUSH)[0]
    skew = between(trial.asked, listed.internal_date, trial.answered, _INTERNALDATE_SECONDS)
    return skew_row(group, CLOCK, "the mail server's clock", skew, None)


async def _removed(
    session: SessionSettings, mailbox: MailboxSettings, group: str, courier: Courier
) -> tuple[Row, Listed | None]:
    """Takes the mail out as far as that is possible; never raises an error of the server."""
    listed, limit = None, session.connect_timeout_seconds + 5 * session.command_timeout_seconds
    try:
        if not courier.sent:
            return Row(group, REMOVED, Verdict.SKIPPED, "none was stored"), None
        async with asyncio.timeout(limit):
            listed, gone = await courier.take_out()
        return _removed_row(mailbox, group, courier, listed, gone=gone), listed
    except (ImapError, TimeoutError) as error:
        reason = str(error) or f"not done after {limit:g} s"
        return _left(mailbox, group, reason), None
    except asyncio.CancelledError:  # a second Ctrl-C: whoever does not wait has to know
        _tell(_left(mailbox, group, "interrupted").detail)
        raise
    finally:
        await courier.close()


def _removed_row(mailbox: MailboxSettings, group: str, courier: Courier, listed: Listed | None, *, gone: bool) -> Row:
    if listed is None and not courier.stored:
        return Row(group, REMOVED, Verdict.OK, "none was stored")
    if listed is None:
        after, detail = mailbox.after_landing, f"the test mail is no longer in {mailbox.folder}"
        if after.action is AfterAction.MOVE:
            advice = f"a running ops-mail moves what has landed: delete “{SUBJECT}” in {after.folder}"
            return Row(group, REMOVED, Verdict.WARN, detail, advice)
        if after.action is AfterAction.DELETE:
            return Row(group, REMOVED, Verdict.OK, f"{detail}: a running ops-mail deletes what has landed")
        return Row(group, REMOVED, Verdict.WARN, detail, f"something moved or deleted “{SUBJECT}”: look for it")
    if not gone:
        detail = f"the server has no UIDPLUS: the test mail (UID {listed.uid}) is marked as deleted and stays"
        advice = "expunge the folder with a mail client; done here, that might remove other mails too"
        return Row(group, REMOVED, Verdict.WARN, detail, advice)
    return Row(group, REMOVED, Verdict.OK, f"the test mail (UID {listed.uid}) was removed")


def _left(mailbox: MailboxSettings, group: str, reason: str) -> Row:
    detail = f"the test mail may still be in {mailbox.folder}: {reason}"
    return Row(group, REMOVED, Verdict.FAIL, detail, f"delete “{SUBJECT}” there with a mail client")


def _tell(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which a cancellation does not cut short; it is passed on afterwards."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()

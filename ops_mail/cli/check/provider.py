"""What is known of the provider behind a mailbox, and what follows from it."""

from __future__ import annotations

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.core.counted import counted
from ops_mail.core.providers import GENERIC, OUTLOOK, Keepalive, ProviderProfile
from ops_mail.settings import AuthMethod, MailboxSettings, SessionSettings


def provider_row(
    provider: ProviderProfile,
    mailbox: MailboxSettings,
    session: SessionSettings,
    *,
    polled: bool,
    group: str,
    step: str,
) -> Row:
    """The profile that was chosen by host and capabilities, what it changes, and settings that do not suit it."""
    if provider is GENERIC:
        return Row(group, step, Verdict.OK, "none in particular: nothing is done differently")
    said = [*_changes(provider), *(note.text for note in provider.notes)]
    detail = f"{provider.label}: {'; '.join(mailbox.source.reworded(text) for text in said)}"
    advice = _advice(provider, mailbox, session, polled=polled)
    return Row(group, step, Verdict.WARN if advice else Verdict.OK, detail, advice)


def _changes(provider: ProviderProfile) -> list[str]:
    """What this profile makes the listener do."""
    changes = []
    if not provider.idle_trusted:
        changes.append("IDLE is not used, the folder is polled")
    if provider.keepalive is not Keepalive.NOOP and provider.keepalive_seconds is not None:
        every = counted(provider.keepalive_seconds, "second")
        changes.append(f"a polled folder is asked by {provider.keepalive} at least every {every}")
    if provider.min_login_gap_seconds:
        changes.append(f"at least {counted(provider.min_login_gap_seconds, 'second')} between a failure and a login")
    return changes


def _advice(provider: ProviderProfile, mailbox: MailboxSettings, session: SessionSettings, *, polled: bool) -> str:
    advice = []
    if provider is OUTLOOK and mailbox.auth is AuthMethod.PASSWORD:
        advice.append(f"set {mailbox.source.names('auth')} to oauth2, with an access token as the password")
    if polled and session.poll_seconds < provider.poll_seconds:
        wanted, now = provider.poll_seconds, f"{session.poll_seconds:g}"
        advice.append(f"set OPS_MAIL_POLL_SECONDS to {wanted} or more: {now} is too often for this provider")
    return "; ".join(advice)

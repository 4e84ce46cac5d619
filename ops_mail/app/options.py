"""Settings into the options of listeners and their sessions."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time

from ops_mail import __version__
from ops_mail.core.backoff import BackoffPolicy
from ops_mail.core.batching import BatchLimits
from ops_mail.core.ids import FolderKey
from ops_mail.imap import SessionOptions
from ops_mail.listener.tools import ListenerOptions
from ops_mail.settings import MailboxSettings, Settings, StartMode

CLIENT_ID = {"name": "ops-mail", "version": __version__}
"""Sent by ID (RFC 2971); NetEase refuses SELECT without it."""

_DRAIN_SHARE = 0.3  # of the grace period; the rest is for LOGOUT, the guard and closing


def backoff_policy(settings: Settings) -> BackoffPolicy:
    """How long to wait after failures in a row."""
    session = settings.session
    return BackoffPolicy(session.backoff_initial_seconds, session.backoff_max_seconds)


def session_options(settings: Settings, mailbox: MailboxSettings) -> SessionOptions:
    """How to reach one mailbox; its secret is read at each login."""
    return SessionOptions(
        host=mailbox.host,
        port=mailbox.port,
        security=mailbox.security,
        username=mailbox.username,
        auth=mailbox.auth,
        read_password=mailbox.password.reveal,
        ca_file=mailbox.ca_file,
        connect_timeout_seconds=settings.session.connect_timeout_seconds,
        command_timeout_seconds=settings.session.command_timeout_seconds,
        client_id=CLIENT_ID,
        source=mailbox.source,
    )


def listener_options(settings: Settings, mailbox: MailboxSettings) -> ListenerOptions:
    """How to listen to one mailbox."""
    return ListenerOptions(
        key=FolderKey(mailbox.name, mailbox.folder),
        label=_label(settings, mailbox),
        session=session_options(settings, mailbox),
        idle_seconds=settings.session.idle_seconds,
        poll_seconds=settings.session.poll_seconds,
        lease_seconds=settings.store.lease_seconds,
        backoff=backoff_policy(settings),
        limits=BatchLimits(max_message_bytes=settings.session.max_message_bytes),
        drain_seconds=max(0.2, math.floor(settings.shutdown_grace_seconds * _DRAIN_SHARE * 10) / 10),
        verify_interval_seconds=settings.maintenance.verify_interval_seconds,
        after_landing=mailbox.after_landing,
        start_now=mailbox.start is StartMode.NOW,
        start_date=_midnight_utc(mailbox.start) if isinstance(mailbox.start, date) else None,
    )


def _label(settings: Settings, mailbox: MailboxSettings) -> str:
    alone = sum(other.name == mailbox.name for other in settings.mailboxes) == 1
    return mailbox.name if alone else f"{mailbox.name}/{mailbox.folder}"


def _midnight_utc(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)

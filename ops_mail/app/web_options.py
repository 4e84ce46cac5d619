"""Settings into the options of the web server, which only `run` loads."""

from __future__ import annotations

from ops_mail.settings import Settings
from ops_mail.web import WebOptions


def web_options(settings: Settings) -> WebOptions:
    """How the page is shown; another process's mailbox may sync as seldom as these settings would have it."""
    return WebOptions(
        show_content=settings.http.show_content,
        token=settings.http.token,
        sync_limit_seconds=settings.session.sync_limit_seconds,
        lease_seconds=settings.store.lease_seconds,
    )

"""What the settings amount to. They are valid when this runs; a mistake has ended the command before."""

from __future__ import annotations

from ipaddress import ip_address

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.core.counted import counted
from ops_mail.errors import ConfigError
from ops_mail.settings import Role, Security, Settings, WebhookTarget

_GROUP = "settings"


def settings_rows(settings: Settings) -> list[Row]:
    """A summary, then what is allowed but probably not meant."""
    return [_summary(settings), *_handler(settings), *_unprotected(settings), *_short_lease(settings)]


def _summary(settings: Settings) -> Row:
    if not settings.enabled:
        return Row(_GROUP, "settings", Verdict.WARN, "OPS_MAIL_ENABLED is false: `run` will only serve its endpoints")
    handler = "a handler" if settings.handler.target is not None else "no handler"
    if settings.role is Role.CONSUMER:
        detail = f"role consumer, {handler}"
        if settings.handler.target is None:
            return Row(_GROUP, "settings", Verdict.FAIL, detail, "a consumer only runs handlers: set OPS_MAIL_HANDLER")
        return Row(_GROUP, "settings", Verdict.OK, detail)
    return Row(
        _GROUP,
        "settings",
        Verdict.OK,
        f"role {settings.role}, {counted(len(settings.mailboxes), 'folder')} to listen to, {handler}",
    )


def _handler(settings: Settings) -> list[Row]:
    """Loading it runs its module's code, as a start would."""
    if not settings.enabled or settings.handler.target is None:
        return []
    from ops_mail.handlers import load_handler  # noqa: PLC0415 - mostly there is no handler, and it is a large part

    try:
        loaded = load_handler(settings.handler)
    except ConfigError as error:
        return [Row(_GROUP, "handler", Verdict.FAIL, str(error), "the start would be refused with exit code 78")]
    kind = (
        ""
        if loaded is None or isinstance(settings.handler.target, WebhookTarget)
        else (", a plain function: in threads" if loaded.in_threads else ", an async function")
    )
    return [Row(_GROUP, "handler", Verdict.OK, f"{loaded.name if loaded else ''}{kind}")]


def _unprotected(settings: Settings) -> list[Row]:
    return [
        Row(
            _GROUP,
            "security",
            Verdict.WARN,
            f"the password of {mailbox.name} goes to {mailbox.host} unprotected",
            f"set {mailbox.source.names('security')} to tls or starttls",
        )
        for mailbox in settings.mailboxes
        if mailbox.security is Security.PLAIN and not _is_local(mailbox.host)
    ]


def _short_lease(settings: Settings) -> list[Row]:
    store = settings.store
    if store.lease_seconds >= 5:
        return []
    return [
        Row(
            _GROUP,
            "lease",
            Verdict.WARN,
            f"a lease of {store.lease_seconds:g} s is lost whenever the database is slow for a moment",
            "set OPS_MAIL_LEASE_SECONDS to 15 or more",
        )
    ]


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

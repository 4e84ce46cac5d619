"""What is set, checked: `load_settings` reads it, everything else only uses the typed result."""

from ops_mail.settings.load import KNOWN_NAMES, load_settings
from ops_mail.settings.mailbox import (
    AfterAction,
    AfterLanding,
    AuthMethod,
    MailboxSource,
    Security,
    StartMode,
)
from ops_mail.settings.model import (
    CallableTarget,
    HandlerOrder,
    HandlerSettings,
    HttpSettings,
    LogFormat,
    LogLevel,
    LogSettings,
    MailboxSettings,
    MaintenanceSettings,
    Role,
    SessionSettings,
    Settings,
    StoreSettings,
    WebhookTarget,
)
from ops_mail.settings.redaction import redact, register_secret
from ops_mail.settings.secret import Secret, SecretError

__all__ = [
    "KNOWN_NAMES",
    "AfterAction",
    "AfterLanding",
    "AuthMethod",
    "CallableTarget",
    "HandlerOrder",
    "HandlerSettings",
    "HttpSettings",
    "LogFormat",
    "LogLevel",
    "LogSettings",
    "MailboxSettings",
    "MailboxSource",
    "MaintenanceSettings",
    "Role",
    "Secret",
    "SecretError",
    "Security",
    "SessionSettings",
    "Settings",
    "StartMode",
    "StoreSettings",
    "WebhookTarget",
    "load_settings",
    "redact",
    "register_secret",
]

"""How a mailbox is reached: the settings' own words, for everything that needs them without the settings."""

from __future__ import annotations

from ops_mail.settings.mailbox import VARIABLES, AuthMethod, MailboxSource, Security

__all__ = ["VARIABLES", "AuthMethod", "MailboxSource", "Security"]

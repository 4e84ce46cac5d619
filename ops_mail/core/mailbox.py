"""How a mailbox is reached: the settings' own words, for everything that needs them without the settings."""

from __future__ import annotations

from ops_mail.settings.mailbox import AuthMethod, Security

__all__ = ["AuthMethod", "Security"]

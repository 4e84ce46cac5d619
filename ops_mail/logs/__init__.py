"""One event a line, with no secret in it, written without holding up the event loop."""

from ops_mail.logs.configure import LogOutput, configure_logging
from ops_mail.settings.redaction import register_secret

__all__ = ["LogOutput", "configure_logging", "register_secret"]

"""HANDLER=webhook: each mail is posted as JSON, signed."""

from ops_mail.handlers.webhook.client import WebhookHandler
from ops_mail.handlers.webhook.payload import PayloadLimits, event_id, payload_bytes
from ops_mail.handlers.webhook.signing import sign

__all__ = ["PayloadLimits", "WebhookHandler", "event_id", "payload_bytes", "sign"]

"""What landed mails are given to. A handler needs only the names below; the process needs the last three."""

from ops_mail.core.mail import Address
from ops_mail.handlers.answers import Discard, Done, Permanent, RetryLater, Write
from ops_mail.handlers.content import Content
from ops_mail.handlers.loading import LoadedHandler, load_handler
from ops_mail.handlers.mail import Mail, MailAttachment
from ops_mail.handlers.parts import HandlerParts
from ops_mail.handlers.service import HandlerService

__all__ = [
    "Address",
    "Content",
    "Discard",
    "Done",
    "HandlerParts",
    "HandlerService",
    "LoadedHandler",
    "Mail",
    "MailAttachment",
    "Permanent",
    "RetryLater",
    "Write",
    "load_handler",
]

"""One supervised listener for each mailbox: stand by, lead, sync, wait, and start again after any fault."""

from ops_mail.listener.mailbox import MailboxListener
from ops_mail.listener.tools import Landed, ListenerOptions, ListenerTools

__all__ = ["Landed", "ListenerOptions", "ListenerTools", "MailboxListener"]

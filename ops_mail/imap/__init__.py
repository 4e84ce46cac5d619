"""Sessions with IMAP servers. The only part that knows aioimaplib."""

from ops_mail.imap.errors import Expunged, Refused, Unfetchable
from ops_mail.imap.fetch_parser import UNKNOWN_DATE
from ops_mail.imap.folders import SelectedFolder
from ops_mail.imap.idling import IdleOutcome
from ops_mail.imap.listing import Listing
from ops_mail.imap.options import SessionOptions
from ops_mail.imap.resolver import addresses_of
from ops_mail.imap.session import ImapSession, open_session

__all__ = [
    "UNKNOWN_DATE",
    "Expunged",
    "IdleOutcome",
    "ImapSession",
    "Listing",
    "Refused",
    "SelectedFolder",
    "SessionOptions",
    "Unfetchable",
    "addresses_of",
    "open_session",
]

"""ops-mail: every mail of an IMAP folder lands exactly once in your own MySQL tables."""

__version__ = "0.1.0"

"""Bytes of a mail to its record."""

from ops_mail.mime.limits import ParseLimits
from ops_mail.mime.parser import parse_header_only, parse_mail

__all__ = ["ParseLimits", "parse_header_only", "parse_mail"]

"""How much of one mail is looked at, whatever its sender wrote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Bounds for one mail. Passing one is a defect of the record, never an exception."""

    max_seconds: float = 4.0
    """After this long the record holds what is known by then; below the 5 s after which the process is interrupted."""
    max_depth: int = 50
    """Multiparts and messages within each other."""
    max_parts: int = 1000
    """MIME parts of all levels together; attachments inside winmail.dat and uuencoded files count too."""
    max_header_fields: int = 2000
    """Fields of the mail's own header that are kept."""
    max_header_bytes: int = 1024 * 1024
    """Bytes of one header block that are read."""
    max_addresses: int = 20_000
    """Addresses of one kind (To, Cc) that are kept."""
    max_html_chars: int = 4 * 1024 * 1024
    """Characters of HTML of which text is made when a mail has no plain text."""
    max_text_chars: int = 16 * 1024 * 1024
    """Characters of text_body and of html_body, each."""

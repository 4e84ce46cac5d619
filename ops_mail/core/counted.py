"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 mail`, `12,345 mails`; `things` where the plural is another word than with an s."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"

"""Making foreign text fit to be shown: a mail's subject, a server's words, a handler's exception. Pure.

Escaping for HTML is the template's work. What is left here are the letters that do harm as they are: control
characters (terminals), letters that turn the direction of the text around (RFC 9839, Unicode TR 36), endless length.
"""

from __future__ import annotations

import re
import unicodedata

SUBJECT_CHARS = 160
SENDER_CHARS = 120
REASON_CHARS = 500
HIDDEN = "[…]"
_TELLING_CHARS = 8  # a shorter beginning of a subject is any word

_BLANKS = re.compile(r"\s+")
_ADDRESS = re.compile(r"[^\s<>()\[\]\"',;:@]+@[^\s<>()\[\]\"',;:@]+")
# Marks piled onto one letter grow over the lines above and below it; no script needs more than a few.
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILED_UP = re.compile(f"({_MARK}{{4}}){_MARK}+")
# Format characters that join emoji and letters of Indic and Arabic scripts are part of honest texts.
_JOINERS = "\u200c\u200d"


def clean(text: str | None, limit: int) -> str:
    """`text` on one line without characters that act instead of being seen, at most `limit` letters with `…`."""
    if not text:
        return ""
    # Whatever is cut off here is not looked at: a subject may be a megabyte long.
    seen = "".join(_visible(letter) for letter in text[: 4 * limit])
    shown = _BLANKS.sub(" ", _PILED_UP.sub(r"\1", seen)).strip()
    return shown if len(shown) <= limit and len(text) <= 4 * limit else shown[: limit - 1].rstrip() + "…"


def _visible(letter: str) -> str:
    if letter in _JOINERS:
        return letter
    kind = unicodedata.category(letter)
    if kind in ("Zl", "Zp") or letter in "\t\n\v\f\r\x85":
        return " "
    if kind == "Cf":  # zero-width and direction characters, soft hyphens, byte order marks
        return ""
    if kind in ("Cc", "Cs") or _is_noncharacter(ord(letter)):
        return "\N{REPLACEMENT CHARACTER}"
    return letter


def _is_noncharacter(code: int) -> bool:
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def without_content(reason: str, *private: str) -> str:
    """`reason` without addresses, and without the given texts of its mail (subject, sender) where it repeats them."""
    for text in sorted({text.strip() for text in private}, key=len, reverse=True):
        spellings = (text, repr(text)[1:-1])  # an exception often shows a text's repr
        repeated = max((_longest_start_within(spelling, reason) for spelling in spellings), key=len)
        if len(repeated) >= min(len(text), _TELLING_CHARS) > 0:
            reason = reason.replace(repeated, HIDDEN)
    return _ADDRESS.sub(HIDDEN, reason)


def _longest_start_within(text: str, reason: str) -> str:
    """The longest beginning of `text` that stands in `reason`: it may have been cut when it was put there."""
    shortest, longest = 0, len(text)
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if text[:middle] in reason:
            shortest = middle
        else:
            longest = middle - 1
    return text[:shortest]


def size_text(size_bytes: int) -> str:
    """A size for people: `812 B`, `4.2 KiB`, `25 MiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"

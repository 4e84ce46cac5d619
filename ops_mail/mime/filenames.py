"""The name of an attachment as a name of a file that can be created anywhere without harm."""

from __future__ import annotations

import re
import unicodedata

MAX_BYTES = 240
# Runs of spaces and tabs come from folding. Marks that reverse the direction of text hide the true extension.
_SPACE = re.compile(r"[ \t]+")
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z)", re.IGNORECASE)
_UNSAFE = str.maketrans(dict.fromkeys('<>"|?*', "_"))


def safe_name(name: str | None) -> str | None:
    """The base name: no folder, no control characters, no reserved name, at most 240 bytes of UTF-8, extension kept.

    None when nothing is left. A name that is harmless is unchanged but for runs of white space.
    """
    if name is None:
        return None
    base = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    kept = "".join(
        "_" if unicodedata.category(char) == "Cc" else char for char in _SPACE.sub(" ", base) if char not in _BIDI
    )
    kept = kept.translate(_UNSAFE).strip().rstrip(". ")
    if not kept.strip("."):
        return None
    if _RESERVED.match(kept):
        kept = "_" + kept
    return kept if len(kept) * 4 <= MAX_BYTES else _shortened(kept)


def _shortened(name: str) -> str:
    encoded = name.encode("utf_8", "replace")
    if len(encoded) <= MAX_BYTES:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = (dot + extension).encode("utf_8", "replace") if stem and len(extension) <= 12 else b""
    return encoded[: MAX_BYTES - len(tail)].decode("utf_8", "ignore").rstrip(". ") + tail.decode("utf_8")

"""How a secret may look in a text that it has leaked into."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from html import escape
from urllib.parse import quote, quote_plus


def spellings(secret: str) -> set[str]:
    """As it is, inside a URL, JSON, a repr or an IMAP string, and in base64, alone or inside a longer text."""
    quoted = secret.replace("\\", "\\\\").replace('"', '\\"')
    once = {secret, quoted, quote(secret, safe=""), quote(secret), quote_plus(secret), repr(secret)[1:-1]}
    once |= {_inside(secret.encode(), before) for before in range(3)}
    # Each of them as it is, and as a JSON document or the page would write it.
    return once | {_in_json(one, ascii_only) for one in once for ascii_only in (True, False)} | set(map(escape, once))


def _in_json(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _inside(secret: bytes, before: int) -> str:
    """The letters of base64 that this secret alone decides, behind so many other bytes (SASL: behind the user)."""
    coded = b64encode(b"\0" * before + secret).decode()
    return coded[-(-8 * before // 6) : 8 * (before + len(secret)) // 6]


def leaks(outputs: Mapping[str, str], secrets: Iterable[str]) -> list[str]:
    """Where a secret shows: the output's name, and the surroundings of it."""
    found = []
    for secret in secrets:
        for spelling in spellings(secret):
            for name, text in outputs.items():
                place = text.find(spelling)
                if place >= 0:
                    found.append(f"{name}: …{text[max(0, place - 120) : place + len(spelling) + 40]!r}")
    return found

"""The pieces of one entry of an address list → its name and its address."""

from __future__ import annotations

import re

from ops_mail.mime.notes import Notes
from ops_mail.mime.words import decode_value

AT = b"@"
SPACE = b" "
QUOTED_PAIR = re.compile(rb"\\(.)", re.DOTALL)


def is_blank(tokens: list[bytes]) -> bool:
    """True when there is nothing but white space."""
    return all(token == SPACE for token in tokens)


def display_name(tokens: list[bytes], notes: Notes) -> str:
    """The decoded words of a phrase, quotes and runs of white space removed."""
    value = b"".join(_unquoted(token) for token in tokens).strip()
    return " ".join(decode_value(value, notes).split()) if value else ""


def bracketed(tokens: list[bytes], notes: Notes) -> str:
    """The address between angle brackets: route and white space dropped, quotes of the local part kept."""
    kept = [token for token in tokens if token != SPACE]
    if len(kept) > 1 and SPACE in tokens[1:-1] and AT not in (kept[0], kept[1]) and AT in tokens:
        return bare(tokens, notes)[1]  # <some words user@host>
    if kept[:1] == [AT] and b":" in kept:
        kept = kept[kept.index(b":") + 1 :]
    spec = b"".join(kept)
    if spec[:7].lower() == b"mailto:":
        spec = spec[7:]
    if len(kept) == 1 and spec[:1] == b'"' and AT in spec:  # <"user@host">
        spec = _unquoted(spec)
    return decode_value(spec, notes)


def bare(tokens: list[bytes], notes: Notes) -> tuple[str, str]:
    """An address without brackets, maybe with words around it ("Name user@host"): (name, address)."""
    at = tokens.index(AT)
    left, right = at, at + 1
    while left > 0 and tokens[left - 1] == SPACE:
        left -= 1
    local_end = left
    while left > 0 and tokens[left - 1] != SPACE:
        left -= 1
    while right < len(tokens) and tokens[right] == SPACE:
        right += 1
    domain_begin = right
    while right < len(tokens) and tokens[right] not in (SPACE, AT):
        right += 1
    # "john . doe @ example . org" (obsolete): dots join what stands around them.
    while tokens[right : right + 1] == [SPACE] and _dotted(tokens, right - 1, right + 1):
        right += 2
    while left > 1 and _dotted(tokens, left - 2, left):
        left -= 2
    local = b"".join(token for token in tokens[left:local_end] if token != SPACE)
    domain = b"".join(token for token in tokens[domain_begin:right] if token != SPACE)
    name = display_name([*tokens[:left], SPACE, *tokens[right:]], notes)
    return name, decode_value(local + AT + domain, notes)


def split_at_spaces(tokens: list[bytes]) -> list[list[bytes]]:
    """Addresses with nothing but space between them; words without "@" are left out."""
    entries: list[list[bytes]] = [[]]
    for token in tokens:
        if token == SPACE:
            entries.append([])
        else:
            entries[-1].append(token)
    return [entry for entry in entries if AT in entry]


def _dotted(tokens: list[bytes], before: int, after: int) -> bool:
    return after < len(tokens) and (tokens[before].endswith(b".") or tokens[after].startswith(b"."))


def _unquoted(token: bytes) -> bytes:
    if token[:1] == b'"' and token[-1:] == b'"' and len(token) > 1:
        return QUOTED_PAIR.sub(rb"\1", token[1:-1])
    return token

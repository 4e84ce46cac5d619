"""How names, strings and UID sets are written in a command. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator

from ops_mail.core.ids import Uid

# RFC 2683 section 3.2.1.5 asks for lines under about 1,000 octets; some servers refuse longer ones.
MAX_SET_CHARS = 900


def quoted(text: str) -> str:
    """`text` as a quoted string (RFC 3501 section 9). Raises ValueError for NUL, CR or LF, which cannot be quoted."""
    if any(character in text for character in "\0\r\n"):
        raise ValueError("NUL, CR and LF cannot be sent in an IMAP string")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def encode_folder(name: str) -> str:
    """A Unicode folder name in modified UTF-7 (RFC 3501 section 5.1.3), not yet quoted."""
    out: list[str] = []
    foreign: list[str] = []

    def flush() -> None:
        if foreign:
            raw = "".join(foreign).encode("utf-16-be", "surrogatepass")
            out.append("&" + base64.b64encode(raw).decode("ascii").rstrip("=").replace("/", ",") + "-")
            foreign.clear()

    for character in name:
        if " " <= character <= "~":
            flush()
            out.append("&-" if character == "&" else character)
        else:
            foreign.append(character)
    flush()
    return "".join(out)


def decode_folder(name: str) -> str:
    """The Unicode form of a modified UTF-7 folder name; a malformed one comes back as it is."""
    out: list[str] = []
    rest = name
    while rest:
        plain, ampersand, rest = rest.partition("&")
        out.append(plain)
        if not ampersand:
            break
        coded, dash, rest = rest.partition("-")
        if not dash:
            return name
        if not coded:
            out.append("&")
            continue
        try:
            raw = base64.b64decode(coded.replace(",", "/") + "=" * (-len(coded) % 4), validate=True)
            out.append(raw.decode("utf-16-be"))
        except ValueError:
            return name
    return "".join(out)


def folder_argument(name: str) -> str:
    """A folder name as it goes on the wire: modified UTF-7, quoted."""
    return quoted(encode_folder(name))


def uid_sets(uids: Iterable[Uid]) -> Iterator[str]:
    """The UIDs as sequence sets with ranges (`4:7,9`), ascending, each short enough for one command line."""
    pieces: list[str] = []
    length = 0
    for piece in _ranges(sorted(set(uids))):
        if pieces and length + len(piece) + 1 > MAX_SET_CHARS:
            yield ",".join(pieces)
            pieces, length = [], 0
        pieces.append(piece)
        length += len(piece) + 1
    if pieces:
        yield ",".join(pieces)


def _ranges(ordered: list[Uid]) -> Iterator[str]:
    start = previous = None
    for uid in ordered:
        if previous is not None and uid == previous + 1:
            previous = uid
            continue
        if start is not None:
            yield str(start) if start == previous else f"{start}:{previous}"
        start = previous = uid
    if start is not None:
        yield str(start) if start == previous else f"{start}:{previous}"

"""What the demo prints: one line a mail, safe for any terminal, pipe or locale."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TextIO

from ops_mail.core.counted import counted
from ops_mail.core.mail import PreparedMail

_JOINERS = "\u200c\u200d"  # parts of words in some scripts, and of many an emoji


class Screen:
    """Lines to `out`; when nobody reads any more (`demo | head`), `on_closed` is called and the rest is dropped."""

    def __init__(self, out: TextIO, on_closed: Callable[[], None]) -> None:
        self._out = out
        self._on_closed = on_closed

    def say(self, line: str) -> None:
        """Print one line at once; characters that the terminal's encoding lacks become `?`."""
        encoding = self._out.encoding or "utf-8"
        try:
            self._out.write(_printable(line).encode(encoding, "replace").decode(encoding) + "\n")
            self._out.flush()
        except BrokenPipeError:
            # Python would complain once more when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())
            self._on_closed()


def landed_line(mail: PreparedMail, seconds: float) -> str:
    """Tell who wrote what, and how long after its arrival in the mailbox it was committed."""
    parsed = mail.mail
    sender = f"{parsed.from_name} <{parsed.from_addr}>" if parsed.from_name else parsed.from_addr
    files = f" +{counted(len(mail.attachments), 'file')}" if mail.attachments else ""
    return f"landed in {1000 * seconds:4.0f} ms  {sender}  “{parsed.subject or '(no subject)'}”{files}"


def _printable(text: str) -> str:
    """A mail's subject must not move the cursor or colour the terminal."""
    return "".join(character if character.isprintable() or character in _JOINERS else " " for character in text)

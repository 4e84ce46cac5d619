"""What the server has said about the selected folder, and whether it hinted at new mail. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COUNT = re.compile(rb"\* (\d{1,10}) (EXISTS|RECENT|EXPUNGE)\b", re.IGNORECASE)


@dataclass(slots=True)
class FolderView:
    """Follows EXISTS, RECENT and EXPUNGE, whichever command they come in (RFC 3501 sections 7.3 and 7.4).

    `hint_at` is the time of the oldest hint since `clear_hint`. EXISTS is a hint when the folder grew; the counts that
    SELECT itself gives are not.
    """

    exists: int = 0
    recent: int = 0
    hint_at: float | None = None
    pushed_in_idle: bool = False
    unlisted: bool = False  # the server announced something that no listing has looked for yet
    selecting: bool = False
    idling: bool = False

    @staticmethod
    def counts(line: bytes) -> bool:
        """Whether this untagged line is one that `note` follows."""
        return _COUNT.match(line) is not None

    def note(self, line: bytes, now: float) -> bool:
        """Takes an untagged line; True when it hinted at new mail."""
        found = _COUNT.match(line)
        if found is None:
            return False
        number, kind = int(found.group(1)), found.group(2).upper()
        grew = False
        if kind == b"EXISTS":
            grew = number > self.exists
            self.exists = number
        elif kind == b"RECENT":
            grew = number > self.recent
            self.recent = number
        else:
            self.exists = max(0, self.exists - 1)
        if not grew or self.selecting:
            return False
        self.hint(now)
        return True

    def hint(self, now: float) -> None:
        """New mail is likely."""
        self.unlisted = True
        if self.hint_at is None:
            self.hint_at = now
        self.pushed_in_idle = self.pushed_in_idle or self.idling

    def clear_hint(self) -> None:
        """Forgets the hints: a sync that starts now will see what they announced."""
        self.hint_at = None
        self.pushed_in_idle = False

    def begin_select(self) -> None:
        """A folder is being selected: what was known belongs to another one."""
        self.exists = self.recent = 0
        self.clear_hint()
        self.selecting = True

    def end_select(self) -> None:
        """From here on a folder that grows is news."""
        self.selecting = False

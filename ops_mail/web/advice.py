"""What to do about a mailbox's trouble, with the settings called as they are where that mailbox is set. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ops_mail.web.snapshot import MailboxView
from ops_mail.web.trouble import SETTINGS_OF_A_MAILBOX
from ops_mail.web.words import Words


@dataclass(frozen=True, slots=True)
class Advice:
    """`text`, and where the settings that it names are to be found, if that needs telling."""

    text: str
    where: str | None

    def __str__(self) -> str:
        return f"{self.text} {self.where}" if self.where else self.text


def advice_for(box: MailboxView, words: Words) -> Advice | None:
    """None for a mailbox without trouble."""
    if box.trouble is None:
        return None
    text = words(f"advice.{box.trouble}")
    if box.trouble not in SETTINGS_OF_A_MAILBOX:
        return Advice(text, None)
    if box.source is None:  # another process's: only that one knows where they stand
        return Advice(text, words("advice.file"))
    if box.source.file is None:
        return Advice(text, None)
    where = words("advice.entry", entry=box.source.entry, file=box.source.file)
    return Advice(box.source.reworded(text), where)

"""OPS_MAIL_HANDLER=save_attachments:handle

Saves the attachments of every mail into OPS_ATTACHMENTS_DIR, one folder for each mail. A plain function: it runs in a
thread. It may be run again for the same mail, so each file is written under a name that stays the same: whole or not at
all, and replaced by itself.
"""

# ruff: noqa: INP001 - a single file that is put where Python finds it

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ops_mail.handlers import Discard, Mail

FOLDER = Path(os.environ.get("OPS_ATTACHMENTS_DIR", "attachments"))


def handle(mail: Mail) -> dict[str, object]:
    """Save the files."""
    if not mail.attachments:
        raise Discard("no attachments")
    folder = FOLDER / hashlib.sha256(mail.key.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for attachment in mail.attachments:
        # `filename` has no path in it and is safe as a name; two files of one mail may still have the same one.
        name = f"{attachment.position:02d}-{attachment.filename or 'unnamed'}"
        attachment.content.save(folder / name)
        names.append(name)
    return {"folder": str(folder), "files": names}

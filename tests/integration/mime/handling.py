"""A handler for a process that runs beside `reparse`."""

from __future__ import annotations

from ops_mail.handlers import Mail


async def look(mail: Mail) -> dict[str, str]:
    """Tells what it was given."""
    return {"subject": mail.subject}

"""The JSON-able object that shows how a mail reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from ops_mail.core.mail import Address, ParsedMail


def as_json(file: str, parsed: ParsedMail) -> dict[str, object]:
    """One object a mail, as `ops-mail parse --json` prints it. Attachments are described, not included."""
    return {
        "file": file,
        "subject": parsed.subject,
        "from_name": parsed.from_name,
        "from_addr": parsed.from_addr,
        "to_addrs": _addresses(parsed.to_addrs),
        "cc_addrs": _addresses(parsed.cc_addrs),
        "sent_at": _instant(parsed.sent_at),
        "message_id": parsed.message_id,
        "text_body": parsed.text_body,
        "html_body": parsed.html_body,
        "attachments": [
            {
                "filename": item.filename,
                "original_filename": item.original_filename,
                "content_type": item.content_type,
                "disposition": item.disposition,
                "content_id": item.content_id,
                "size_bytes": len(item.content),
                "sha256": hashlib.sha256(item.content).hexdigest(),
            }
            for item in parsed.attachments
        ],
        "defects": list(parsed.defects),
    }


def _addresses(addresses: Iterable[Address]) -> list[dict[str, str]]:
    return [{"name": address.name, "addr": address.addr} for address in addresses]


def _instant(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat().replace("+00:00", "Z")

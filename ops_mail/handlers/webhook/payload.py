"""The body of a webhook request; its JSON Schema is `ops_mail/handlers/schema/webhook.json`."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ops_mail.core.mail import Address
from ops_mail.core.textfit import scrub
from ops_mail.handlers.mail import Mail, MailAttachment

_KIB = 1024


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """What is larger is left out whole, and said to be: half a text or half a file helps nobody. Bytes."""

    text: int = 256 * _KIB
    headers: int = 128 * _KIB
    attachment: int = 256 * _KIB
    attachments_together: int = 1024 * _KIB


def event_id(key: str) -> str:
    """The same for each attempt at the same mail: receivers can use it to see an event only once."""
    return f"mail_{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


async def payload_bytes(mail: Mail, limits: PayloadLimits) -> bytes:
    """The body. Nothing in it depends on the attempt, so that repeated requests are equal. Raises StoreError."""
    value = {
        "type": "mail.landed",
        "version": 1,
        "id": event_id(mail.key),
        "timestamp": _iso(mail.landed_at),
        "data": await _data(mail, limits),
    }
    return scrub(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


async def _data(mail: Mail, limits: PayloadLimits) -> dict[str, Any]:
    headers = [list(pair) for pair in mail.headers]
    long_headers = sum(len(name) + len(value) for name, value in mail.headers) > limits.headers
    return {
        "key": mail.key,
        "mailbox": mail.mailbox,
        "folder": mail.folder,
        "uid_validity": mail.uid_validity,
        "uid": mail.uid,
        "message_id": mail.message_id,
        "subject": mail.subject,
        "from": {"name": mail.from_name, "addr": mail.from_addr},
        "to": [_address(one) for one in mail.to_addrs],
        "cc": [_address(one) for one in mail.cc_addrs],
        "reply_to": mail.reply_to,
        "return_path": mail.return_path,
        "auth_results": mail.auth_results,
        "sent_at": _iso(mail.sent_at),
        "received_at": _iso(mail.received_at),
        "landed_at": _iso(mail.landed_at),
        "size_bytes": mail.size_bytes,
        "raw_sha256": mail.raw.sha256,
        "text": _text(mail.text_body, limits),
        "html": _text(mail.html_body, limits),
        "headers": {"value": None if long_headers else headers, "omitted": long_headers},
        "flags": list(mail.flags),
        "defects": list(mail.defects),
        "attachments": await _attachments(mail.attachments, limits),
    }


def _text(text: str | None, limits: PayloadLimits) -> dict[str, Any]:
    size = 0 if text is None else len(text.encode("utf-8", "surrogatepass"))
    omitted = size > limits.text
    return {"value": None if omitted else text, "omitted": omitted, "size_bytes": size}


async def _attachments(attachments: tuple[MailAttachment, ...], limits: PayloadLimits) -> list[dict[str, Any]]:
    room, listed = limits.attachments_together, []
    for one in attachments:
        size = one.content.size_bytes
        fits = size <= min(room, limits.attachment) and one.content.sha256 is not None
        content = base64.b64encode(await one.content.aread()).decode() if fits else None
        room -= size if fits else 0
        listed.append(
            {
                "position": one.position,
                "filename": one.filename,
                "original_filename": one.original_filename,
                "content_type": one.content_type,
                "disposition": one.disposition,
                "content_id": one.content_id,
                "size_bytes": size,
                "sha256": one.content.sha256,
                "content_base64": content,
                "omitted": not fits,
            }
        )
    return listed


def _address(address: Address) -> dict[str, str]:
    return {"name": address.name, "addr": address.addr}


def _iso(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat(timespec="microseconds").replace("+00:00", "Z")

"""Signatures as the Standard Webhooks specification 1.0 has them, so receivers can use any of its libraries."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

_PREFIX = "whsec_"


def sign(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.

    A secret that begins with `whsec_` is base64, as those of the specification are; any other one is taken as it is.
    """
    signed = b".".join((event_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _key(secret: str) -> bytes:
    if secret.startswith(_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()

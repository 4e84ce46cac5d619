"""Who may see the page: everybody, or those who hold the token.

A program sends it as `Authorization: Bearer …`. A person types it once into a form; the cookie that comes back holds
no token but a date and a signature made with it, so it ends by itself, and at once when the token is changed. Any
instance with the same token accepts it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime

from aiohttp import web

from ops_mail.settings import Secret

COOKIE = "ops_mail_session"
SESSION_SECONDS = 12 * 3600
_PURPOSE = b"ops-mail page session 1"


class Gate:
    """Without a token it stands open. A token in a file is read again each time; raises SecretError if it cannot be."""

    def __init__(self, token: Secret | None, now: Callable[[], datetime]) -> None:
        self._token = token
        self._now = now

    @property
    def guarded(self) -> bool:
        """Whether a token is asked for at all."""
        return self._token is not None

    async def lets_in(self, request: web.Request) -> bool:
        """Whether this request proves to know the token."""
        token = await self._read()
        if token is None:
            return True
        scheme, _, value = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(value.strip(), token):
            return True
        return self._is_session(request.cookies.get(COOKIE, ""), token)

    async def accepts(self, typed: str) -> bool:
        """Whether this is the token."""
        token = await self._read()
        return token is not None and _equal(typed.strip(), token)

    async def open_session(self, request: web.Request, response: web.Response) -> None:
        """Give the browser its cookie; the caller has checked the token."""
        token = await self._read()
        if token is None:
            return
        ends = str(int(self._now().timestamp()) + SESSION_SECONDS)
        response.set_cookie(
            COOKIE,
            f"{ends}.{_signature(ends, token)}",
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="Strict",
            secure=request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https",
            path="/",
        )

    async def _read(self) -> str | None:
        if self._token is None:
            return None
        return await asyncio.to_thread(self._token.reveal)  # it may be in a file

    def _is_session(self, cookie: str, token: str) -> bool:
        ends, _, signature = cookie.partition(".")
        if not (ends.isascii() and ends.isdigit() and len(ends) < 20):
            return False
        return _equal(signature, _signature(ends, token)) and int(ends) > self._now().timestamp()


def close_session(response: web.Response) -> None:
    """Take the cookie back."""
    response.del_cookie(COOKIE, path="/", samesite="Strict", httponly=True)


def _signature(ends: str, token: str) -> str:
    key = hmac.new(token.encode(), _PURPOSE, hashlib.sha256).digest()
    return hmac.new(key, ends.encode(), hashlib.sha256).hexdigest()


def _equal(given: str, wanted: str) -> bool:
    # Of digests, so that neither content nor length shows in the time it takes.
    return hmac.compare_digest(
        hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest(), hashlib.sha256(wanted.encode()).digest()
    )

"""The headers of every answer: nothing may be loaded, framed, sniffed or kept that this server did not mean to."""

from __future__ import annotations

from aiohttp import web

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_SERVER = {"Server": "ops-mail"}  # instead of the versions of Python and aiohttp


def own_headers() -> dict[str, str]:
    """For an answer that no handler of ours has made."""
    return _HEADERS | _SERVER


async def add_security_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """A signal handler for `on_response_prepare`; what an answer has set itself stays."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.update(_SERVER)

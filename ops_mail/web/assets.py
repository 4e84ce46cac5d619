"""Style, script and icons: read from the package once, served from memory, named by their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from aiohttp import web

_TYPES = {"page.css": "text/css", "live.js": "text/javascript", "icon-ok.svg": "image/svg+xml",
          "icon-bad.svg": "image/svg+xml"}  # fmt: skip
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file. `version` changes with its content."""

    body: bytes
    content_type: str
    version: str


@cache
def assets() -> dict[str, Asset]:
    """All files by name."""
    folder = files("ops_mail.web") / "static"
    found = {}
    for name, content_type in _TYPES.items():
        body = (folder / name).read_bytes()
        found[name] = Asset(body, content_type, hashlib.sha256(body).hexdigest()[:12])
    return found


def asset_url(name: str) -> str:
    """The link to a file, relative to the page."""
    return f"static/{name}?v={assets()[name].version}"


async def serve_asset(request: web.Request) -> web.Response:
    """A file by its name; its present version may be kept for ever."""
    asset = assets().get(request.match_info["name"])
    if asset is None:
        raise web.HTTPNotFound
    lasting = request.query.get("v") == asset.version
    return web.Response(
        body=asset.body,
        content_type=asset.content_type,
        charset="utf-8",
        headers={"Cache-Control": _FOR_EVER if lasting else "no-cache"},
    )

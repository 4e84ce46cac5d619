"""The page at `/`: one table, read-only, no script, no external asset; everything shown is escaped."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

_environment = Environment(
    loader=PackageLoader("ops_mail.web", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


def render_page(view: dict[str, Any]) -> str:
    """The HTML for a `status_view`."""
    return _environment.get_template("page.html").render(view=view)

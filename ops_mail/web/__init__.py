"""The HTTP side: health for Kubernetes, metrics for Prometheus, a page for people."""

from ops_mail.web.server import WebServer
from ops_mail.web.sources import WebOptions, WebSources

__all__ = ["WebOptions", "WebServer", "WebSources"]

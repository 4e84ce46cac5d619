"""The HTTP side: health for Kubernetes, metrics for Prometheus, a page for people."""

from ops_mail.web.server import WebServer, WebSources

__all__ = ["WebServer", "WebSources"]

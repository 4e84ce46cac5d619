"""What the handlers of this process are doing, as metrics of their own."""

from __future__ import annotations

from prometheus_client import Gauge

from ops_mail.metrics import Metrics


class HandlerGauges:
    """Registered once for each process."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        self.running = Gauge("ops_mail_handler_running", "Handlers at work in this process.", registry=registry)
        self.hung = Gauge(
            "ops_mail_handler_hung", "Handlers given up that still run; each holds memory and a thread or task.",
            registry=registry,
        )  # fmt: skip
        self.unwritten = Gauge(
            "ops_mail_handler_unwritten", "Outcomes waiting for the database.", registry=registry
        )  # fmt: skip

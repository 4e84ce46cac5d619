"""Prometheus metrics; the names are fixed, outsiders build alerts on them."""

from ops_mail.metrics.loop_lag import measure_loop_lag
from ops_mail.metrics.registry import Metrics

__all__ = ["Metrics", "measure_loop_lag"]

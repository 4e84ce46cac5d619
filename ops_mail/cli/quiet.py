"""Commands answer on standard output; what the parts log on the way must not stand in between."""

from __future__ import annotations

import logging

import structlog


def quiet_logs() -> None:
    """Until the command ends, only bugs are logged; failures come back as errors and rows."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.WARNING)

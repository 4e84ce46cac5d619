"""What SQLAlchemy's pool tells, in one line: a connection that broke is thrown away, and nobody needs its stack."""

from __future__ import annotations

import logging

from sqlalchemy import pool

from ops_mail.store.edge import first_line


def tell_in_one_line(connections: pool.Pool) -> None:
    """From now on errors that the pool itself deals with are warnings without a traceback."""
    logger = connections.logger
    if isinstance(logger, logging.Logger):
        logger.addFilter(_one_line)  # once for all pools of a kind: the same function is added but once


def _one_line(record: logging.LogRecord) -> bool:
    if record.exc_info and record.exc_info[1] is not None:
        record.msg, record.args = "%s: %s", (record.getMessage(), first_line(record.exc_info[1]))
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return True

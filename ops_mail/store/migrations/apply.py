"""Bringing a schema up to date with Alembic; nothing else loads it."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection

FOLDER = Path(__file__).parent


def apply(connection: Connection) -> None:
    """Applies all that is missing, on this connection; what is half done is finished."""
    config = configuration()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def configuration() -> Config:
    """Alembic's, without a file."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config

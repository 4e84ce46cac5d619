"""The command line."""

from ops_mail.cli.main import main

__all__ = ["main"]

"""`ops-mail check`: tries everything that running needs, without changing anything."""

from ops_mail.cli.check.command import check_command

__all__ = ["check_command"]

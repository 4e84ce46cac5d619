"""How the help of the commands looks."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class PlainGroup(TyperGroup):
    """Commands in whose help flags and arguments stand alone: typer would write `<bool>`, `<list[str]>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As in the base."""
        return [_plain(param) for param in super().get_params(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """As in the base."""
        command = super().get_command(ctx, cmd_name)
        for param in command.get_params(ctx) if command is not None else ():
            _plain(param)
        return command


def _plain(param: Any) -> Any:
    if param.param_type_name == "argument":
        param.display_type_rich = _nothing
    elif getattr(param, "is_flag", False) and param.metavar is None:
        param.metavar = ""
    return param


def _nothing(**_: Any) -> None:
    """What is told of an argument's type: its name and its help say it."""

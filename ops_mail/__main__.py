"""`python -m ops_mail` is `ops-mail run`; with arguments it is `ops-mail` itself."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """The program from its first instant; see `ops_mail.cli` for the rest."""
    if sys.argv[1:2] == ["run"]:
        # Loading takes a second or two. A stop in that time is an orderly end as well (promise P7); as process 1 of a
        # container it would even be ignored without a handler, and end in a kill.
        signal.signal(signal.SIGTERM, _end_while_loading)
    from ops_mail.cli import main as command_line  # noqa: PLC0415 - the largest part of the loading

    command_line()


def _end_while_loading(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv.append("run")
    main()

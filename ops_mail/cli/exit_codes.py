"""What the exit of a command says to a script."""

from __future__ import annotations

import signal
from enum import IntEnum

_BY_SIGNAL = 128  # and the signal's number: how shells, systemd's logs and containers tell it


class ExitCode(IntEnum):
    """The README has the same list. The last two are the system's doing; a command cannot change them."""

    OK = 0
    NO = 1
    USAGE = 2
    CONFIGURATION = 78  # EX_CONFIG of sysexits.h
    INTERRUPTED = _BY_SIGNAL + signal.SIGINT
    KILLED = _BY_SIGNAL + signal.SIGKILL
    TERMINATED = _BY_SIGNAL + signal.SIGTERM


MEANINGS = {
    ExitCode.OK: "all is well; run, demo and status --watch: stopped by SIGTERM or Ctrl-C",
    ExitCode.NO: "the answer is no, or it failed; run: it could not start",
    ExitCode.USAGE: "wrong usage",
    ExitCode.CONFIGURATION: "wrong configuration, a line for each mistake",
    ExitCode.INTERRUPTED: "Ctrl-C in any other command",
    ExitCode.KILLED: "kill -9, or no memory left",
    ExitCode.TERMINATED: "SIGTERM in any other command",
}


def exit_codes_line() -> str:
    """All of them, for the end of the help."""
    return "Exit codes: " + " | ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items())

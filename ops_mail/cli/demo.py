"""`ops-mail demo`."""

# ruff: noqa: PLC0415 - the demo is an extra that may not be installed

from __future__ import annotations

import sys


def demo_command(count: int | None, every_seconds: float, port: int | None) -> int:
    """Runs the demo until it is stopped or `count` mails have landed; 1 when its extra is not installed."""
    try:
        from ops_mail.demo import DemoOptions, run_demo
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "ops_mail":
            raise
        sys.stderr.write(f"The demo needs {error.name}: install it with `pip install 'ops-mail[demo]'`\n")
        return 1
    return run_demo(DemoOptions(count, every_seconds, port))

"""Many commands at the price of one start: each line of the arguments is run in a fork of a process that has imported
all of the program and nothing else. Prints a JSON object: line → [exit code, standard output and error].

    python -m tests.integration.secrets.many_commands "status" "status --json"
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import ops_mail
from ops_mail.__main__ import main as ops_mail_main

_LEFT_OUT = ("ops_mail.__main__", "ops_mail.demo", "ops_mail.store.migrations")


def main() -> None:
    """See above."""
    for module in pkgutil.walk_packages(ops_mail.__path__, "ops_mail."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    importlib.import_module("aiomysql")
    with tempfile.TemporaryDirectory() as folder:
        outputs = {line: Path(folder, str(number)) for number, line in enumerate(sys.argv[1:])}
        children = {line: _start(line, output) for line, output in outputs.items()}
        codes = {line: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for line, child in children.items()}
        print(json.dumps({line: [codes[line], output.read_text()] for line, output in outputs.items()}))


def _start(line: str, output: Path) -> int:
    child = os.fork()
    if child == 0:
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        _run(line)
    return child


def _run(line: str) -> NoReturn:
    sys.argv = ["ops-mail", *line.split()]
    try:
        ops_mail_main()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)
    except BaseException as error:  # noqa: BLE001 - a fork must not go on as its parent
        os.write(2, repr(error).encode())
    os._exit(99)


if __name__ == "__main__":
    main()

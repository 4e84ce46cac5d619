"""Random faults, repeatable by their seed, while mails keep arriving; then every mail is accounted for.

    python -m tests.chaos --seed 1 --faults 500 --mails 10000 [--server mariadb|mysql] [--report FILE]

The exit code is 0 when nothing was lost, nothing doubled and every SIGTERM ended with 0.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import run
from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql

ARTEFACTS = Path(__file__).resolve().parents[1] / "artefacts"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--mails", type=int, default=1_000)
    parser.add_argument("--server", choices=("mariadb", "mysql"), default="mariadb")
    parser.add_argument("--report", type=Path, help="where the JSON goes; tests/artefacts/chaos-SEED.json")
    parser.add_argument("--logs", type=Path, help="keep the processes' logs in this folder")
    chosen = parser.parse_args()
    server = MySql() if chosen.server == "mysql" else MariaDb()
    with tempfile.TemporaryDirectory(prefix="ops-mail-chaos-") as temporary:
        folder = chosen.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(run(chosen.seed, chosen.faults, chosen.mails, server, folder, _say))
    path = chosen.report or ARTEFACTS / f"chaos-{chosen.seed}.json"
    report.write(path)
    print(report.text())
    print(f"kept in {path}")
    return 0 if report.good else 1


def _say(progress: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{progress}", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

"""kill -9 of consumers at random while they work through many mails whose handlers sleep, fail and hang by turns.

python -m tests.chaos.handlers_killed [--mails 2000] [--kills 30] [--server mariadb|mysql|sqlite] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.handlers.killing import Plan, kill_at_random
from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mails", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", choices=("mariadb", "mysql", "sqlite"), default="mariadb")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ops-mail-chaos-") as name:
        folder = Path(name)
        if arguments.server == "sqlite":
            return _run(f"sqlite+aiosqlite:///{folder}/ops-mail.db", folder, arguments)
        server = MariaDb() if arguments.server == "mariadb" else MySql()
        server.start()
        try:
            return _run(server.create_database(), folder, arguments)
        finally:
            server.stop()


def _run(url: str, folder: Path, arguments: argparse.Namespace) -> int:
    print(kill_at_random(Plan(url, folder, arguments.mails, kills=arguments.kills, seed=arguments.seed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How many mails a second empty handlers get through: one consumer, then three together, on a real MariaDB.

python -m tests.bench.claims [--mails 6000] [--done 1000000] [--server mariadb|mysql]

Consumers are real processes. Exit code 1 when one makes less than 500 mails a second, or three no more than one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.handlers.seeding import seed_landed, seed_many_done
from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

LEAST_A_SECOND = 500


def main() -> int:
    arguments = _arguments()
    server = MariaDb() if arguments.server == "mariadb" else MySql()
    server.start()
    try:
        rates = {count: _measure(server.create_database(), count, arguments) for count in (1, 3)}
    finally:
        server.stop()
    for count, rate in rates.items():
        print(f"{count} consumer{'s' if count > 1 else ''}: {rate:.0f} mails/s")
    return 0 if rates[1] >= LEAST_A_SECOND and rates[3] > rates[1] else 1


def _measure(url: str, consumers: int, arguments: argparse.Namespace) -> float:
    tables = Tables(url)
    seed_many_done(url, arguments.done)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "empty.py").write_text("def handle(mail):\n    return None\n")
        processes = [_consumer(Path(folder), url, number, arguments) for number in range(consumers)]
        try:
            for process in processes:
                process.start()
                process.wait_for_line("handlers_started")
            time.sleep(1)
            started = time.monotonic()
            seed_landed(url, arguments.mails)
            seeded = time.monotonic()
            while tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status <> 'done'"):
                time.sleep(0.05)
            ended = time.monotonic()
            for process in processes:
                process.terminate()
        finally:
            for process in processes:
                process.close()
    wrong = tables.value("SELECT COUNT(*) FROM ops_mail_attempt WHERE outcome <> 'done' OR outcome IS NULL")
    print(
        f"{consumers}: {arguments.mails} mails, inserted in {seeded - started:.2f} s (handled from then on), "
        f"all done {ended - seeded:.2f} s later, {arguments.done} done before, attempts not done: {wrong}"
    )
    return float(arguments.mails / (ended - started))


def _consumer(folder: Path, url: str, number: int, arguments: argparse.Namespace) -> OpsMail:
    settings = {
        "ROLE": "consumer",
        "DATABASE_URL": url,
        "HANDLER": "empty:handle",
        "HANDLER_CONCURRENCY": arguments.concurrency,
        "LOG_LEVEL": "INFO",
    }
    return OpsMail(folder, settings, name=f"consumer{number}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mails", type=int, default=6000)
    parser.add_argument("--done", type=int, default=1_000_000)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--server", choices=("mariadb", "mysql"), default="mariadb")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""How many mails a second empty handlers get through: one consumer, then three together, on a real MariaDB.

python -m tests.bench.claims [--mails 6000] [--done 1000000] [--server mariadb|mysql]

Consumers are real processes. Exit code 1 when one makes less than 500 mails a second, or three no more than one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.handlers.seeding import mail_values, seed, seed_many_done
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
    """Mails a second, from the first claim to the last outcome, by the database's clock."""
    tables = Tables(url)
    seed_many_done(url, arguments.done)
    seed(url, (mail_values(uid, status="oversize") for uid in range(1, arguments.mails + 1)))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "empty.py").write_text("def handle(mail):\n    return None\n")
        processes = [_consumer(Path(folder), url, number, arguments) for number in range(consumers)]
        try:
            for process in processes:
                process.launch()
            for process in processes:
                process.wait_for_line("handlers_started", seconds=60)
            # Put there unseen and shown at once, so that inserting them takes nobody's time.
            tables.execute("UPDATE ops_mail_message SET status = 'landed' WHERE folder = 'INBOX'")
            processes[0].wait_until(lambda: _left(tables) == 0, "the end", 300)
            cpu_seconds = sum(_cpu_seconds(process.process.pid) for process in processes)
            for process in processes:
                process.terminate()
        finally:
            for process in processes:
                process.close()
    (row,) = tables.rows("SELECT MIN(started_at) AS began, MAX(finished_at) AS ended FROM ops_mail_attempt")
    wrong = tables.value("SELECT COUNT(*) FROM ops_mail_attempt WHERE outcome <> 'done' OR outcome IS NULL")
    seconds = (row["ended"] - row["began"]).total_seconds()
    print(f"{consumers}: {arguments.mails} mails in {seconds:.1f} s beside {arguments.done} done ones, "
          f"{cpu_seconds / arguments.mails * 1000:.2f} ms of CPU a mail, attempts not done: {wrong}")  # fmt: skip
    return float(arguments.mails / seconds)


def _left(tables: Tables) -> int:
    return int(tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status IN ('landed', 'processing', 'retry')"))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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

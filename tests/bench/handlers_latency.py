"""Whether handlers hold up the listener: landing latency beside sleeping ones, loop lag beside computing ones.

python -m tests.bench.handlers_latency [--mails 120]

One process with a real Dovecot and MariaDB. Mails land in turns without and with eight handlers that sleep 30 s each;
then one, then four threads compute while mails land. Exit code 1 when the latency grows by more than a fifth, or when
the event loop's lag beside one computing thread passes 50 ms at its 99th percentile.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

RATIO, LAG_SECONDS = 1.2, 0.05
ROUNDS = 3
HANDLER = """
import time

def handle(mail):
    if mail.subject == "sleep":
        time.sleep(30)
    elif mail.subject == "compute":
        until = time.monotonic() + 12
        while time.monotonic() < until:
            sum(n * n for n in range(1000))
"""


class Bench:
    """One process, its servers, and what it says of itself."""

    def __init__(self, dovecot: Dovecot, tables: Tables, process: OpsMail, user: str) -> None:
        self.dovecot, self.tables, self.process, self.user = dovecot, tables, process, user
        self.number = 0

    def send(self, subject: str) -> None:
        self.number += 1
        raw = f"From: a@example.org\r\nSubject: {subject}\r\nMessage-ID: <{self.number}@x>\r\n\r\ntext\r\n".encode()
        self.dovecot.append(self.user, "INBOX", raw)

    def land(self, mails: int) -> list[float]:
        """The latencies of mails that come one after the other, from the server's push to the commit."""
        before = len(self._latencies())
        for _ in range(mails):
            count = self.tables.count()
            self.send("quick")
            self.process.wait_until(partial(self._more_than, count), "a mail", 20)
        time.sleep(0.3)
        return self._latencies()[before:]

    def _more_than(self, count: int) -> bool:
        return self.tables.count() > count

    def busy(self, subject: str, handlers: int) -> None:
        """Until so many handlers are at work."""
        for _ in range(handlers):
            self.send(subject)
        query = "SELECT COUNT(*) FROM ops_mail_message WHERE status = 'processing' AND subject = :subject"
        self.process.wait_until(lambda: self.tables.value(query, subject=subject) == handlers, "busy handlers", 30)

    def idle(self) -> None:
        query = "SELECT COUNT(*) FROM ops_mail_message WHERE status <> 'done'"
        self.process.wait_until(lambda: self.tables.value(query) == 0, "the handlers' end", 60)

    def lag(self) -> dict[float, float]:
        """The histogram: how many samples were at most so late."""
        found = {}
        for line in self.process.get("/metrics")[1].splitlines():
            if line.startswith("ops_mail_event_loop_lag_seconds_bucket"):
                found[float(line.split('le="')[1].split('"')[0])] = float(line.rsplit(" ", 1)[1])
        return found

    def _latencies(self) -> list[float]:
        lines = (line for line in self.process.lines() if line["event"] == "landed")
        return [line["latency_seconds"] for line in lines if "latency_seconds" in line]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mails", type=int, default=120)
    arguments = parser.parse_args()
    server = MariaDb()
    server.start()
    try:
        with Dovecot() as dovecot, tempfile.TemporaryDirectory() as name:
            return _measure(server.create_database(), dovecot, Path(name), arguments.mails)
    finally:
        server.stop()


def _measure(url: str, dovecot: Dovecot, folder: Path, mails: int) -> int:
    (folder / "bench_handler.py").write_text(HANDLER)
    user = "bench@example.org"
    dovecot.append(user, "INBOX", b"Subject: quick\r\n\r\n")
    settings = {
        "IMAP_HOST": "127.0.0.1", "IMAP_PORT": dovecot.tls_port, "IMAP_CA_FILE": dovecot.ca_file,
        "IMAP_USERNAME": user, "IMAP_PASSWORD": dovecot.password, "DATABASE_URL": url,
        "HANDLER": "bench_handler:handle", "HANDLER_CONCURRENCY": 8,
    }  # fmt: skip
    with OpsMail(folder, settings) as process:
        process.wait_state("idling", 60)
        bench = Bench(dovecot, Tables(url), process, user)
        bench.land(10)  # warm
        without, beside = [], []
        for _ in range(ROUNDS):  # in turns, and enough of them: medians of 30 mails differ by a fifth by chance
            without += bench.land(mails // ROUNDS)
            bench.idle()
            bench.busy("sleep", 8)
            beside += bench.land(mails // ROUNDS)
            bench.idle()
        ratio = statistics.median(beside) / statistics.median(without)
        print(f"landing latency: without {_shown(without)}, beside 8 sleeping handlers {_shown(beside)}, "
              f"ratio of medians {ratio:.2f}")  # fmt: skip
        _lag_while(bench, mails, 0)
        share = _lag_while(bench, mails, 1)
        bench.idle()
        _lag_while(bench, mails, 4)
        assert process.terminate() == 0
    return 0 if ratio <= RATIO and share >= 0.99 else 1


def _lag_while(bench: Bench, mails: int, threads: int) -> float:
    """The share of samples of the loop's lag within the limit while so many threads compute and mails land."""
    bench.busy("compute", threads)
    before, started = bench.lag(), time.monotonic()
    latencies = bench.land(mails // 3)
    while time.monotonic() < started + 9:
        time.sleep(0.2)
    after = bench.lag()
    grown = {edge: after[edge] - before[edge] for edge in after}
    total = grown[float("inf")]
    share = grown[LAG_SECONDS] / total
    p99 = next(edge for edge, count in sorted(grown.items()) if count >= 0.99 * total)
    within = f"{share:.2%} of {total:.0f} samples within 50 ms"
    lag = f"loop lag p99 <= {p99 * 1000:g} ms ({within})"
    print(f"beside {threads} computing threads: {lag}, landing {_shown(latencies)}")
    return share


def _shown(latencies: list[float]) -> str:
    ordered = sorted(latencies)
    return f"p50 {statistics.median(ordered) * 1000:.1f} ms, p95 {ordered[int(len(ordered) * 0.95)] * 1000:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())

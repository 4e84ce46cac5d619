"""A 50 MB mail lands: event loop lag and the peak memory of both processes meanwhile.

    python -m tests.bench.big_mail [--megabytes 50]

Needs Dovecot and MariaDB. Figures depend on the machine; the bounds are those of the promises: loop lag under 50 ms,
memory of the main process independent of the mail's size.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import tempfile
import threading
import time
from pathlib import Path

from tests.integration.listener.settings import plain_settings
from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.product import OpsMail
from tests.servers.tables import Tables


def big_mail(megabytes: int) -> bytes:
    payload = os.urandom(megabytes * 1_000_000 * 57 // 80)  # base64 lines hold 57 bytes in 78 characters
    head = (
        b"From: a@example.org\r\nSubject: big\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
        b"--b\r\nContent-Type: text/plain\r\n\r\nsee file\r\n--b\r\nContent-Type: application/octet-stream\r\n"
        b"Content-Disposition: attachment; filename=x.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    )
    return head + base64.encodebytes(payload).replace(b"\n", b"\r\n") + b"--b--\r\n"


def resident_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def lag(process: OpsMail) -> dict[str, float]:
    name = "ops_mail_event_loop_lag_seconds"
    return {
        bound: process.metric(f'{name}_bucket{{le="{bound}"}}') for bound in ("0.025", "0.05", "0.1", "0.25", "+Inf")
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=50)
    megabytes = arguments.parse_args().megabytes
    database = MariaDb()
    database.start()
    with tempfile.TemporaryDirectory() as folder, Dovecot() as dovecot:
        try:
            url = database.create_database()
            run(dovecot, url, Path(folder), megabytes)
        finally:
            database.stop()


def run(dovecot: Dovecot, url: str, folder: Path, megabytes: int) -> None:
    settings = plain_settings(dovecot.port, dovecot, "ops", url, LOG_LEVEL="INFO", MAX_MESSAGE_BYTES=200_000_000)
    raw = big_mail(megabytes)
    with OpsMail(folder, settings) as process:
        process.wait_state("idling")
        tables = Tables(url)
        dovecot.append("ops", "INBOX", b"Subject: warm\r\n\r\nx")
        process.wait_until(lambda: tables.count() == 1, "the first mail")
        pid = process.process.pid
        before = resident_megabytes(pid)
        lag_before = lag(process)
        peaks = {"main": 0.0, "parser": 0.0}
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                peaks["main"] = max(peaks["main"], resident_megabytes(pid))
                for child in children(pid):
                    peaks["parser"] = max(peaks["parser"], resident_megabytes(child))

        watcher = threading.Thread(target=watch)
        watcher.start()
        dovecot.append("ops", "INBOX", raw)
        started = time.monotonic()
        process.wait_until(lambda: tables.count() == 2, "the big mail", 300)
        took = time.monotonic() - started
        done.set()
        watcher.join()
        lag_after = lag(process)
        assert process.terminate() == 0
    samples = lag_after["+Inf"] - lag_before["+Inf"]
    over = {bound: samples - (lag_after[bound] - lag_before[bound]) for bound in lag_after if bound != "+Inf"}
    print(f"{megabytes} MB mail landed in {took:.1f} s")
    print(f"main process: {before:.0f} MB before, {peaks['main']:.0f} MB at the peak")
    print(f"parsing process: {peaks['parser']:.0f} MB at the peak")
    late = ", ".join(f"over {bound} s: {count:.0f}" for bound, count in over.items())
    print(f"loop lag samples: {samples:.0f}; {late}")


if __name__ == "__main__":
    main()

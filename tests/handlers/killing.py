"""Consumers that are killed at random while they work; afterwards every mail and every attempt is accounted for."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.handlers.chaos_handler import TABLE
from tests.handlers.seeding import seed_landed
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

HANDLERS = ("tests.handlers.chaos_handler:plain", "tests.handlers.chaos_handler:on_loop")


@dataclass
class Plan:
    """`kills` at intervals of `pause` seconds at most; all has to be over after `limit` seconds."""

    url: str
    folder: Path
    mails: int
    consumers: int = 3
    kills: int = 20
    pause: float = 1.0
    limit: float = 400.0
    seed: int = 1


@dataclass
class Story:
    """What happened."""

    seconds: float
    kills: int
    statuses: Counter[str]
    outcomes: Counter[str]

    def __str__(self) -> str:
        return (f"{self.seconds:.0f} s, {self.kills} kills, mails {dict(self.statuses)}, "
                f"attempts {dict(self.outcomes)}")  # fmt: skip


def kill_at_random(plan: Plan) -> Story:
    """Runs the plan and asserts everything that must hold."""
    os.environ["CHAOS_FOLDER"] = str(plan.folder)  # the consumers inherit it
    seed_landed(plan.url, plan.mails)
    tables = Tables(plan.url)
    tables.execute(TABLE)
    dice = random.Random(plan.seed)
    processes = [_consumer(plan, number).launch() for number in range(plan.consumers)]
    started, kills = time.monotonic(), 0
    try:
        next_kill = started + 2
        while _open_mails(tables):
            now = time.monotonic()
            assert now - started < plan.limit, f"not over: {_statuses(tables)}\n{processes[0].explain()}"
            victim = _one_at_work(processes, tables, dice) if kills < plan.kills and now > next_kill else None
            if victim is not None:
                victim.kill()
                victim.launch()
                kills += 1
                next_kill = now + dice.uniform(0.2, plan.pause)
            time.sleep(0.05)
        codes = [process.terminate() for process in processes]
    finally:
        for process in processes:
            process.close()
    assert codes == [0] * plan.consumers
    _account(plan, tables)
    logs = "".join(process.log_text() for process in processes)
    assert "Traceback" not in logs, logs[logs.index("Traceback") - 2000 :][:4000]
    return Story(time.monotonic() - started, kills, _statuses(tables), _outcomes(tables))


def _one_at_work(processes: list[OpsMail], tables: Tables, dice: random.Random) -> OpsMail | None:
    """A consumer that has mails in its hands; killing one that has only just started would prove little."""
    rows = tables.rows("SELECT DISTINCT instance FROM ops_mail_attempt WHERE outcome IS NULL")
    busy = {int(row["instance"].split(":")[1]) for row in rows}
    at_work = [process for process in processes if process.process.pid in busy]
    return dice.choice(at_work) if at_work else None


def _consumer(plan: Plan, number: int) -> OpsMail:
    settings = {
        "ROLE": "consumer",
        "DATABASE_URL": plan.url,
        "HANDLER": HANDLERS[number % 2],
        "HANDLER_CONCURRENCY": 6,
        "HANDLER_TIMEOUT_SECONDS": 1.5,
        "HANDLER_MAX_ATTEMPTS": 6,
        "LEASE_SECONDS": 4,
        "LOG_LEVEL": "INFO",
    }
    return OpsMail(plan.folder, settings, name=f"consumer{number}")


def _open_mails(tables: Tables) -> int:
    return int(tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE status IN ('landed', 'processing', 'retry')"))


def _statuses(tables: Tables) -> Counter[str]:
    rows = tables.rows("SELECT status, COUNT(*) AS n FROM ops_mail_message GROUP BY status")
    return Counter({row["status"]: row["n"] for row in rows})


def _outcomes(tables: Tables) -> Counter[str]:
    rows = tables.rows("SELECT COALESCE(outcome, 'open') AS outcome, COUNT(*) AS n FROM ops_mail_attempt GROUP BY 1")
    return Counter({row["outcome"]: row["n"] for row in rows})


def _account(plan: Plan, tables: Tables) -> None:
    assert not (plan.folder / "twice").exists(), f"in two hands: {(plan.folder / 'twice').read_text()}"
    mails = tables.rows("SELECT id, uid, mailbox, folder, uid_validity, status, attempts FROM ops_mail_message")
    assert len(mails) == plan.mails
    assert {mail["status"] for mail in mails} <= {"done", "dead", "skipped"}
    keys = {f"{mail['mailbox']}/{mail['folder']}/{mail['uid_validity']}/{mail['uid']}": mail for mail in mails}
    written = {row["mail_key"] for row in tables.rows("SELECT mail_key FROM ops_chaos")}
    assert written == {key for key, mail in keys.items() if mail["status"] == "done"}, "exactly once, with done"
    effects = set((plan.folder / "effects").read_text().split("\n")) - {""}
    assert written <= effects, "each effect happened"
    numbers: dict[int, list[int]] = {mail["id"]: [] for mail in mails}
    for row in tables.rows("SELECT message_pk, attempt_no, outcome, finished_at FROM ops_mail_attempt ORDER BY id"):
        assert row["outcome"] is not None, row
        assert row["finished_at"] is not None
        numbers[row["message_pk"]].append(row["attempt_no"])
    for mail in mails:
        assert numbers[mail["id"]] == list(range(1, mail["attempts"] + 1)), mail
    dead = {mail["id"] for mail in mails if mail["status"] == "dead"}
    audited = [row["message_pk"] for row in tables.rows("SELECT message_pk FROM ops_mail_audit WHERE action = 'dead'")]
    assert sorted(audited) == sorted(dead)
    permanent = {mail["id"] for mail in mails if mail["uid"] % 40 == 7}
    assert permanent <= dead

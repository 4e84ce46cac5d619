"""Two processes on one mailbox: one leads, the other stands by and takes over."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.listener.settings import imap_settings
from tests.servers.commands import CommandLine, environment_with
from tests.servers.dovecot import Dovecot
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

TAKEOVER_SECONDS = 10


def mail(number: int) -> bytes:
    return b"Subject: %d\r\nMessage-ID: <%d@example.org>\r\n\r\nbody\r\n" % (number, number)


def hashes(*numbers: int) -> Counter[str]:
    return Counter(hashlib.sha256(mail(number)).hexdigest() for number in numbers)


@pytest.mark.parametrize("how", ["kill -9", "SIGTERM"])
def test_the_standby_lands_the_next_mail_soon_after_the_leader_is_gone(
    how: str,
    dovecot: Dovecot,
    database_url: str,
    new_user: Callable[[], str],
    tmp_path: Path,
    command_line: CommandLine,
) -> None:
    user = new_user()
    tables = Tables(database_url)
    dovecot.append(user, "INBOX", mail(1))
    settings = imap_settings(dovecot, user, database_url)
    with OpsMail(tmp_path, settings, name="a") as first, OpsMail(tmp_path, settings, name="b") as second:
        first.wait_ready()
        second.wait_ready()
        states = {process.state(): process for process in (first, second)}
        first.wait_until(lambda: {first.state(), second.state()} == {"idling", "standby"}, "one leader, one standby")
        states = {process.state(): process for process in (first, second)}
        leader, standby = states["idling"], states["standby"]
        epoch, holder = tables.cursor()["epoch"], tables.cursor()["holder"]
        assert standby.get_json("/readyz")[1]["mailboxes"][0]["holder"].startswith(f"{leader.name}:")
        assert leader.metric(f'ops_mail_guard_held{{mailbox="{user}"}}') == 1
        assert standby.metric(f'ops_mail_guard_held{{mailbox="{user}"}}') == 0
        standby.wait_until(
            lambda: {leader.name, standby.name} <= instances_shown(command_line, database_url, tmp_path),
            "both in the status",
        )

        if how == "kill -9":
            leader.kill()
        else:
            assert leader.terminate() == 0
        gone_at = time.monotonic()
        dovecot.append(user, "INBOX", mail(2))
        standby.wait_until(lambda: tables.count() == 2, "the takeover", TAKEOVER_SECONDS)
        assert time.monotonic() - gone_at < TAKEOVER_SECONDS
        assert tables.hashes() == hashes(1, 2)
        assert tables.cursor()["epoch"] == epoch + 1
        assert tables.cursor()["holder"].startswith(f"{standby.name}:")
        assert standby.terminate() == 0
        (told,) = [line for line in standby.lines() if line.get("event") == "guard_acquired"]
        start = standby.lines()[0]
        assert (start["event"], start["handler"], start["store"]) == ("starting", "none", "db")
        lines = [*leader.lines(), *standby.lines()]
        assert not [line for line in lines if str(line.get("logger")).startswith("alembic")]
        assert next(line["revision"] for line in lines if line.get("event") == "migration_applied") == "0001"
        taken = ("epoch", "taken_from", "taken_from_epoch")
        killed, in_order = (epoch + 1, holder, epoch), (epoch + 1, None, None)
        assert tuple(map(told.get, taken)) == (killed if how == "kill -9" else in_order)


def instances_shown(command_line: CommandLine, database_url: str, folder: Path) -> set[str]:
    """The names that `ops-mail status --json` tells, from the database alone."""
    env = environment_with(OPS_MAIL_DATABASE_URL=database_url, OPS_MAIL_ROLE="consumer")
    answer = command_line.run(("status", "--json"), env, folder)
    assert answer.returncode in (0, 1), answer.stderr
    return {entry["instance"].split(":")[0] for entry in json.loads(answer.stdout)["instances"]}

"""The proof that nothing is missing, by command and by the running process."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import running
from tests.integration.listener.settings import plain_settings
from tests.servers.commands import CommandLine, environment_with, run_process
from tests.servers.dovecot import Dovecot
from tests.servers.tables import Tables

VerifyJson = Callable[[Mapping[str, object]], Awaitable[tuple[int, dict[str, Any]]]]


def mail(number: int) -> bytes:
    return b"Subject: %d\r\n\r\nbody of %d\r\n" % (number, number)


@pytest.fixture
def verify_json(command_line: CommandLine, tmp_path: Path) -> VerifyJson:
    """Runs `ops-mail verify --json` beside the loop; exit code and finding."""

    async def verify(settings: Mapping[str, object]) -> tuple[int, dict[str, Any]]:
        answer = await asyncio.to_thread(command_line.run, ("verify", "--json"), environment_of(settings), tmp_path)
        assert not answer.stderr, answer.stderr
        (mailbox,) = json.loads(answer.stdout)["mailboxes"]
        return answer.returncode, mailbox

    return verify


def environment_of(settings: Mapping[str, object]) -> dict[str, str]:
    return environment_with(**{f"OPS_MAIL_{name}": value for name, value in settings.items()})


async def test_verify_names_what_is_missing_and_the_process_lands_it(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], verify_json: VerifyJson, tmp_path: Path
) -> None:
    user, tables = new_user(), Tables(mariadb_url)
    uids = dovecot.append_many(user, "INBOX", [mail(number) for number in range(12)])
    settings = plain_settings(dovecot.port, dovecot, user, mariadb_url)

    code, finding = await verify_json(settings | {"DATABASE_URL": mariadb_url})
    assert code == 1
    assert finding["error"]

    async with running(settings) as app:
        await app.until_state("idling")
    code, finding = await verify_json(settings)
    assert (code, finding["on_server"], finding["missing"], finding["extra"], finding["pending"]) == (0, 12, 0, 0, 0)

    # Somebody deletes rows by hand; somebody else expunges a mail on the server; one mail has not been seen yet.
    tables.execute("DELETE FROM ops_mail_message WHERE uid IN (3, 7)")
    dovecot.expunge(user, "INBOX", [uids[9]])
    dovecot.append(user, "INBOX", mail(12))
    code, finding = await verify_json(settings)
    assert (code, finding["missing"], finding["missing_uids"]) == (1, 2, [3, 7])
    assert (finding["on_server"], finding["extra"], finding["pending"]) == (12, 1, 1)
    shown = await asyncio.to_thread(run_process, ("verify",), environment_of(settings), tmp_path)
    assert (shown.returncode, shown.stderr) == (1, b"")
    assert b"3, 7" in shown.stdout

    async with running(settings, VERIFY_INTERVAL_SECONDS=3600) as app:
        await app.until(lambda: tables.count() == 13, "the recovery")
        await app.until_state("idling")
        _, metrics = await app.get("/metrics")
        assert f'ops_mail_verify_recovered_total{{mailbox="{user}"}} 2.0' in metrics
        assert f'ops_mail_verify_missing_messages{{mailbox="{user}"}} 0.0' in metrics
        assert 'ops_mail_audit_total{action="recovered"} 1.0' in metrics
    assert tables.hashes() == Counter(hashlib.sha256(mail(number)).hexdigest() for number in range(13))
    assert tables.cursor()["last_uid"] == uids[-1] + 1
    (audit,) = tables.rows("SELECT detail FROM ops_mail_audit WHERE action = 'recovered'")
    assert json.loads(audit["detail"])["uids"] == [3, 7]
    assert (await verify_json(settings))[0] == 0


async def test_mails_from_before_the_start_are_neither_landed_nor_missing(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], verify_json: VerifyJson
) -> None:
    user, tables = new_user(), Tables(mariadb_url)
    dovecot.append_many(user, "INBOX", [mail(number) for number in range(5)])
    settings = plain_settings(dovecot.port, dovecot, user, mariadb_url, IMAP_START="now")
    async with running(settings, VERIFY_INTERVAL_SECONDS=3600) as app:
        await app.until_state("idling")
        dovecot.append(user, "INBOX", mail(5))
        await app.until(lambda: tables.count() == 1, "the new mail")
    assert tables.hashes() == Counter([hashlib.sha256(mail(5)).hexdigest()])
    code, finding = await verify_json(settings)
    assert (code, finding["on_server"], finding["missing"]) == (0, 6, 0)

"""The corpus beside the repository lands whole: a real Dovecot, the real listener, a real database in strict mode.

What goes over IMAP are lines that end in CRLF and no NUL (RFC 3501 section 9: CHAR8, literal). Dovecot takes a NUL in
an APPEND and keeps 0x80 in its place. All else must come out of the store as it went into the folder, to the bit; so
the folder is a maildir that keeps CRLF: Dovecot's other formats swallow a CR before CRLF.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ops_mail.mime import parse_mail
from ops_mail.store import open_store
from tests.faults.harness import running
from tests.integration.listener.settings import imap_settings
from tests.servers.dovecot import Dovecot
from tests.servers.process import SqlServer
from tests.servers.tables import Tables

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"

NOT_LANDED: dict[str, str] = {}
"""Mails of the corpus that rest in another status than `landed`, and which; each needs a reason beside it."""

STATED = (
    "comm-central/mail__components__extensions__test__xpcshell__messages__sample05.eml",  # windows-1251
    "mnako-letters/test_chinese_plaintext_gbk_over_base64.txt",
    "mnako-letters/test_chinese_multipart_related_gb18030_over_quoted-printable.txt",
    "mnako-letters/test_korean_multipart_signed_euc-kr_over_quoted-printable.txt",
    "php-src/mb_send_mail05.phpt_EXPECTF",  # hz-gb-2312
    "stalwart-mail-parser/legacy__005.eml",  # utf-7
    "zammad/mail19.box",  # gb2312
    "zammad/mail31.box",  # traditional characters under the label gb2312
)
"""Mails of many charsets whose subjects (and texts) people have stated."""


@pytest.fixture(scope="module")
def exact_dovecot() -> Iterator[Dovecot]:
    with Dovecot(storage="maildir", extra="mail_save_crlf = yes") as server:
        yield server


def files() -> list[str]:
    return [line.split("\t")[0] for line in (CORPUS / "INDEX.tsv").read_text(encoding="utf-8").splitlines()[1:]]


def with_crlf(raw: bytes) -> bytes:
    return re.sub(rb"\r?\n", b"\r\n", raw)


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def stated() -> dict[str, dict[str, Any]]:
    lines = (CORPUS / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    return {one["file"]: one for one in map(json.loads, lines)}


async def read_back(url: str, hashes: list[str]) -> list[bytes]:
    """The contents as the store gives them, each checked against its hash on the way."""
    store = open_store(url, lease_seconds=10)
    at_once = asyncio.Semaphore(5)

    async def one(name: str) -> bytes:
        async with at_once:
            return await store.read_blob(name)

    try:
        return await asyncio.gather(*map(one, hashes))
    finally:
        await store.close(2)


async def test_every_mail_of_the_corpus_lands_with_its_bytes(
    exact_dovecot: Dovecot, sql_server: SqlServer, new_user: Callable[[], str]
) -> None:
    assert "STRICT" in str(sql_server.execute("SELECT @@global.sql_mode"))
    url, user, names = sql_server.create_database(), new_user(), files()
    appended = [with_crlf((CORPUS / name).read_bytes()) for name in names]
    uids = exact_dovecot.append_many(user, "INBOX", appended, chunk=100)
    assert len(names) == len(uids) == 786
    async with running(imap_settings(exact_dovecot, user, url, COMMAND_TIMEOUT_SECONDS=20)) as app:
        await app.until_state("idling", 50)

    rows = {row["uid"]: row for row in Tables(url).rows("SELECT * FROM ops_mail_message")}
    assert sorted(rows) == uids
    served = {uid: raw for uid, (raw, _) in exact_dovecot.contents(user, "INBOX").items()}
    wanted = {uid: raw.replace(b"\0", b"\x80") for uid, raw in zip(uids, appended, strict=True)}
    assert [uid for uid in uids if served[uid] != wanted[uid]] == []
    assert [uid for uid in uids if rows[uid]["raw_sha256"] != sha256(wanted[uid])] == []
    assert {uid: rows[uid]["size_bytes"] for uid in uids} == {uid: len(wanted[uid]) for uid in uids}

    kept = await read_back(url, [rows[uid]["raw_sha256"] for uid in uids])
    assert [uid for uid, raw in zip(uids, kept, strict=True) if raw != wanted[uid]] == []
    assert Tables(url).count_of("ops_mail_attachment") > 500
    without_content = (
        "SELECT COUNT(*) FROM ops_mail_attachment a LEFT JOIN ops_mail_blob b"
        " ON b.sha256 = a.sha256 AND b.size_bytes = a.size_bytes WHERE b.sha256 IS NULL"
    )
    assert Tables(url).value(without_content) == 0

    by_name = {name: rows[uid] for name, uid in zip(names, uids, strict=True)}
    assert {name: row["status"] for name, row in by_name.items() if row["status"] != "landed"} == NOT_LANDED
    # What STRICT and the columns' limits let through is what the parser read: nothing cut, nothing changed.
    for uid in uids:
        mail, row = parse_mail(wanted[uid]), rows[uid]
        assert (row["subject"], row["from_name"], row["from_addr"]) == (mail.subject, mail.from_name, mail.from_addr)
        assert (row["text_body"], row["html_body"]) == (mail.text_body, mail.html_body)
    for name in STATED:
        says = stated()[name]
        assert by_name[name]["subject"] == says["subject"]
        text = "".join((by_name[name]["text_body"] or "").split())
        assert all("".join(part.split()) in text for part in says.get("text_contains") or ())

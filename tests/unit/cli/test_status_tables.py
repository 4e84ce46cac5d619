"""What `status` shows can be read on a narrow terminal."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from ops_mail.cli.readiness import judge_all
from ops_mail.cli.status import Overview
from ops_mail.cli.status_tables import picture
from ops_mail.core.ids import FolderKey, Uid
from ops_mail.core.mail import MessageStatus
from ops_mail.store import CursorState, InstanceState
from tests.unit.cli.cursor_row import GOOD as HEALTHY
from tests.unit.cli.cursor_row import NOW

HOLDER = "ops-mail-6d5b8f7c9d-x2x7q:1:434e8c88ef26"
ERROR = (
    "imap.example.org:993 refused the login of billing@example.org: [AUTHENTICATIONFAILED] Authentication failed: "
    "check OPS_MAIL_IMAP_USERNAME and OPS_MAIL_IMAP_PASSWORD_FILE"
)
GOOD = replace(
    HEALTHY,
    key=FolderKey("accounts-payable@subsidiary.example.org", "Archiv/Rechnungen"),
    last_uid=Uid(1_234_567),
    holder=HOLDER,
)
BAD = replace(GOOD, key=FolderKey("billing\x1b[2J", "INBOX"), state="connecting", failures=2, last_error=ERROR)
INSTANCE = InstanceState(HOLDER, "all", NOW, NOW, 4.5, None)


def shown(*cursors: CursorState) -> list[str]:
    overview = Overview(judge_all(cursors, [], NOW, 270.0), [INSTANCE], {MessageStatus.DONE: 4}, 30.0, NOW)
    out = io.StringIO()
    Console(file=out, width=80, highlight=False).print(picture(overview))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_at_80_columns_only_names_are_folded() -> None:
    lines = shown(GOOD, BAD)
    assert max(map(len, lines)) <= 80
    table = lines[: lines.index("")]
    assert table[0].split() == ["Mailbox", "State", "Last", "sync", "UID", "Holder"]
    row = next(line for line in table if "1234567" in line and "idling" in line)
    assert "ready" in row
    assert "100 s ago" in row
    assert any("not ready" in line and "connecting" in line for line in table)
    assert "434e8c88ef26" not in "".join(table)


def test_one_machine_and_three_mailboxes_fold_nothing() -> None:
    one = replace(BAD, holder="mail-1:5780:434e8c88ef26", last_uid=Uid(314))
    names = ("alerts", "orders", "billing")
    lines = shown(*(replace(one, key=FolderKey(name, "Incoming/Orders")) for name in names))
    assert lines.index("") == 4
    assert all(line.endswith(" mail-1:5780") for line in lines[1:4])


def test_what_is_wrong_is_told_below_the_table_whole_and_does_not_act_on_the_terminal() -> None:
    lines = shown(GOOD, BAD)
    begin = next(number for number, line in enumerate(lines) if line.startswith("billing\\u001b[2J/INBOX: "))
    paragraph = " ".join(lines[begin : lines.index("", begin)])
    assert paragraph == f"billing\\u001b[2J/INBOX: connecting again after 2 failures: {ERROR}"


def test_nothing_wrong_takes_no_line() -> None:
    lines = shown(GOOD)
    assert lines.count("") == 2
    assert lines[-1] == "Mails: 4 done"

"""Two folders of one mailbox in one process: two listeners, two series, two cursors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.faults.harness import running
from tests.servers.dovecot import Dovecot
from tests.servers.tables import Tables


async def test_two_folders_of_one_mailbox_do_not_share_a_series(
    dovecot: Dovecot, mariadb_url: str, new_user: Callable[[], str], tmp_path: Path
) -> None:
    user = new_user()
    dovecot.create_folder(user, "Orders")
    entry = (
        f'[[mailbox]]\nname = "{user}"\nhost = "127.0.0.1"\nport = {dovecot.port}\nsecurity = "plain"\n'
        f'username = "{user}"\npassword = "{dovecot.password}"\n'
    )
    (tmp_path / "mailboxes.toml").write_text(f'{entry}folder = "INBOX"\n{entry}folder = "Orders"\n')
    dovecot.append(user, "Orders", b"Subject: order\r\n\r\nx")
    settings = {"MAILBOXES_FILE": tmp_path / "mailboxes.toml", "DATABASE_URL": mariadb_url}
    async with running(settings) as app:
        await app.until(lambda: all(m.state.value == "idling" for m in app.mailboxes), "both idling")
        dovecot.append(user, "INBOX", b"Subject: mail\r\n\r\nx")
        await app.until(lambda: Tables(mariadb_url).count() == 2, "both mails")
        _, metrics = await app.get("/metrics")
    for folder in ("INBOX", "Orders"):
        assert f'ops_mail_messages_landed_total{{mailbox="{user}/{folder}",status="landed"}} 1.0' in metrics
    rows = Tables(mariadb_url).rows("SELECT folder, last_uid FROM ops_mail_cursor ORDER BY folder")
    assert [(row["folder"], row["last_uid"]) for row in rows] == [("INBOX", 1), ("Orders", 1)]

"""`parse`: how files would land, without settings or a database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.integration.cli.conftest import ROOT, Cli

MAIL = (
    "From: =?utf-8?q?J=C3=BCrgen?= <juergen@example.org>\r\n"
    "To: ops@example.org\r\n"
    "Subject: =?utf-8?b?UmVjaG51bmcg4oKsIDQy?=\r\n"
    "Date: Sat, 31 Jan 2026 12:00:00 +0100\r\n"
    "Message-ID: <{id}@example.org>\r\n"
    "MIME-Version: 1.0\r\n"
    'Content-Type: multipart/mixed; boundary="b"\r\n'
    "\r\n"
    "--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße {id}\r\n"
    '--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename="r.pdf"\r\n\r\nPDF\r\n'
    "--b--\r\n"
)


def write(folder: Path, name: str, ident: str = "1") -> Path:
    path = folder / name
    path.write_bytes(MAIL.format(id=ident).encode())
    return path


def test_json_holds_the_record_of_each_file(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "mail.eml")
    done = cli("parse", "--json", "mail.eml")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    told = json.loads(line)
    (attachment,) = told.pop("attachments")
    assert told.pop("text_body").rstrip() == "Grüße 1"
    assert told == {
        "file": "mail.eml",
        "subject": "Rechnung € 42",
        "from_name": "Jürgen",
        "from_addr": "juergen@example.org",
        "to_addrs": [{"name": "", "addr": "ops@example.org"}],
        "cc_addrs": [],
        "sent_at": "2026-01-31T11:00:00Z",
        "message_id": "1@example.org",
        "html_body": None,
        "defects": [],
    }
    assert (attachment["filename"], attachment["content_type"], attachment["size_bytes"]) == (
        "r.pdf",
        "application/pdf",
        3,
    )


def test_a_file_that_cannot_be_read_is_told_in_its_place(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "a.eml", "1")
    write(tmp_path, "c.eml", "3")
    (tmp_path / "folder").mkdir()
    done = cli("parse", "--json", "a.eml", "none.eml", "folder", "c.eml")
    assert done.returncode == 1
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["file"] for line in told] == ["a.eml", "none.eml", "folder", "c.eml"]
    assert told[1] == {"file": "none.eml", "error": "No such file or directory"}
    assert told[2] == {"file": "folder", "error": "Is a directory"}
    assert "error" not in told[0] | told[3]


def test_many_files_come_in_their_order(cli: Cli, tmp_path: Path) -> None:
    names = [write(tmp_path, f"{number:03}.eml", str(number)).name for number in range(200)]
    names[100] = "none.eml"
    done = cli("parse", "--json", *names)
    assert (done.returncode, done.stderr) == (1, "")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["file"] for line in told] == names
    assert [index for index, line in enumerate(told) if "error" in line] == [100]
    assert told[199]["message_id"] == "199@example.org"


def test_a_mail_may_come_on_standard_input(cli: Cli) -> None:
    done = cli("parse", "--json", "-", stdin=MAIL.format(id="7").encode())
    assert json.loads(done.stdout)["message_id"] == "7@example.org"


def test_wrong_settings_do_not_matter(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "mail.eml")
    assert cli("parse", "mail.eml", NONSENSE="1").returncode == 0


def test_a_panel_shows_the_mail_to_people(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "mail.eml")
    done = cli("parse", "mail.eml", "none.eml")
    assert (done.returncode, done.stderr) == (1, "none.eml: No such file or directory\n")
    for text in (
        "mail.eml",
        "Rechnung € 42",
        "Jürgen <juergen@example.org>",
        "2026-01-31 11:00:00 UTC",
        "Grüße 1",
        "r.pdf",
        "3 bytes",
    ):
        assert text in done.stdout


def test_a_hostile_mail_cannot_act_on_the_terminal(cli: Cli, tmp_path: Path) -> None:
    hostile = "Subject: =?utf-8?q?=1B]0;owned=07[red]x=E2=80=AEgnp?=\r\n\r\n\x1b[2J\x9b31m[bold]body\r\n"
    (tmp_path / "mail.eml").write_bytes(hostile.encode())
    done = cli("parse", "mail.eml")
    assert not set(done.stdout) & set("\x1b\x07\x9b\u202e")
    assert "[red]x" in done.stdout
    assert "[bold]body" in done.stdout


def test_a_file_name_that_is_no_text_does_no_harm(cli: Cli, tmp_path: Path) -> None:
    name = os.fsdecode(b"m\xff.eml")
    write(tmp_path, name)
    assert json.loads(cli("parse", "--json", name).stdout)["file"] == name
    assert cli("parse", name).returncode == 0


def test_a_reader_that_goes_away_is_no_error_to_complain_about(tmp_path: Path) -> None:
    names = [str(write(tmp_path, f"{number}.eml")) for number in range(300)]
    with subprocess.Popen(
        [sys.executable, "-m", "ops_mail", "parse", "--json", *names],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1

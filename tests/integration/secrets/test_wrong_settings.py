"""Settings that are wrong, or stand in the wrong place: what is said about them repeats no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ops_mail.errors import ConfigError
from ops_mail.settings import load_settings
from tests.integration.secrets.outputs import ROOT
from tests.integration.secrets.spelling import leaks

SECRET = "Slip/Word+1=&%4B"
WORD = "hunter2hunter2"
LONG = f"{SECRET}\n{SECRET}"
MAILBOX = {"IMAP_HOST": "localhost", "IMAP_USERNAME": "ops", "IMAP_PASSWORD": SECRET}


def problems(env: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings({f"OPS_MAIL_{name}": value for name, value in env.items()}, env_file=None)
    return f"{caught.value}\n{caught.value!r}\n{caught.value.problems}\n{caught.value.__cause__!r}"


@pytest.mark.parametrize(
    "env",
    [
        {"DATABASE_URL": f"postgresql://user:{SECRET}@host/database"},
        {"DATABASE_URL": f"mysql://user:{SECRET}@host/database"},
        {"DATABASE_URL": f"mysql+aiomysql://user:{SECRET}@host:port/database"},
        {"DATABASE_URL": f"mysql+aiomysql://user:{SECRET}@host"},
        {"DATABASE_URL": SECRET},
        {"DATABASE_URL_FILE": "SECRET_FILE"},
        {"WEBHOOK_URL": f"ftp://user:{SECRET}@host", "HANDLER": "webhook"},
        {"WEBHOOK_URL": f"https://[{SECRET}", "HANDLER": "webhook"},
        {"WEBHOOK_SECRET": LONG},
        {"HTTP_TOKEN": SECRET[:12]},
        {"HTTP_TOKEN": LONG},
        {"IMAP_PASSWORD": LONG},
        {"IMAP_HOST": f"user:{SECRET}@host"},
        {"IMAP_USERNAME": LONG},
        {"IMAP_PORT": SECRET},
        {"IMAP_AUTH": SECRET},
        {"IMAP_START": SECRET},
        {"IMAP_AFTER_LANDING": f"moves:{SECRET}"},
        {"STORE_URL": f"s3://key:{SECRET}@bucket"},
        {"HANDLER": f"https://host/{SECRET}"},
        {"LOG_LEVEL": SECRET},
        {"ROLE": SECRET},
        {"ENABLED": SECRET},
        {"HTTP_PORT": SECRET},
        {"FORBIDDEN_TABLES": f"orders,{SECRET}"},
        {"ONLY": SECRET},
        {"UNKNOWN": SECRET},
        {"IMAP_PASWORD": SECRET},
    ],
)
def test_what_is_said_about_a_variable_repeats_no_secret(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"user:{SECRET}@host")
    given = {name: str(tmp_path / "secret") if value == "SECRET_FILE" else value for name, value in env.items()}
    assert leaks({"problems": problems(MAILBOX | given)}, [SECRET, SECRET[:12]]) == []


@pytest.mark.parametrize(
    "line",
    [
        f"password = {SECRET}",
        f'password = "{SECRET}',
        f'pasword = "{SECRET}"',
        f'password = ["{SECRET}"]',
        f'password = """{LONG}"""',
        f'password = "{SECRET}"\npassword = "{SECRET}"',
        f'password = "{SECRET}"\npassword_file = "{SECRET}"',
        f'port = "{SECRET}"\npassword = "x"',
        f'password = "\\q{SECRET}"',
    ],
)
def test_what_is_said_about_a_mailboxes_file_repeats_no_secret(line: str, tmp_path: Path) -> None:
    file = tmp_path / "mailboxes.toml"
    file.write_text(f'[[mailbox]]\nhost = "localhost"\nusername = "ops"\n{line}\n')
    assert leaks({"problems": problems({"MAILBOXES_FILE": str(file)})}, [SECRET]) == []


def test_the_command_ends_with_78_and_repeats_no_secret(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f'OPS_MAIL_WEBHOOK_SECRET="{SECRET}\nOPS_MAIL_HTTP_PORT={SECRET}\n')
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPS_MAIL_")}
    env |= {f"OPS_MAIL_{name}": value for name, value in MAILBOX.items()} | {"PYTHONPATH": str(ROOT)}
    env |= {"OPS_MAIL_IMAP_PASSWORD": WORD, "OPS_MAIL_LOG_LEVEL": WORD}  # the clipboard was pasted twice
    env |= {"OPS_MAIL_DATABASE_URL": f"mysql://user:{SECRET}@host/x"}
    done = subprocess.run([sys.executable, "-m", "ops_mail"], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == 78
    assert leaks({"output": (done.stdout + done.stderr).decode()}, [SECRET, WORD]) == []
    assert b"OPS_MAIL_LOG_LEVEL" in done.stderr

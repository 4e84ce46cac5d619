"""The image, run as in production against a real Dovecot and MariaDB: a line for each finding, the first fault ends it.

Run by deploy/image/try.sh.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.image.engines import Buildah, Container, Docker, engine
from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.process import free_port
from tests.servers.tables import Tables

GRACE_SECONDS = 10
WRITABLE = ("/tmp", "/var/lib/ops-mail", "/var/tmp", "/run/lock", "/dev", "/proc")
COMPILERS = "gcc cc c++ clang make cargo rustc"


def expect(fact: bool, what: str, explain: str = "") -> None:
    if not fact:
        raise SystemExit(f"not so: {what}\n{explain}")
    print(f"ok  {what}", flush=True)


def wait_until(look: Callable[[], Any], what: str, container: Container, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline or not container.running():
            expect(fact=False, what=what, explain=container.log())
        time.sleep(0.1)
    expect(fact=True, what=what)


def status_of(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def look_at(image: Docker | Buildah) -> None:
    """What can be told without running it."""
    config = image.config()
    expect(fact=True, what=f"the image has {image.megabytes()} MB")
    expect(re.fullmatch(r"[1-9]\d*:[1-9]\d*", config["User"]) is not None, f"its user is not root: {config['User']}")
    expect(config["Entrypoint"] == ["ops-mail"], "its entrypoint is in exec form")
    expect(config["Healthcheck"]["Test"][0] == "CMD", "it has a health check without a shell")


def wrong_settings(image: Docker | Buildah, secrets: Path) -> None:
    """A container without settings ends by itself."""
    container = image.start({}, secrets)
    deadline = time.monotonic() + 30
    while container.running() and time.monotonic() < deadline:
        time.sleep(0.1)
    code, log = container.stop(1), container.log()
    said = code == 78 and "OPS_MAIL_IMAP_HOST" in log
    expect(said, "without settings it says what is missing, exit code 78", f"{code}: {log}")


def whole_life(image: Docker | Buildah, dovecot: Dovecot, database: MariaDb, secrets: Path) -> None:
    """From the start to SIGTERM."""
    url = database.create_database()
    for name, text in (("imap", dovecot.password), ("database", url), ("ca.pem", dovecot.ca_file.read_text())):
        (secrets / name).write_text(text)
        (secrets / name).chmod(0o444)
    port = free_port()
    settings = {
        "OPS_MAIL_IMAP_HOST": "127.0.0.1",
        "OPS_MAIL_IMAP_PORT": str(dovecot.tls_port),
        "OPS_MAIL_IMAP_USERNAME": "ops",
        "OPS_MAIL_IMAP_PASSWORD_FILE": "/run/secrets/imap",
        "OPS_MAIL_IMAP_CA_FILE": "/run/secrets/ca.pem",
        "OPS_MAIL_DATABASE_URL_FILE": "/run/secrets/database",
        "OPS_MAIL_HTTP_PORT": str(port),
        "OPS_MAIL_SHUTDOWN_GRACE_SECONDS": str(GRACE_SECONDS),
    }
    dovecot.append("ops", "INBOX", b"Subject: large\r\n\r\n" + b"0123456789abcdef\r\n" * 200_000)
    container = image.start(settings, secrets)
    wait_until(lambda: status_of(port, "/healthz") == 200, "/healthz is 200", container)
    wait_until(lambda: container.health() == 0, "its own health check passes", container)
    wait_until(lambda: status_of(port, "/readyz") == 200, "/readyz is 200", container)
    tables = Tables(url)
    wait_until(lambda: tables.count() == 1, "a mail of 3.6 MB has landed", container)
    dovecot.append("ops", "INBOX", b"Subject: live\r\n\r\nbody\r\n")
    wait_until(lambda: tables.count() == 2, "a mail that arrives lands", container)
    look_inside(container)
    before = time.monotonic()
    code = container.stop(GRACE_SECONDS + 2)
    seconds = time.monotonic() - before
    expect(code == 0, f"SIGTERM ends PID 1 with exit code 0 after {seconds:.1f} s", container.log())
    expect(container.health() != 0, "its health check fails once it is gone")
    log = container.log()
    expect(dovecot.password not in log and url not in log, "no secret is in its log")
    expect("Traceback" not in log, "no traceback is in its log", log)


def look_inside(container: Container) -> None:
    """What the running process may do, and what lies around."""
    expect(container.shell(f"for name in {COMPILERS}; do command -v $name; done") == "", "no compiler is in it")
    command = container.shell("tr '\\0' ' ' < /proc/1/cmdline")
    expect("ops-mail run" in command, f"it is PID 1: {command.strip()}")
    uid = container.shell("id -u").strip()
    expect(uid not in ("", "0"), f"it runs as user {uid}")
    capabilities = re.search(r"CapEff:\s*(\w+)", container.shell("cat /proc/1/status"))
    expect(capabilities is not None and int(capabilities[1], 16) == 0, "it has no capabilities")
    refused = container.shell("touch /opt/ops-mail/x /var/lib/ops-mail/x 2>&1; true")
    expect(refused.count("Read-only file system") == 2, "its root file system is read-only", refused)
    writable = container.shell("find / -xdev -type d -writable 2>/dev/null").split()
    odd = [folder for folder in writable if not folder.startswith(WRITABLE)]
    expect(odd == [], "even if it were not, the program's files would be out of the process's reach", str(odd))


def main(name: str, image_name: str) -> None:
    """Everything in turn; what was started is ended and removed in any case."""
    image = engine(name, image_name)
    with tempfile.TemporaryDirectory(prefix="ops-mail-try-") as folder:
        secrets = Path(folder)
        secrets.chmod(0o755)
        try:
            look_at(image)
            wrong_settings(image, secrets)
            database = MariaDb()
            database.start()
            try:
                with Dovecot() as dovecot:
                    whole_life(image, dovecot, database, secrets)
            finally:
                database.stop()
        finally:
            image.remove()
    print("the image is fit to run")


if __name__ == "__main__":
    main(*sys.argv[1:3])

"""A real Dovecot in a temporary folder, on random ports of 127.0.0.1, as root or as a normal user."""

from __future__ import annotations

import contextlib
import datetime as dt
import getpass
import grp
import imaplib
import ipaddress
import os
import pwd
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.process import free_port

PASSWORD = "test-password"
START_ATTEMPTS = 5

_CONFIG = """
protocols = imap
base_dir = {root}/run
state_dir = {root}/run
log_path = {root}/dovecot.log
listen = 127.0.0.1
instance_name = ops-mail-test
ssl = yes
ssl_cert = <{root}/server.pem
ssl_key = <{root}/server.key
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_failure_delay = 0
mail_max_userip_connections = 200
# The default would tell idle clients "Still here" every two minutes and so hide half-open connections.
imap_idle_notify_interval = 29 mins
mail_location = {storage}:{root}/mail/%u
mail_fsync = never
first_valid_uid = 1
default_internal_user = {internal_user}
default_internal_group = {internal_group}
default_login_user = {login_user}
default_process_limit = 300
default_client_limit = 1000
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={mail_uid} gid={mail_gid} home={root}/mail/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
  # no waiting after wrong passwords: all tests come from one address
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  chroot =
}}
namespace inbox {{
  inbox = yes
  separator = /
}}
{extra}
"""


class Dovecot:
    """Start it with `start()` or as a context manager. Any user name may log in with `password`.

    `port` speaks plain IMAP and STARTTLS, `tls_port` TLS. The certificate is for localhost and 127.0.0.1, signed by the
    authority in `ca_file`. `extra` is added to the configuration; `storage` is mdbox (by far the
    fastest), sdbox or maildir.
    """

    def __init__(self, *, extra: str = "", storage: str = "mdbox") -> None:
        self.host = "127.0.0.1"
        self.port = 0
        self.tls_port = 0
        self.password = PASSWORD
        self.root = Path()
        self._extra = extra
        self._storage = storage
        self._process: subprocess.Popen[bytes] | None = None

    # --- life

    def start(self) -> Dovecot:
        """Starts on new random ports and waits until it greets."""
        self.root = Path(tempfile.mkdtemp(prefix="ops-mail-dovecot-"))
        self.root.chmod(0o755)
        (self.root / "mail").mkdir()
        self._write_certificates()
        for attempt in range(START_ATTEMPTS):
            self.port, self.tls_port = free_port(), free_port()
            self._write_config()
            self._launch()
            if self._wait_for_greeting():
                return self
            self._end(signal.SIGKILL)
            if attempt == START_ATTEMPTS - 1:
                raise RuntimeError(f"Dovecot did not start:\n{self.log()}")
        raise AssertionError

    def stop(self) -> None:
        """Ends it and removes its folder."""
        self._end(signal.SIGKILL)  # a second faster than SIGTERM, and nothing of it is kept
        if self.root != Path():  # never started: that is the current folder
            shutil.rmtree(self.root, ignore_errors=True)

    def kill(self) -> None:
        """Ends it at once, connections and all, as a crash would; `restart` brings it back with its mails."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Ends it if it runs and starts it again on the same ports, with the same mails."""
        for _ in range(START_ATTEMPTS):
            self._end(signal.SIGKILL)
            self._launch()
            if self._wait_for_greeting():
                return
            time.sleep(1)  # meanwhile somebody's outgoing connection may have been given the port
        raise RuntimeError(f"Dovecot did not start again:\n{self.log()[-4000:]}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def ca_file(self) -> Path:
        return self.root / "ca.pem"

    def log(self) -> str:
        """Dovecot's own log."""
        path = self.root / "dovecot.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # --- mails and folders, through IMAP as any other client would

    def append(
        self,
        user: str,
        folder: str,
        raw: bytes,
        date: dt.datetime | None = None,
        flags: Sequence[str] = (),
    ) -> int:
        """Stores one mail and returns its UID. `date` is the INTERNALDATE, aware."""
        with self.client(user) as client:
            when = imaplib.Time2Internaldate(date) if date is not None else ""
            kind, answer = client.append(_quoted(folder), " ".join(flags), when, _crlf(raw))
            return _append_uids(kind, answer)[0]

    def append_many(self, user: str, folder: str, raws: Iterable[bytes], chunk: int = 500) -> list[int]:
        """Stores many mails fast (MULTIAPPEND, a chunk a command) and returns their UIDs."""
        uids: list[int] = []
        with self.client(user) as client:
            batch: list[bytes] = []
            for raw in raws:
                batch.append(_crlf(raw))
                if len(batch) == chunk:
                    uids += _multiappend(client, folder, batch)
                    batch = []
            if batch:
                uids += _multiappend(client, folder, batch)
        return uids

    def create_folder(self, user: str, folder: str) -> None:
        """`folder` as it goes on the wire (modified UTF-7)."""
        with self.client(user) as client:
            _ok(*client.create(_quoted(folder)))

    def delete_folder(self, user: str, folder: str) -> None:
        """Deleting and creating again gives a new UIDVALIDITY."""
        with self.client(user) as client:
            _ok(*client.delete(_quoted(folder)))

    def expunge(self, user: str, folder: str, uids: Iterable[int]) -> None:
        """Removes mails for good."""
        with self.client(user) as client:
            _ok(*client.select(_quoted(folder)))
            joined = ",".join(map(str, uids))
            _ok(*client.uid("STORE", joined, "+FLAGS.SILENT", r"(\Deleted)"))
            _ok(*client.uid("EXPUNGE", joined))

    def set_flags(self, user: str, folder: str, uid: int, flags: Sequence[str]) -> None:
        """Replaces the flags of a mail."""
        with self.client(user) as client:
            _ok(*client.select(_quoted(folder)))
            _ok(*client.uid("STORE", str(uid), "FLAGS", f"({' '.join(flags)})"))

    def contents(self, user: str, folder: str) -> dict[int, tuple[bytes, tuple[str, ...]]]:
        """UID → (raw bytes, flags) of every mail in the folder; reading changes nothing."""
        found: dict[int, tuple[bytes, tuple[str, ...]]] = {}
        with self.client(user) as client:
            _ok(*client.select(_quoted(folder), readonly=True))
            kind, answer = client.uid("FETCH", "1:*", "(UID FLAGS BODY.PEEK[])")
            _ok(kind, answer)
            for item in answer:
                if not isinstance(item, tuple):
                    continue
                head = item[0].decode()
                uid = re.search(r"UID (\d+)", head)
                flags = re.search(r"FLAGS \(([^)]*)\)", head)
                assert uid is not None, head
                assert flags is not None, head
                found[int(uid[1])] = (item[1], tuple(flags[1].split()))
        return found

    @contextmanager
    def client(self, user: str) -> Iterator[imaplib.IMAP4]:
        """A synchronous client that is logged in."""
        client = imaplib.IMAP4(self.host, self.port, timeout=30)
        try:
            client.login(_quoted(user), self.password)
            yield client
        finally:
            try:
                client.logout()
            except (imaplib.IMAP4.error, OSError):
                client.shutdown()

    # --- inside

    def _write_config(self) -> None:
        is_root = os.geteuid() == 0
        me = getpass.getuser() if not is_root else ""
        nobody = pwd.getpwnam("nobody")
        uid, gid = (nobody.pw_uid, nobody.pw_gid) if is_root else (os.getuid(), os.getgid())
        if is_root:
            os.chown(self.root / "mail", uid, gid)
        (self.root / "dovecot.conf").write_text(
            _CONFIG.format(
                root=self.root, port=self.port, tls_port=self.tls_port, password=self.password,
                storage=self._storage, extra=self._extra, mail_uid=uid, mail_gid=gid,
                internal_user="dovecot" if is_root else me,
                internal_group="dovecot" if is_root else grp.getgrgid(os.getgid()).gr_name,
                login_user="dovenull" if is_root else me,
            )
        )  # fmt: skip

    def _launch(self) -> None:
        binary = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if binary is None:
            raise RuntimeError("the tests need Dovecot: apt-get install dovecot-imapd")
        with (self.root / "dovecot.log").open("ab") as log:
            self._process = subprocess.Popen(
                [binary, "-F", "-c", str(self.root / "dovecot.conf")],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _wait_for_greeting(self) -> bool:
        end = time.monotonic() + 15
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                return False
            try:
                with socket.create_connection((self.host, self.port), timeout=5) as sock:
                    if sock.recv(4) == b"* OK":
                        return True
            except OSError:
                time.sleep(0.01)
        return False

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if how is signal.SIGKILL:
            _kill_group(process.pid)
        else:
            process.send_signal(how)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            _kill_group(process.pid)
            process.wait(timeout=10)

    def _write_certificates(self) -> None:
        now = dt.datetime.now(dt.UTC)
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ops-mail test authority")])
        root_certificate = (
            x509.CertificateBuilder()
            .subject_name(authority).issuer_name(authority).public_key(authority_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_signing_usage(), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
            .sign(authority_key, hashes.SHA256())
        )  # fmt: skip
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])).issuer_name(authority)
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
            .add_extension(names, critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
            .sign(authority_key, hashes.SHA256())
        )  # fmt: skip
        self.ca_file.write_bytes(root_certificate.public_bytes(serialization.Encoding.PEM))
        (self.root / "server.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (self.root / "server.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    def client_context(self) -> ssl.SSLContext:
        """A context that trusts this server."""
        return ssl.create_default_context(cafile=str(self.ca_file))


def _signing_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _multiappend(client: imaplib.IMAP4, folder: str, raws: list[bytes]) -> list[int]:
    """RFC 3502 with non-synchronizing literals (RFC 7888): one round trip."""
    tag = client._new_tag()  # imaplib has no MULTIAPPEND
    pieces = [tag, b" APPEND ", _quoted(folder).encode()]
    for raw in raws:
        pieces += [b" {%d+}\r\n" % len(raw), raw]
    client.send(b"".join([*pieces, b"\r\n"]))
    while True:
        line = client.readline()
        if not line:
            raise RuntimeError("Dovecot closed the connection during APPEND")
        if line.startswith(tag):
            return _append_uids("OK" if b" OK " in line else "NO", [line])


def _append_uids(kind: str, answer: Sequence[object]) -> list[int]:
    _ok(kind, answer)
    found = re.search(rb"APPENDUID \d+ ([\d:,]+)", b" ".join(part for part in answer if isinstance(part, bytes)))
    assert found is not None, answer
    uids: list[int] = []
    for piece in found[1].decode().split(","):
        first, _, last = piece.partition(":")
        uids += range(int(first), int(last or first) + 1)
    return uids


def _ok(kind: str, answer: object) -> None:
    if kind != "OK":
        raise RuntimeError(f"Dovecot answered {kind}: {answer!r}")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _crlf(raw: bytes) -> bytes:
    """APPEND takes any bytes, but Dovecot stores lines with LF and gives CRLF: only CRLF comes back as it went in."""
    return re.sub(rb"\r?\n", b"\r\n", raw)


def _kill_group(pid: int) -> None:
    """Dovecot's processes, each by its number: the master started them, most of them in its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)  # it starts no further child while they are counted
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    for child in (pid, *map(int, children.stdout.split())):
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue

"""Two instances of the product on one mailbox, each behind proxies of its own, with real servers behind them."""

from __future__ import annotations

import asyncio
import hashlib
import imaplib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pymysql
import sqlalchemy as sa

from ops_mail.core.guardname import guard_name
from ops_mail.core.ids import FolderKey
from tests.faults.proxy import FaultProxy
from tests.servers.dovecot import Dovecot
from tests.servers.process import SqlServer
from tests.servers.product import OpsMail
from tests.servers.tables import Tables

USER = "chaos"
IDLE_SECONDS, COMMAND_SECONDS, BACKOFF_SECONDS, LEASE_SECONDS = 5, 3, 2, 4
SETTINGS: dict[str, object] = {
    "IDLE_SECONDS": IDLE_SECONDS,
    "POLL_SECONDS": IDLE_SECONDS,
    "COMMAND_TIMEOUT_SECONDS": COMMAND_SECONDS,
    "CONNECT_TIMEOUT_SECONDS": COMMAND_SECONDS,
    "BACKOFF_INITIAL_SECONDS": 0.1,
    "BACKOFF_MAX_SECONDS": BACKOFF_SECONDS,
    "LEASE_SECONDS": LEASE_SECONDS,
    "VERIFY_INTERVAL_SECONDS": 0,  # it would find and hide what was lost
    "LOG_LEVEL": "INFO",
    "IMAP_SECURITY": "plain",
    "IMAP_HOST": "127.0.0.1",
    "IMAP_USERNAME": USER,
}


@dataclass
class Instance:
    """One of the two: its proxies stay, its processes come and go."""

    letter: str
    folder: Path
    imap: FaultProxy
    database: FaultProxy
    settings: dict[str, object]
    lives: int = 0
    exit_codes: list[int] = field(default_factory=list)
    product: OpsMail | None = None

    @property
    def alive(self) -> OpsMail:
        assert self.product is not None
        return self.product

    def start(self) -> None:
        """A new process, with a log of its own; returns at once."""
        self.lives += 1
        self.product = OpsMail(self.folder, self.settings, name=f"{self.letter}{self.lives}").launch()

    def close(self) -> None:
        """Ends whatever process there is."""
        if self.product is not None:
            self.product.close()

    def terminate(self) -> None:
        """SIGTERM; the exit code is kept."""
        self.exit_codes.append(self.alive.terminate())


class World:
    """Everything of one run."""

    def __init__(self, dovecot: Dovecot, server: SqlServer, url: str, instances: Sequence[Instance]) -> None:
        self.dovecot = dovecot
        self.server = server
        self.instances = tuple(instances)
        self.tables = Tables(url)
        self._content: dict[int, str] = {}
        self._condemned: set[int] = set()
        self._database = sa.make_url(url).database

    def leader(self) -> Instance:
        """Who holds the cursor, as far as the table can be read; else the first."""
        with suppress(sa.exc.SQLAlchemyError):
            holder = str(self.tables.value("SELECT holder FROM ops_mail_cursor"))
            return next((one for one in self.instances if holder.startswith(one.letter)), self.instances[0])
        return self.instances[0]

    def standby(self) -> Instance:
        leader = self.leader()
        return next(one for one in self.instances if one is not leader)

    def append(self, raws: Sequence[bytes]) -> bool:
        """False when Dovecot was away; whether the mails are there all the same only the folder knows."""
        try:
            self.dovecot.append_many(USER, "INBOX", raws)
        except (imaplib.IMAP4.error, OSError, AssertionError, RuntimeError):
            return False
        return True

    def has_row(self, sha256: str) -> bool:
        """Has this content landed? False too while the database is away."""
        try:
            return bool(self.tables.value("SELECT COUNT(*) FROM ops_mail_message WHERE raw_sha256=:h", h=sha256))
        except sa.exc.SQLAlchemyError:
            return False

    def kill_lock_connection(self) -> None:
        """KILL, as an administrator would; nothing when nobody holds the lock."""
        name = guard_name(str(self._database), FolderKey(USER, "INBOX"))
        with suppress(pymysql.MySQLError):
            ((thread,),) = self.server.execute(f"SELECT IS_USED_LOCK('{name}')")
            if thread is not None:
                self.server.execute(f"KILL {thread}")

    def landed(self, newest: int) -> list[int]:
        """UIDs of the newest mails that have rows and that nobody tried to expunge; none while the database is away."""
        with suppress(sa.exc.SQLAlchemyError):
            select = "SELECT uid, raw_sha256 FROM ops_mail_message ORDER BY uid DESC LIMIT :n"
            rows = self.tables.rows(select, n=newest)
            self._content |= {int(row["uid"]): row["raw_sha256"] for row in rows}
            return [int(row["uid"]) for row in rows if int(row["uid"]) not in self._condemned]
        return []

    def expunge(self, uids: Sequence[int]) -> None:
        """By another client; may fail half-way when Dovecot goes away."""
        self._condemned.update(uids)
        with suppress(imaplib.IMAP4.error, OSError, AssertionError):
            self.dovecot.expunge(USER, "INBOX", uids)

    def set_flags(self, uids: Sequence[int]) -> None:
        """By another client: read and flagged."""
        with suppress(imaplib.IMAP4.error, OSError, AssertionError):
            for uid in uids:
                self.dovecot.set_flags(USER, "INBOX", uid, [r"\Seen", r"\Flagged"])

    def expected(self) -> Counter[str]:
        """Every content that was ever there: the folder as the server has it, and what was expunged after it landed."""
        contents = self.dovecot.contents(USER, "INBOX")
        there = Counter(hashlib.sha256(raw).hexdigest() for raw, _ in contents.values())
        return there + Counter(self._content[uid] for uid in self._condemned if uid not in contents)


@asynccontextmanager
async def world(folder: Path, server: SqlServer) -> AsyncIterator[World]:
    """Servers, proxies and both processes; everything is gone afterwards but the logs in `folder`."""
    async with AsyncExitStack() as stack:
        dovecot = stack.enter_context(Dovecot())
        stack.callback(server.stop)
        await asyncio.to_thread(server.start)
        url = server.create_database()
        instances = []
        for letter in "ab":
            imap = await stack.enter_async_context(FaultProxy(("127.0.0.1", dovecot.port)))
            database = await stack.enter_async_context(FaultProxy(("127.0.0.1", server.port), lines=False))
            through = sa.make_url(url).set(port=database.port).render_as_string(hide_password=False)
            settings = SETTINGS | {"IMAP_PORT": imap.port, "IMAP_PASSWORD": dovecot.password, "DATABASE_URL": through}
            instances.append(Instance(letter, folder, imap, database, settings))
        for instance in instances:
            instance.start()
            stack.callback(instance.close)
        yield World(dovecot, server, url, instances)

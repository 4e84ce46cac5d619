"""A process of its own that migrates: `python -m tests.integration.store.migrating URL`; prints what it applied."""

from __future__ import annotations

import asyncio
import sys

from ops_mail.store import open_store


async def main(url: str) -> None:
    """Waits for its start signal, a line on standard input, so that several begin together."""
    store = open_store(url, lease_seconds=5)
    print("ready", flush=True)
    sys.stdin.readline()
    print(",".join(await store.migrate()) or "nothing", flush=True)
    await store.close(2)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

"""A process of its own that holds a folder: `python -m tests.integration.store.holder URL LEASE`."""

from __future__ import annotations

import asyncio
import sys

from ops_mail.errors import Fenced, GuardLost, StoreUnavailable
from ops_mail.store import CursorReport, Guard, open_store
from tests.integration.store.samples import KEY


async def main(url: str, lease_seconds: float) -> None:
    """Prints `held` or `refused`, later the name of the error that ended it."""
    store = open_store(url, lease_seconds=lease_seconds)
    guard = Guard(store, "frozen:1:x", lease_seconds)
    lease = await guard.try_acquire(KEY)
    print("held" if lease else "refused", flush=True)
    while lease is not None:
        await asyncio.sleep(lease_seconds / 3)
        try:
            await store.heartbeat(lease, CursorReport("idling"))
            await guard.verify(lease)
        except (Fenced, GuardLost) as error:
            print(type(error).__name__, flush=True)
            break
        except StoreUnavailable as error:
            print(error, flush=True)
    await guard.close()
    await store.close(1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))

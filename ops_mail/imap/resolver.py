"""Names into addresses, without ever holding up the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from typing import Any

Address = tuple[Any, ...]  # what getaddrinfo gives: (family, type, protocol, name, socket address)


async def addresses_of(host: str, port: int) -> Sequence[Address]:
    """The addresses of the host. Raises OSError or UnicodeError (a name that IDNA cannot hold).

    Looked up in a daemon thread: a resolver that hangs must not hold up the exit of the process, as it would in the
    loop's own pool, which is joined (promise P7).
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[Address]] = loop.create_future()

    def settle(addresses: Sequence[Address], error: Exception | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

    def look_up() -> None:
        addresses: Sequence[Address] = ()
        failed: Exception | None = None
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(settle, addresses, failed)

    threading.Thread(target=look_up, name="ops-mail-resolve", daemon=True).start()
    return await found

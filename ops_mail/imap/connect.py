"""From host and port to a connection that has greeted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from ops_mail.core.mailbox import Security
from ops_mail.errors import Failure, ImapError
from ops_mail.imap.options import SessionOptions
from ops_mail.imap.protocol import ConnectionFailed, SessionProtocol
from ops_mail.imap.resolver import Address, addresses_of
from ops_mail.imap.tls import handshake_error, tls_context


async def connect(options: SessionOptions) -> SessionProtocol:
    """Name, TCP, TLS (when it is due from the first byte) and the greeting, all within the connect timeout.

    The greeting waits in `protocol.greeting`. Raises ImapError; nothing is left open then.
    """
    loop = asyncio.get_running_loop()
    protocol = SessionProtocol(loop)
    steps = _Steps()
    try:
        async with asyncio.timeout(options.connect_timeout_seconds):
            context = await tls_context(options) if options.security is Security.TLS else None
            steps.now = "the name lookup"
            addresses = await _resolve(options)
            steps.now = "the TCP connection"
            sock = await _dial(options, addresses)
            steps.now = "the TLS handshake" if context else "the connection"
            try:
                await loop.create_connection(
                    lambda: protocol, sock=sock, ssl=context,
                    server_hostname=options.host if context else None,
                    ssl_handshake_timeout=options.connect_timeout_seconds if context else None,
                )  # fmt: skip
            except OSError as error:
                raise handshake_error(options, error) from None
            steps.now = "the greeting"
            await asyncio.shield(protocol.greeting)
    except TimeoutError:
        protocol.fail(Failure.UNREACHABLE, "connect timeout")
        raise ImapError(
            Failure.UNREACHABLE,
            f"{options.address} was not there within {options.connect_timeout_seconds:g} s "
            f"({steps.now} did not finish): "
            f"check {options.source.names('host', 'port', 'security', also='the firewall')}",
        ) from None
    except BaseException:
        protocol.fail(Failure.LOST, "the connection was given up")
        raise
    if protocol.failure is not None:
        raise _early_end(options, protocol.failure)
    return protocol


class _Steps:
    now = "the start"


def _early_end(options: SessionOptions, error: ConnectionFailed) -> ImapError:
    hint = f"check {options.source.names('host', 'port', 'security')}"
    return ImapError(error.failure, f"{options.address}: {error.text} instead of greeting: {hint}")


async def _resolve(options: SessionOptions) -> Sequence[Address]:
    """The addresses of the host; raises ImapError."""
    try:
        return await addresses_of(options.host, options.port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        advice = f"check {options.source.names('host', also='the DNS of this machine')}"
        raise ImapError(
            Failure.UNREACHABLE, f"the name {options.host} cannot be resolved ({reason}): {advice}"
        ) from None


async def _dial(options: SessionOptions, addresses: Sequence[Address]) -> socket.socket:
    """A connected socket: the addresses in order, none of them longer than its share of the time that is left."""
    loop = asyncio.get_running_loop()
    end = loop.time() + options.connect_timeout_seconds
    reasons: list[str] = []
    for index, (family, kind, number, _, target) in enumerate(addresses):
        sock = socket.socket(family, kind, number)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            async with asyncio.timeout((end - loop.time()) / (len(addresses) - index) * 0.95):
                await loop.sock_connect(sock, target)
            return sock
        except TimeoutError:
            sock.close()
            reasons.append(f"{target[0]}: no answer")
        except OSError as error:
            sock.close()
            reasons.append(f"{target[0]}: {error.strerror or error}")
        except BaseException:
            sock.close()
            raise
    raise ImapError(
        Failure.UNREACHABLE,
        f"no connection to {options.address} ({'; '.join(reasons)}): "
        f"check {options.source.names('host', 'port', also='the firewall')}",
    )

"""Keeps requests away from private addresses where that is wanted: looked up and connected to in one step."""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

_TRANSLATED = tuple(ipaddress.IPv6Network(one) for one in ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96"))


class PrivateAddressError(OSError):
    """The receiver has no public address."""


def is_private(address: str) -> bool:
    """Loopback, private, link-local (a cloud's metadata service), multicast and everything else that is not global."""
    parsed = ipaddress.ip_address(address.split("%", 1)[0])
    return any(not one.is_global or one.is_multicast for one in (parsed, *_inside(parsed)))


def _inside(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 address that a translator or tunnel on the way would make of it; none for most."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [one for one in (address.ipv4_mapped, address.sixtofour) if one is not None]
    if any(address in network for network in _TRANSLATED):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return found


def refuse_private_literal(url: str) -> None:
    """Raises PrivateAddressError when the URL's host is such an address itself: those are never looked up."""
    host = URL(url).host or ""  # as the client reads it: other scripts' digits and full stops are digits and full stops
    try:
        private = is_private(host)
    except ValueError:
        private = host.replace(".", "").isdecimal()  # 127.1 or 2130706433: an address in short, never a name
    if private:
        raise PrivateAddressError(f"{host} is not a public address (OPS_MAIL_WEBHOOK_BLOCK_PRIVATE)")


class PublicResolver(AbstractResolver):
    """Gives public addresses alone, so that a name cannot be made to point inside between a check and its use."""

    def __init__(self) -> None:
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises PrivateAddressError when nothing is left."""
        found = await self._resolver.resolve(host, port, family)
        public = [one for one in found if not is_private(one["host"])]
        if not public:
            raise PrivateAddressError(f"{host} has no public address (OPS_MAIL_WEBHOOK_BLOCK_PRIVATE)")
        return public

    async def close(self) -> None:
        """Nothing is held."""
        await self._resolver.close()

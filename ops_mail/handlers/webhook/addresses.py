"""Keeps requests away from private addresses where that is wanted: looked up and connected to in one step."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver


class PrivateAddressError(OSError):
    """The receiver has no public address."""


def is_private(address: str) -> bool:
    """Loopback, private, link-local (a cloud's metadata service), multicast and everything else that is not global."""
    parsed = ipaddress.ip_address(address.split("%", 1)[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return not (mapped or parsed).is_global or (mapped or parsed).is_multicast


def refuse_private_literal(url: str) -> None:
    """Raises PrivateAddressError when the URL's host is such an address itself: those are never looked up."""
    host = urlsplit(url).hostname or ""
    try:
        private = is_private(host)
    except ValueError:
        return  # a name
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

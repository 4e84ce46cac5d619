"""The name and the port of a mailbox's server, before anything of IMAP is spoken."""

from __future__ import annotations

import asyncio
import os
import time

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.imap import addresses_of
from ops_mail.settings import MailboxSettings

DNS, TCP = "dns", "tcp"


async def look_up(mailbox: MailboxSettings, group: str, limit_seconds: float) -> tuple[list[str], Row]:
    """The addresses of the host, none when it has none."""
    advice = f"check {mailbox.source.names('host', also='the DNS of this machine')}"
    try:
        async with asyncio.timeout(limit_seconds):
            found = await addresses_of(mailbox.host, mailbox.port)
    except TimeoutError:
        return [], Row(group, DNS, Verdict.FAIL, f"{mailbox.host}: no answer within {limit_seconds:g} s", advice)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return [], Row(group, DNS, Verdict.FAIL, f"{mailbox.host}: {reason}", advice)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    return addresses, Row(group, DNS, Verdict.OK, f"{mailbox.host} is {', '.join(addresses)}")


async def dial(addresses: list[str], mailbox: MailboxSettings, group: str, limit_seconds: float) -> Row:
    """Whether any of the addresses accepts a connection; it is closed at once."""
    reasons: list[str] = []
    for address in addresses:
        began = time.monotonic()
        try:
            async with asyncio.timeout(limit_seconds / len(addresses)):
                _, writer = await asyncio.open_connection(address, mailbox.port)
        except TimeoutError:
            reasons.append(f"{address}: no answer")
        except OSError as error:
            reasons.append(f"{address}: {os.strerror(error.errno) if error.errno else error}")
        else:
            writer.transport.abort()
            milliseconds = (time.monotonic() - began) * 1000
            return Row(group, TCP, Verdict.OK, f"{address} port {mailbox.port}, {milliseconds:.0f} ms")
    advice = f"check {mailbox.source.names('host', 'port', also='the firewall')}"
    return Row(group, TCP, Verdict.FAIL, f"port {mailbox.port} of {'; '.join(reasons)}", advice)

"""From the greeting to a session that is logged in: STARTTLS, the login itself, CAPABILITY, ID."""

from __future__ import annotations

import asyncio
import base64
import re

import structlog

from ops_mail.core.mailbox import AuthMethod, Security
from ops_mail.core.providers import NETEASE, provider_for
from ops_mail.errors import Failure, ImapError
from ops_mail.imap.channel import Channel, Reply
from ops_mail.imap.names import quoted
from ops_mail.imap.options import SessionOptions
from ops_mail.imap.protocol import AUTH, NONAUTH
from ops_mail.imap.tls import handshake_error, tls_context

log = structlog.get_logger("ops_mail.imap")

_GREETING = re.compile(rb"\* (OK|PREAUTH|BYE)\b *(.*)", re.IGNORECASE | re.DOTALL)
_CAPABILITIES = re.compile(rb"\[CAPABILITY ([^\]]*)\]", re.IGNORECASE)


async def log_in(channel: Channel, options: SessionOptions) -> frozenset[str]:
    """Everything up to a usable login; the capabilities the server has after it. Raises ImapError."""
    authenticated, capabilities = _greeting(channel)
    if options.security is Security.STARTTLS:
        if authenticated:  # a login before TLS cannot be undone: RFC 3501 section 11.1 allows no STARTTLS now
            raise _give_up(channel, Failure.TLS, f"{options.address} is logged in before TLS (PREAUTH): refused")
        await _start_tls(channel, options)
        capabilities = None  # what was said in plain text must be forgotten (RFC 3501 section 6.2.1)
    if not authenticated:
        await _authenticate(channel, options, capabilities or await _ask_capabilities(channel))
        channel.protocol.state = AUTH
    after = await _ask_capabilities(channel)
    if "ID" in after:
        await _identify(channel, options)
    return after


def _greeting(channel: Channel) -> tuple[bool, frozenset[str] | None]:
    line = channel.protocol.greeting.result()
    found = _GREETING.match(line)
    if found is None:
        raise channel.broken(f"{channel.address} greeted with something else than IMAP: {channel.shown(line)}")
    kind = found.group(1).upper()
    if kind == b"BYE":
        text = channel.shown(found.group(2))
        raise _give_up(channel, Failure.BYE, f"{channel.address} refused the connection: {text}")
    channel.protocol.state = AUTH if kind == b"PREAUTH" else NONAUTH
    announced = _CAPABILITIES.search(line)
    return kind == b"PREAUTH", _as_set(announced.group(1)) if announced else None


async def _start_tls(channel: Channel, options: SessionOptions) -> None:
    context = await tls_context(options)
    reply = await channel.run("STARTTLS")
    if not reply.ok:
        raise _give_up(
            channel, Failure.TLS,
            f"{options.address} does not offer STARTTLS ({reply.text}): set {options.source.names('security')} to tls, "
            "with the port for it",
        )  # fmt: skip
    protocol = channel.protocol
    try:
        async with asyncio.timeout(options.connect_timeout_seconds):
            protocol.transport = await protocol.loop.start_tls(
                protocol.transport, protocol, context, server_hostname=options.host,
                ssl_handshake_timeout=options.connect_timeout_seconds,
            )  # fmt: skip
    except TimeoutError:
        message = f"the TLS handshake with {options.address} did not finish in time"
        raise _give_up(channel, Failure.TLS, message) from None
    except OSError as error:
        channel.abort(Failure.TLS, "the TLS handshake failed")
        raise handshake_error(options, error) from None
    except BaseException:
        channel.abort()
        raise
    if protocol.transport is None:  # closed while the handshake ended
        raise _give_up(channel, Failure.TLS, f"{options.address} closed the connection during the TLS handshake")
    protocol.upgrading = False
    channel.raise_if_failed()


async def _ask_capabilities(channel: Channel) -> frozenset[str]:
    reply = await channel.must("CAPABILITY", what="CAPABILITY")
    lines = [r.first[13:] for r in reply.responses if r.first[:13].upper() == b"* CAPABILITY "]
    if not lines:
        raise channel.broken(f"{channel.address} answered CAPABILITY without telling any")
    return _as_set(b" ".join(lines))


def _as_set(line: bytes) -> frozenset[str]:
    return frozenset(line.decode("ascii", "replace").upper().split())


async def _authenticate(channel: Channel, options: SessionOptions, capabilities: frozenset[str]) -> None:
    if not _can_be_sent(options.username):
        where = options.source.names("username")
        message = f"the user name {options.username!r} holds a line break or is no UTF-8: check {where}"
        raise _give_up(channel, Failure.AUTH, message)
    secret = await _read_secret(channel, options)
    channel.keep_secret(secret)
    if options.auth is AuthMethod.OAUTH2:
        reply = await _send_token(channel, options, capabilities, secret)
    elif "LOGINDISABLED" in capabilities and "AUTH=PLAIN" not in capabilities:
        raise _give_up(
            channel, Failure.AUTH,
            f"{options.address} allows no password login on this connection (LOGINDISABLED): "
            f"set {options.source.names('security')} to tls or starttls, or {options.source.names('auth')} to oauth2",
        )  # fmt: skip
    else:
        reply = await _send_password(channel, options, capabilities, secret)
    if reply.ok:
        return
    if _is_passing(reply):
        raise _give_up(channel, Failure.PROTOCOL, f"{options.address} cannot check logins now: {reply.text}")
    if options.auth is AuthMethod.OAUTH2:
        settings = f"{options.source.names('username', 'password')} (is the access token still valid?)"
    else:
        settings = f"{options.source.names('username', 'password')} (many providers want an app password)"
    message = f"{options.address} refused the login of {options.username}: {reply.text.rstrip('.')}: check {settings}"
    raise _give_up(channel, Failure.AUTH, message)


def _is_passing(reply: Reply) -> bool:
    """True when the password may well be right: the server's own trouble (RFC 5530), or Gmail's connection limit."""
    return any(map(reply.has_code, ("UNAVAILABLE", "SERVERBUG", "INUSE", "LIMIT"))) or "too many" in reply.text.lower()


async def _read_secret(channel: Channel, options: SessionOptions) -> str:
    try:
        secret = await asyncio.to_thread(options.read_password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__  # a ValueError's text might show the secret
        where = options.source.names("password")
        message = f"the password of {options.username} cannot be read ({reason}): check {where}"
        raise _give_up(channel, Failure.AUTH, message) from None
    except BaseException:
        channel.abort()
        raise
    if not secret or not _can_be_sent(secret):
        raise _give_up(
            channel, Failure.AUTH,
            f"the password of {options.username!r} is empty, holds a line break or is no UTF-8: "
            f"check {options.source.names('password')}",
        )  # fmt: skip
    return secret


def _can_be_sent(text: str) -> bool:
    """False for a line break, and for what the environment held in another encoding than UTF-8 (lone surrogates)."""
    return not any(character in "\0\r\n" or "\ud800" <= character <= "\udfff" for character in text)


async def _send_password(channel: Channel, options: SessionOptions, capabilities: frozenset[str], secret: str) -> Reply:
    is_ascii = secret.isascii() and options.username.isascii()
    if "AUTH=PLAIN" in capabilities and ("LOGINDISABLED" in capabilities or not is_ascii):
        return await _sasl(channel, "PLAIN", f"\0{options.username}\0{secret}".encode(), capabilities)
    return await channel.run("LOGIN", quoted(options.username), quoted(secret))


async def _send_token(channel: Channel, options: SessionOptions, capabilities: frozenset[str], token: str) -> Reply:
    if "AUTH=OAUTHBEARER" in capabilities and "AUTH=XOAUTH2" not in capabilities:  # RFC 7628
        text = f"n,a={options.username},\1host={options.host}\1port={options.port}\1auth=Bearer {token}\1\1"
        return await _sasl(channel, "OAUTHBEARER", text.encode(), capabilities)
    return await _sasl(channel, "XOAUTH2", f"user={options.username}\1auth=Bearer {token}\1\1".encode(), capabilities)


async def _sasl(channel: Channel, mechanism: str, response: bytes, capabilities: frozenset[str]) -> Reply:
    coded = base64.b64encode(response).decode("ascii")
    channel.keep_secret(coded)
    if "SASL-IR" in capabilities:  # RFC 4959: the first answer goes with the command
        return await channel.run("AUTHENTICATE", mechanism, coded)
    return await channel.run("AUTHENTICATE", mechanism, answers=[coded.encode()])


async def _identify(channel: Channel, options: SessionOptions) -> None:
    """ID (RFC 2971). NetEase refuses SELECT before it, in exactly this form: no space inside the parentheses."""
    pairs = " ".join(f"{quoted(name)} {quoted(value)}" for name, value in options.client_id.items())
    reply = await channel.run("ID", f"({pairs})" if pairs else "NIL")
    if not reply.ok:  # nobody else depends on it
        level = log.warning if provider_for(options.host, frozenset()) is NETEASE else log.info
        level("imap_id_refused", address=options.address, answer=reply.text)


def _give_up(channel: Channel, failure: Failure, message: str) -> ImapError:
    channel.abort(failure, message)
    return ImapError(failure, message)

"""TLS contexts, and what a failed handshake means in words."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from ops_mail.errors import Failure, ImapError
from ops_mail.imap.options import SessionOptions

# X509_V_ERR_* of OpenSSL
_EXPIRED, _NOT_YET_VALID = 10, 9
_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN, _NO_ISSUER, _NO_ISSUER_LOCAL = 18, 19, 20, 21
_HOST_MISMATCH, _IP_MISMATCH = 62, 64
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


async def tls_context(options: SessionOptions) -> ssl.SSLContext:
    """A verifying context. Built in a thread: reading the system's authorities takes tens of milliseconds."""
    ca_file = options.ca_file
    try:
        return await asyncio.to_thread(_context, ca_file)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ImapError(
            Failure.TLS,
            f"the certificate authorities in {ca_file} cannot be read ({_reason(error)}): "
            f"check {options.source.names('ca_file')}",
        ) from None


def _context(ca_file: Path | None) -> ssl.SSLContext:
    if ca_file is None:
        return _cached_context(None, 0)
    return _cached_context(ca_file, ca_file.stat().st_mtime_ns)


@lru_cache(maxsize=16)  # about 300 KB each; a changed file is a new key
def _cached_context(ca_file: Path | None, changed_ns: int) -> ssl.SSLContext:  # noqa: ARG001  # part of the key
    if ca_file is None:
        return ssl.create_default_context()
    context = ssl.create_default_context(cafile=str(ca_file))
    # From Python 3.13 on the default also wants what RFC 5280 asks of public authorities. In-house ones often lack it
    # (an authority key identifier, for one), and a newer Python must not end a connection that was trusted before.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def handshake_error(options: SessionOptions, error: OSError) -> ImapError:
    """The ImapError for a handshake that failed."""
    where, source = options.address, options.source
    if isinstance(error, ssl.SSLCertVerificationError):
        return ImapError(Failure.TLS, _certificate_text(options, error))
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        return ImapError(
            Failure.TLS,
            f"{where} does not speak TLS: check {source.names('port')}, or set {source.names('security')} to starttls",
        )
    return ImapError(
        Failure.TLS,
        f"the TLS handshake with {where} failed ({_reason(error)}): check {source.names('port', 'security')}",
    )


def _certificate_text(options: SessionOptions, error: ssl.SSLCertVerificationError) -> str:
    start, authority = f"the certificate of {options.address}", options.source.names("ca_file")
    code = error.verify_code
    if code == _EXPIRED:
        return f"{start} has expired: the server needs a new one (or this machine's clock is wrong)"
    if code == _NOT_YET_VALID:
        return f"{start} is not valid yet: is this machine's clock right?"
    if code in (_SELF_SIGNED, _SELF_SIGNED_IN_CHAIN):
        return f"{start} is self-signed, or its authority is unknown here: name that in {authority}"
    if code in (_NO_ISSUER, _NO_ISSUER_LOCAL):
        return f"{start} is signed by an authority unknown here: name it in {authority}"
    if code in (_HOST_MISMATCH, _IP_MISMATCH):
        return f"{start} is not made out to {options.host} (host name mismatch): check {options.source.names('host')}"
    return f"{start} was not accepted ({error.verify_message}): check {authority}"


def expiry(certificate: object) -> datetime | None:
    """When a peer certificate (`getpeercert()`) ends, UTC; None when that is unknown."""
    not_after = certificate.get("notAfter") if isinstance(certificate, dict) else None
    if not isinstance(not_after, str):
        return None
    try:
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(not_after), UTC)
    except ValueError:
        return None


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

"""STORE_URL=s3://bucket/prefix: each object in a bucket, through the extra `ops-mail[s3]` (obstore).

Region, endpoint and credentials come from where AWS's own tools find them: AWS_REGION, AWS_ENDPOINT_URL,
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, a web identity or the machine's role.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ops_mail.errors import ConfigError, StoreUnavailable
from ops_mail.settings import register_secret
from ops_mail.store.blobs_external import ObjectAbsent

_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Never logged by anything here; a handler that is given the same environment might."""
_PIECE_BYTES = 256 * 1024
_TIMEOUT = timedelta(seconds=60)


class S3Objects:
    """As `Objects`. Raises ConfigError when obstore is not installed or does not accept the settings."""

    def __init__(self, url: str) -> None:
        try:
            import obstore  # noqa: PLC0415 - an extra, imported only where it is wanted
            from obstore import exceptions, store  # noqa: PLC0415 - as above
        except ImportError as error:
            raise ConfigError(["OPS_MAIL_STORE_URL: s3:// needs the extra: pip install 'ops-mail[s3]'"]) from error
        for name in _SECRETS:
            register_secret(os.environ.get(name, ""))
        parts = urlsplit(url)
        try:
            self._store: Any = store.S3Store(
                parts.netloc,
                prefix=parts.path.strip("/") or None,
                client_options={"timeout": _TIMEOUT, "allow_http": _plain_endpoint()},
            )
        except exceptions.BaseError as error:
            raise ConfigError([f"OPS_MAIL_STORE_URL: {parts.netloc}: {_told(error)}"]) from error
        self._obstore: Any = obstore
        self._error: type[Exception] = exceptions.BaseError
        self._absent: tuple[type[Exception], ...] = (exceptions.NotFoundError, FileNotFoundError)

    async def write(self, name: str, content: Sequence[bytes] | Path) -> None:
        """As Objects.write. Large content is uploaded in parts by obstore; an upload that fails leaves no object."""
        data = content if isinstance(content, Path) else b"".join(content)
        try:
            await self._obstore.put_async(self._store, name, data)
        except (self._error, OSError) as error:
            raise StoreUnavailable(f"writing {name}: {_told(error)}") from error

    async def exists(self, name: str) -> bool:
        """As Objects.exists."""
        try:
            await self._obstore.head_async(self._store, name)
        except self._absent:
            return False
        except (self._error, OSError) as error:
            raise StoreUnavailable(f"looking for {name}: {_told(error)}") from error
        return True

    async def read(self, name: str) -> AsyncIterator[bytes]:
        """As Objects.read."""
        try:
            answer = await self._obstore.get_async(self._store, name)
            async for piece in answer.stream(min_chunk_size=_PIECE_BYTES):
                yield bytes(piece)
        except self._absent as error:
            raise ObjectAbsent(f"reading {name}: there is no such object in the bucket") from error
        except (self._error, OSError) as error:
            raise StoreUnavailable(f"reading {name}: {_told(error)}") from error

    async def delete(self, name: str) -> None:
        """As Objects.delete."""
        try:
            await self._obstore.delete_async(self._store, name)
        except self._absent:
            return
        except (self._error, OSError) as error:
            raise StoreUnavailable(f"deleting {name}: {_told(error)}") from error

    async def names_older_than(self, seconds: float) -> AsyncIterator[str]:
        """As Objects.names_older_than."""
        before = datetime.now(UTC) - timedelta(seconds=seconds)
        try:
            async for page in self._obstore.list(self._store):
                for one in page:
                    if one["last_modified"] < before:
                        yield one["path"]
        except (self._error, OSError) as error:
            raise StoreUnavailable(f"listing the bucket: {_told(error)}") from error


def _plain_endpoint() -> bool:
    """Whether the endpoint that the environment names is one without TLS, as on a private network."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
    return endpoint.startswith("http://")


def _told(error: BaseException) -> str:
    """The first line; what follows are details of the library."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}" if text else type(error).__name__

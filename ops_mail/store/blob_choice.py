"""Where contents are kept, by STORE_URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ops_mail.errors import ConfigError, StoreError
from ops_mail.store.blob_removal import Delete, FormerPlaceError
from ops_mail.store.blobs_external import ExternalBlobs, Objects, object_name
from ops_mail.store.blobs_file import FileObjects
from ops_mail.store.blobs_s3 import S3Objects
from ops_mail.store.store import Store


def keep_contents_in(store: Store, store_url: str) -> None:
    """From now on `store` keeps contents there. Raises ConfigError for a place that cannot be used."""
    objects = objects_of(store_url)
    if objects is not None:
        store.blobs = ExternalBlobs(store.database, objects, store_url)


def objects_of(store_url: str) -> Objects | None:
    """None for `db:`."""
    if store_url.startswith("file:"):
        return FileObjects(Path(unquote(urlsplit(store_url).path)))
    return S3Objects(store_url) if store_url.startswith("s3:") else None


def delete_of(store: Store) -> Delete:
    """How an object is deleted from the place where it is kept: where STORE_URL leads, or where it led before.

    The one that is returned raises FormerPlaceError when a place of before cannot be reached.
    """
    here = store.blobs if isinstance(store.blobs, ExternalBlobs) else None

    async def delete(sha256: str, encoding: str, place: str | None) -> None:
        if here is not None:
            await here.delete_object(sha256, encoding)
        if place is None or (here is not None and here.place == place):
            return  # kept here, or in the tables, whose rows the caller deletes
        await _delete_from_former(place, object_name(sha256, encoding))

    return delete


async def _delete_from_former(place: str, name: str) -> None:
    try:
        former = objects_of(place)
        if former is None or (isinstance(former, FileObjects) and not await former.is_there()):
            raise FormerPlaceError(f"{place}: there is no such place on this machine")
        await former.delete(name)
    except (ConfigError, StoreError) as error:
        raise FormerPlaceError(f"{place}: {error}") from error

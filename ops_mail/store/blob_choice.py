"""Where contents are kept, by STORE_URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ops_mail.store.blob_removal import Delete
from ops_mail.store.blobs_external import ExternalBlobs, Objects
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


def delete_of(store: Store) -> Delete | None:
    """How an object of this store is deleted; None when contents are in the database."""
    return store.blobs.delete_object if isinstance(store.blobs, ExternalBlobs) else None

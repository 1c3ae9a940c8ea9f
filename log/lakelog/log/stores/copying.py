"""Copies of objects from one store to another: by the server where one server has both, else through this process."""

from lakelog.log.stores.s3_store import S3Store
from lakelog.log.stores.store import ObjectStore


def is_copied_by_server(source: ObjectStore, target: ObjectStore) -> bool:
    """Return whether a copy needs neither memory nor a connection's bandwidth here."""
    return isinstance(source, S3Store) and isinstance(target, S3Store) and source.address == target.address


def copy_object(source: ObjectStore, key: str, target: ObjectStore, to: str) -> None:
    """Create or replace the object `to` with the content of `key`, entirely, durably. NotFound.

    Costs two requests where the server copies (more above 5 GB); else the object's size in memory.
    """
    if isinstance(source, S3Store) and isinstance(target, S3Store) and is_copied_by_server(source, target):
        target.copy_from(source, key, to)
        return
    with source.open_input(key) as opened:
        target.put(to, opened.read())

"""Deletion vectors in a store: written before the commit that refers to them, and read by range.

Their bytes and checks belong to `files.deletion_vectors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from lakelog.catalog.core.files.data_file import is_elsewhere
from lakelog.catalog.core.files.deletion_vectors import (
    DeletionVector,
    decoded_vector,
    inline_bytes,
    packed_vectors,
)
from lakelog.log import ObjectStore, WriteRef
from lakelog.log.errors import FormatError, NotFound

if TYPE_CHECKING:
    # Loaded only for a vector: most tables have none.
    from pyroaring import BitMap


def write_vectors(
    store: ObjectStore, prefix: str, write: WriteRef, vectors: Mapping[str, BitMap]
) -> dict[str, DeletionVector]:
    """Return the references to `vectors`, by the same paths of files, once they can be read.

    Costs at most 1 PUT.
    """
    deletes, path, content = packed_vectors(write, vectors, partial(_location, store, prefix))
    if path is not None:
        store.put(_key(prefix, path), content)
    return deletes


def read_vector(
    store: ObjectStore, prefix: str, deletes: DeletionVector | None, physical_rows: int
) -> BitMap:
    """Return the positions of the deleted rows of a file that has `physical_rows` including these.

    Raises FormatError for a vector that is damaged, of another file, or missing. Costs a ranged GET if the
    entry does not contain it.
    """
    from pyroaring import BitMap

    if deletes is None:
        return BitMap()
    blob = inline_bytes(deletes)
    return decoded_vector(deletes, _ranged(store, prefix, deletes) if blob is None else blob, physical_rows)


def _ranged(store: ObjectStore, prefix: str, deletes: DeletionVector) -> bytes:
    if deletes.path is None or deletes.offset is None:
        raise FormatError("the log has no place of the vector of its deleted rows")
    key = _key_of(store, prefix, deletes.path)
    try:
        with store.open_input(key) as source:
            source.seek(deletes.offset)
            return source.read(deletes.size_bytes)
    except NotFound:
        raise FormatError(
            f"the vector of its deleted rows is missing: there is no {key} in {store.url}"
        ) from None


def _key_of(store: ObjectStore, prefix: str, path: str) -> str:
    """Return the key of an object of vectors.

    If this table is a clone of another table, that table's objects are in the same store. Raises FormatError
    for any other place.
    """
    if not is_elsewhere(path):
        return _key(prefix, path)
    inside = path.removeprefix(f"{store.url.rstrip('/')}/")
    if inside == path:
        raise FormatError(
            f"the vector of its deleted rows is said to be at {path}, outside of {store.url}: find out which client "
            "wrote that"
        )
    return inside


def _key(prefix: str, path: str) -> str:
    return f"{prefix}/{path}" if prefix else path


def _location(store: ObjectStore, prefix: str, path: str) -> str:
    return path if is_elsewhere(path) else f"{store.url}/{_key(prefix, path)}"

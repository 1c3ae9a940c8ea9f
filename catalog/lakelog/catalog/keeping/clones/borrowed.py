"""Files of another table of the warehouse, in the entries of a clone, have absolute paths. Pure."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import (
    DELETES,
    VERSION,
    DeletionVector,
    deletes_from_json,
    deletes_to_json,
    is_elsewhere,
)


def is_of(path: str, folder: str) -> bool:
    """Return whether a path belongs to an object of the table in `folder`, a URL or an absolute path."""
    return path.startswith(f"{folder.rstrip('/')}/")


def absolute(files: pa.Table, url: str) -> pa.Table:
    """Return the files of the table at `url` as entries of another table.

    Paths of files elsewhere are absolute already. Versions are left out because the other log's versions mean
    nothing in this log.
    """
    paths = [_absolute(path, url) for path in files["path"].to_pylist()]
    files = files.set_column(files.column_names.index("path"), "path", pa.array(paths, pa.string()))
    if DELETES in files.column_names:
        texts = [
            None if text is None else deletes_to_json(absolute_deletes(deletes_from_json(text), url))
            for text in files[DELETES].to_pylist()
        ]
        files = files.set_column(files.column_names.index(DELETES), DELETES, pa.array(texts, pa.string()))
    return files.drop_columns([VERSION]) if VERSION in files.column_names else files


def absolute_deletes(deletes: DeletionVector, url: str) -> DeletionVector:
    if deletes.path is None:
        return deletes
    return msgspec.structs.replace(deletes, path=_absolute(deletes.path, url))


def _absolute(path: str, url: str) -> str:
    return path if is_elsewhere(path) else f"{url}/{path}"

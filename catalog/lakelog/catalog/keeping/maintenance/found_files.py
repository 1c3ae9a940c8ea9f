"""Data files that were found in a table's folder.

Any number of them takes little more memory than their names.

They are kept in Arrow tables of a page each, and never all of them as Python strings. A file's name has the
version from which its write started, in digits of a fixed length. So names compare as versions do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import started_at, without
from lakelog.catalog.keeping.maintenance.reachable import DATA, total
from lakelog.log.keys import VERSION_DIGITS

KEYS_AT_ONCE = 10_000
"""The number of keys that are converted to strings at once."""

_SCHEMA = pa.schema({"path": pa.string(), "size": pa.int64()})


class FoundFiles:
    """Lakelog's own files, with their sizes."""

    def __init__(self, tables: Sequence[pa.Table] = ()) -> None:
        self.tables = [table for table in tables if table.num_rows]

    def add(self, files: pa.Table) -> None:
        if files.num_rows:
            self.tables.append(files)

    @property
    def count(self) -> int:
        return sum(table.num_rows for table in self.tables)

    @property
    def size_bytes(self) -> int:
        return sum(total(table) for table in self.tables)

    @property
    def oldest(self) -> int:
        """Return the lowest version that a file's write started from. 0 without files."""
        return min((int(pc.min(_versions(table)).as_py()) for table in self.tables), default=0)

    def before(self, version: int, but: Collection[str] = ()) -> FoundFiles:
        """Return the files whose write started before a version, without the paths `but`."""
        limit = pa.scalar(f"{version:0{VERSION_DIGITS}d}")
        tables = []
        for table in self.tables:
            older = pc.less(_versions(table), limit)
            # Usually all are older, and then they are not copied.
            tables.append(without(table if pc.all(older).as_py() else table.filter(older), but))
        return FoundFiles(tables)

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield their keys in a store."""
        for table in self.tables:
            for start in range(0, table.num_rows, KEYS_AT_ONCE):
                for path in table["path"].slice(start, KEYS_AT_ONCE).to_pylist():
                    yield f"{prefix}{path}"


def own_files(page: Sequence[tuple[str, int]], prefix: str) -> tuple[pa.Table, int]:
    """Return lakelog's own files in a list of keys with sizes, and the number of the others."""
    own = [(path, size) for key, size in page if started_at(path := key.removeprefix(prefix)) is not None]
    columns = {"path": [path for path, _ in own], "size": [size for _, size in own]}
    return pa.table(columns, _SCHEMA), len(page) - len(own)


def _versions(table: pa.Table) -> pa.ChunkedArray:
    """Return the versions that the writes started from, as strings of a fixed length."""
    return pc.binary_slice(table["path"].cast(pa.binary()), len(DATA), len(DATA) + VERSION_DIGITS).cast(
        pa.string()
    )

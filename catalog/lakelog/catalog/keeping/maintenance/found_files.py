"""Data files that were found in a table's folder, as many as there may be, in little more memory than their names take.

They are kept in Arrow tables of a page each, and never all of them as Python's texts. The version from which a file's
write started stands in its name, in digits of one length: so names compare as versions do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import started_at, without
from lakelog.catalog.keeping.maintenance.reachable import DATA, total
from lakelog.log.keys import VERSION_DIGITS

KEYS_AT_ONCE = 10_000
"""That are made texts at once."""

_SCHEMA = pa.schema({"path": pa.string(), "size": pa.int64()})


class FoundFiles:
    """Files of lakelog's, with their sizes."""

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
        """The first version that a write of one started from, 0 without any."""
        return min((int(pc.min(_versions(table)).as_py()) for table in self.tables), default=0)

    def before(self, version: int, but: Collection[str] = ()) -> FoundFiles:
        """Return those whose write started before a version, without the paths `but`."""
        limit = pa.scalar(f"{version:0{VERSION_DIGITS}d}")
        found = []
        for table in self.tables:
            older = pc.less(_versions(table), limit)
            # Mostly all are older: these are not copied.
            found.append(without(table if pc.all(older).as_py() else table.filter(older), but))
        return FoundFiles(found)

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield their keys in a store."""
        for table in self.tables:
            for start in range(0, table.num_rows, KEYS_AT_ONCE):
                for path in table["path"].slice(start, KEYS_AT_ONCE).to_pylist():
                    yield f"{prefix}{path}"


def own_files(page: Sequence[tuple[str, int]], prefix: str) -> tuple[pa.Table, int]:
    """Return the files of a list of keys with sizes, and the number of those that are not lakelog's."""
    own = [(path, size) for key, size in page if started_at(path := key.removeprefix(prefix)) is not None]
    columns = {"path": [path for path, _ in own], "size": [size for _, size in own]}
    return pa.table(columns, _SCHEMA), len(page) - len(own)


def _versions(table: pa.Table) -> pa.ChunkedArray:
    """The versions that the writes started from, as texts of one length."""
    return pc.binary_slice(table["path"].cast(pa.binary()), len(DATA), len(DATA) + VERSION_DIGITS).cast(
        pa.string()
    )

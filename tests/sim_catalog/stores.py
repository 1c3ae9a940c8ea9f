"""The catalog's store, and its data files: Parquet is made once for the same rows, for that takes most of the time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from tests.sim.stores import STALLS, UnreliableStore

from lakelog.catalog import Table
from lakelog.catalog.core import parquet
from lakelog.catalog.core.files.data_file import DataFile, file_path, is_elsewhere
from lakelog.catalog.core.files.deletion_vectors import deletes_from_json
from lakelog.catalog.core.files.row_ids import ROW_ID, ROW_VERSION
from lakelog.catalog.core.logs.stored_vectors import read_vector
from lakelog.catalog.core.parquet import ingest
from lakelog.catalog.core.schema.filters import Filter
from lakelog.catalog.core.writes import identity_rewrite
from lakelog.log import LogOptions, MemoryStore, WriteRef

Row = tuple[Any, ...]
READ_FAULTS = 0.2

_real_written_files = parquet.written_files
_real_copied_files = parquet.copied_files
_real_rows_written_in = ingest.rows_written_in
_real_moved = identity_rewrite.moved
_made: dict[bytes, list[tuple[bytes, DataFile]]] = {}
_rows: dict[str, list[Row]] = {}

rows_at: dict[str, list[Row]] = {}
"""The rows of each data file that was ever put in this run, by its key."""


class CatalogStore(UnreliableStore):
    """See ObjectStore. As the log's, with the listings that maintenance asks for; reads fail more seldom, for a request
    to the catalog reads many times before it writes."""

    def _read_fault(self, key: str) -> None:
        if self._rng.random() < READ_FAULTS:
            super()._read_fault(key)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Answered in any order, and sometimes with a long time in between."""
        if len(keys) < 2 or self._rng.random() >= self._weather.tear / 2:
            return super().get_many(keys)
        order = self._rng.sample(range(len(keys)), len(keys))
        first = self._rng.randint(1, len(keys) - 1)
        found: dict[int, bytes | None] = {i: self.get(keys[i]) for i in order[:first]}
        self._truth.faults[STALLS] += 1
        self._scheduler.stall(self._rng.randint(1, 60))
        found |= {i: self.get(keys[i]) for i in order[first:]}
        return [found[i] for i in range(len(keys))]

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        self._begin()
        self._read_fault(prefix)
        return iter(list(self._truth.list_sizes(prefix, after)))

    def list_folders(self, prefix: str) -> list[str]:
        self._begin()
        self._read_fault(prefix)
        return self._truth.list_folders(prefix)

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        return iter(())


def moved(head: Any, file: DataFile, moves: Any, mark: int) -> DataFile:
    """As `identity_rewrite.moved`, which only changes a number that rows begin with."""
    tracked, stored_file = head.tracked, _real_moved(head, file, moves, mark)
    (move,) = moves.values()
    rows = rows_at[f"{tracked.prefix}/{file.path}"]
    key = f"{tracked.prefix}/{stored_file.path}"
    rows_at[key] = [(move.of(number), *rest) for number, *rest in rows]
    content = tracked.store.get(key)
    if content is not None:  # a vacuum may have been there, which has fenced the write
        _rows[_digest(content)] = rows_at[key]
    return stored_file


def copied_files(head: Any, *how: Any, **more: Any) -> list[DataFile]:
    """As `parquet.copied_files`, of whose files the rows are then known."""
    files = _real_copied_files(head, *how, **more)
    _note_rows(head.tracked.store.get, head.tracked.prefix, files)
    return files


def rows_written_in(store: Any, prefix: str, *how: Any, **more: Any) -> list[DataFile]:
    """As `ingest.rows_written_in`, by which a client writes the rows that others proposed."""
    files = _real_rows_written_in(store, prefix, *how, **more)
    _note_rows(getattr(store, "_truth", store).get, prefix, files)
    return files


def _note_rows(get: Callable[[str], bytes | None], prefix: str, files: Sequence[DataFile]) -> None:
    for file in files:
        key = f"{prefix}/{file.path}"
        content = get(key)
        if content is None:  # a vacuum may have been there, which has fenced the write
            continue
        columns = pq.read_table(pa.BufferReader(content)).to_pydict()
        own = [values for name, values in columns.items() if name not in (ROW_ID, ROW_VERSION)]
        rows_at[key] = _rows[_digest(content)] = list(zip(*own, strict=True))


def written_files(
    tracked: Any, metadata: Any, write: WriteRef, data: Any, numbering: Any = None
) -> list[DataFile]:
    """As `parquet.written_files`: the same bytes at the same paths, put the same way."""
    if numbering is not None:
        data = numbering.fill(data)
    rows = data.to_pydict()
    made_of = (rows, metadata.schema, metadata.spec, metadata.sort_order, metadata.properties)
    key = hashlib.sha256(msgspec.json.encode(made_of)).digest()
    if key not in _made:
        # Nothing of the chance of this run: a seed gives the same run whether or not these rows were made before.
        replay = SimpleNamespace(options=LogOptions(in_parallel=_one_after_the_other))
        scratch: Any = SimpleNamespace(store=MemoryStore(), prefix="", log=SimpleNamespace(replay=replay))
        files = _real_written_files(scratch, metadata, write, data)
        _made[key] = [(scratch.store.get(file.path), file) for file in files]
        assert len(files) == 1, "rows of one file at a time"
        _rows[_digest(_made[key][0][0])] = list(zip(*rows.values(), strict=True))
    done = []
    for number, (content, file) in enumerate(_made[key]):
        path = file_path(write, f"{number:05d}")
        rows_at[f"{tracked.prefix}/{path}"] = _rows[_digest(content)]
        tracked.store.put(f"{tracked.prefix}/{path}", content)
        done.append(msgspec.structs.replace(file, path=path, write_id=write.id))
    return done


def read_rows(table: Table, filter: Filter | None = None) -> list[Row]:
    """Return the rows of the files that a scan would read; those that do not match `filter` may be among them."""
    return [row for rows in live_rows(table, filter).values() for row in rows.values()]


def live_rows(table: Table, filter: Filter | None = None) -> dict[str, dict[int, Row]]:
    """Return the rows of each file that a scan would read, by path and position."""
    found: dict[str, dict[int, Row]] = {}
    for file in table.plan(filter).to_pylist():
        tracked_log = table.table_head.tracked
        with tracked_log.store.open_input(key_of(tracked_log.prefix, file["path"])) as source:
            rows = _rows[_digest(source.read())]
        text = file.get("deletes")
        deletes = None if text is None else deletes_from_json(text)
        removed_vector = read_vector(
            table.table_head.tracked.store, table.table_head.tracked.prefix, deletes, len(rows)
        )
        found[file["path"]] = {at: row for at, row in enumerate(rows) if at not in removed_vector}
    return found


def key_of(prefix: str, path: str) -> str:
    """Return the key of a table's data file, or of one that a clone has of another table."""
    return path.removeprefix("memory://simulation/") if is_elsewhere(path) else f"{prefix}/{path}"


def _one_after_the_other(works: Sequence[Callable[[], None]]) -> None:
    for work in works:
        work()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

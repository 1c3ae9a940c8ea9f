"""Data files become rows: the columns that are asked for, in the table's present schema, filtered exactly.

Row groups are left out by the same rules as files, and rows that a deletion vector names. Files are read ahead by a few
threads; rows come in the order of the plan all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.arrow_types import schema_to_arrow, type_from_arrow
from lakelog.catalog.bound import Bound, terms
from lakelog.catalog.data_file import (
    CONSTANTS,
    DELETES,
    FOOTER,
    NAMES,
    Constant,
    DataFile,
    constants_from_json,
    files_to_arrow,
    is_elsewhere,
    names_from_json,
)
from lakelog.catalog.deletes import Deletes, deletes_from_json, read_vector
from lakelog.catalog.literals import value_type
from lakelog.catalog.live_rows import LiveRows
from lakelog.catalog.parquet_open import open_parquet
from lakelog.catalog.pruning import Specs, may_match
from lakelog.catalog.read_ahead import in_order
from lakelog.catalog.reshape import to_logical
from lakelog.catalog.rows import evaluate
from lakelog.catalog.schema import Schema
from lakelog.catalog.statistics import Measured, footer_statistics
from lakelog.catalog.types import AtomicType
from lakelog.log.errors import FormatError, StorageError, Unsupported
from lakelog.log.store import ObjectStore

OpenUrl = Callable[[str], tuple[ObjectStore, str]]
"""Finds the store of an object by its URL or absolute path, and its key there."""

BATCH_ROWS = 128 * 1024
READ_AHEAD_FILES = 4


def read_files(
    store: ObjectStore,
    prefix: str,
    plan: pa.Table,
    schema: Schema,
    specs: Specs,
    *,
    columns: Sequence[str] | None = None,
    predicate: Bound | None = None,
    open_url: OpenUrl | None = None,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the Arrow schema of the result, and its batches; nothing is read before the first is asked for.

    `columns` are names of `schema`, in the order of the result. Raises, while batches are taken, FormatError for a file
    that is broken, NotFound for one that is gone, Unsupported for a condition that lakelog does not know.
    `open_url` finds files that are outside of the table.
    """
    chosen = [field.name for field in schema.fields] if columns is None else list(columns)
    whole = schema_to_arrow(schema)
    result = pa.schema([whole.field(name) for name in chosen])
    reading = _Reading(store, prefix, schema, chosen, predicate, open_url)
    columns_read = (
        plan[name].to_pylist() if name in plan.column_names else [None] * plan.num_rows
        for name in ("path", "size", "rows", FOOTER, NAMES, CONSTANTS, DELETES)
    )
    files = list(map(_Source, *columns_read))
    return result, in_order(files, reading.batches, READ_AHEAD_FILES)


def read_file(
    store: ObjectStore, key: str, schema: Schema, columns: Sequence[str] | None, predicate: Bound | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the one file `key` as `read_files` does."""
    chosen = [field.name for field in schema.fields] if columns is None else list(columns)
    return _Reading(store, "", schema, chosen, predicate).batches(_Source(key))


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to be read, and what the log says of it."""

    path: str
    size_bytes: int | None = None
    rows: int | None = None
    footer_crc: int | None = None
    names_json: str | None = None
    constants_json: str | None = None
    deletes_json: str | None = None

    @property
    def names(self) -> dict[int, str] | None:
        return None if self.names_json is None else names_from_json(self.names_json)

    @property
    def constants(self) -> dict[int, Constant]:
        return {} if self.constants_json is None else constants_from_json(self.constants_json)

    @property
    def deletes(self) -> Deletes | None:
        return None if self.deletes_json is None else deletes_from_json(self.deletes_json)


class _Reading:
    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        schema: Schema,
        columns: Sequence[str],
        predicate: Bound | None,
        open_url: OpenUrl | None = None,
    ) -> None:
        self._open_url = open_url
        self._store = store
        self._prefix = f"{prefix}/" if prefix else ""
        self._schema = schema
        self._columns = list(columns)
        self._predicate = predicate
        tested = [] if predicate is None else [term.path[0] for term in terms(predicate)]
        self._needed = list(dict.fromkeys([*columns, *tested]))
        self._fields = [schema.find((name,), case_sensitive=True) for name in self._needed]

    def batches(self, file: _Source) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of one file."""
        store, key = self._store, self._prefix + file.path
        if is_elsewhere(file.path):
            if self._open_url is None:
                raise Unsupported(
                    f"the data file {file.path} lies outside of its table: open it through a catalog"
                )
            store, key = self._open_url(file.path)
        names, constants = file.names, file.constants
        with store.open_input(key) as source:
            try:
                opened = open_parquet(source, file.size_bytes, file.footer_crc, pre_buffer=True)
                present = set(opened.schema_arrow.names)
                physical = self._present(present, names, constants)
                # What a foreign writer's bounds mean is known from the log, where it is known.
                groups = (
                    self._row_groups(opened) if names is None else list(range(opened.metadata.num_row_groups))
                )
                count = sum(opened.metadata.row_group(group).num_rows for group in groups)
                live = self._live(file, opened.metadata, groups)
                done = 0
                for batch in opened.iter_batches(BATCH_ROWS, row_groups=groups, columns=physical):
                    rows = batch if live is None else live.of(batch, done)
                    done += batch.num_rows
                    yield from self._matching(rows, names, constants)
                if done != count:
                    # Arrow leaves out pages whose header was altered to be of no kind that it knows.
                    raise FormatError(f"{count - done:,} of its rows cannot be found")
            except (pa.ArrowInvalid, OSError, FormatError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    # Arrow's own complaints about a file's content are OSErrors without a number.
                    raise StorageError(
                        f"reading the data file {key} in {store.url} failed ({error}): try again",
                        location=f"{store.url}/{key}",
                    ) from error
                raise FormatError(
                    f"the data file {key} in {store.url} cannot be read ({error}): it was truncated or altered"
                ) from error

    def _live(self, file: _Source, footer: pq.FileMetaData, groups: Sequence[int]) -> LiveRows | None:
        """Return what leaves the deleted rows out of those of some row groups; None where no row is deleted."""
        deletes = file.deletes
        if deletes is None:
            return None
        if file.rows is not None and footer.num_rows != file.rows + deletes.rows:
            raise FormatError(
                f"it has {footer.num_rows:,} rows, and the log knows of {file.rows:,} and {deletes.rows:,} deleted ones"
            )
        vector = read_vector(self._store, self._prefix.rstrip("/"), deletes, footer.num_rows)
        return LiveRows(
            vector, [footer.row_group(group).num_rows for group in range(footer.num_row_groups)], groups
        )

    def _present(
        self, present: set[str], names: Mapping[int, str] | None, constants: Mapping[int, Constant]
    ) -> list[str]:
        """Return what the needed columns are called that the file has."""
        if names is None:
            return [field.physical for field in self._fields if field.physical in present]
        found = (names.get(field.id) for field in self._fields if field.id not in constants)
        return [name for name in found if name is not None and name in present]

    def _matching(
        self, batch: pa.RecordBatch, names: Mapping[int, str] | None, constants: Mapping[int, Constant]
    ) -> Iterator[pa.RecordBatch]:
        rows = to_logical(batch, self._schema, self._needed, names=names, constants=constants)
        if self._predicate is not None:
            rows = rows.filter(evaluate(self._predicate, rows)).select(self._columns)
        yield from (each for each in rows.to_batches() if each.num_rows)

    def _row_groups(self, file: pq.ParquetFile) -> list[int]:
        footer = file.metadata
        groups = list(range(footer.num_row_groups))
        if self._predicate is None or len(groups) < 2:
            return groups
        columns = self._measured(file.schema_arrow)
        parts = [
            DataFile(
                path=str(group),
                size_bytes=0,
                rows=footer.row_group(group).num_rows,
                stats=footer_statistics(footer, columns, [group]),
            )
            for group in groups
        ]
        mask = may_match(files_to_arrow(parts, self._as_written(columns), ()), self._predicate, ())
        return [group for group, keep in zip(groups, mask.to_pylist(), strict=True) if keep]

    def _measured(self, written: pa.Schema) -> list[Measured]:
        """Return the needed columns that may tell something, with the types that they have in the file."""
        found: list[Measured] = []
        for field in self._fields:
            if isinstance(field.type, AtomicType) and field.physical in written.names:
                type = type_from_arrow(written.field(field.physical).type, (field.name,))
                if isinstance(type, AtomicType) and value_type(type) is not None:
                    found.append(Measured(field.id, field.physical, type))
        return found

    def _as_written(self, columns: Sequence[Measured]) -> Schema:
        types = {column.id: column.type for column in columns}
        fields = [field for field in self._fields if field.id in types]
        return Schema(
            fields=tuple(msgspec.structs.replace(field, type=types[field.id]) for field in fields),
            last_id=self._schema.last_id,
        )

"""Checks of data files: that they exist, are intact, and agree with the log. Deep checks read every page.

A footer has rows, null counts and bounds, which must agree with the log because pruning relies on the log.
Reading every page verifies the pages' checksums, if the writer wrote any, and the values themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog.core.files import (
    NAMES,
    ColumnStats,
    DataFile,
    DeletionVector,
    MeasuredColumn,
    converted,
    deletes_from_json,
    files_to_arrow,
    footer_statistics,
    is_elsewhere,
    names_from_json,
)
from lakelog.catalog.core.logs import read_vector
from lakelog.catalog.core.parquet import MAGIC, open_parquet
from lakelog.catalog.core.schema import AtomicType, Field, Schema, type_from_arrow, value_type
from lakelog.catalog.keeping.maintenance.fsck.judges import facts_of
from lakelog.catalog.keeping.maintenance.fsck.retained import DataFileFacts
from lakelog.log import ObjectStore, OpenUrl
from lakelog.log.checks.findings import Findings
from lakelog.log.costs import TallyThreads
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, StorageError

FILES_AT_ONCE = 4
FILES_IN_A_ROUND = 256
BATCH_ROWS = 64 * 1024
READ_BYTES = 4 * 1024 * 1024
RESTORE_VECTOR = (
    "restore the object of vectors from a backup, or go back to a version before these rows were deleted"
)
RESTORE = "restore this file from a backup, or delete the rows that were in it"
OTHER_CHECKSUM = "is not what was written: its checksum differs"


@dataclass(frozen=True, slots=True)
class Checksum:
    """The size and checksum of a whole file."""

    size_bytes: int
    crc: int


@dataclass(frozen=True, slots=True)
class DataCheck:
    """Checks the data files of a table, which is at `prefix` in `store`."""

    store: ObjectStore
    prefix: str
    findings: Findings
    deep: bool
    open_url: OpenUrl | None = None
    still_needed: Callable[[str], bool] = lambda path: True
    """Returns whether readers need a damaged or missing file now."""
    checksums: Mapping[str, Checksum] | None = None
    """Checksums of files that an engine read, by URL, for a deep check."""

    @property
    def where(self) -> str:
        """Return the URL of the folder of the table's data files."""
        return self._at("data")

    def live(self, files: pa.Table, schema: Schema, done: int, of: int) -> None:
        """Check some files of the current version against the log's entries.

        `done` of at most `of` files precede them.
        """
        for start in range(0, files.num_rows, FILES_IN_A_ROUND):
            self.findings.progress(f"{self._at('data')}: file {done + start:,} of {of:,}")
            batch = files.slice(start, FILES_IN_A_ROUND)
            rows = [
                (path, facts, batch.slice(i, 1)) for i, (path, facts) in enumerate(facts_of(batch).items())
            ]
            with TallyThreads(FILES_AT_ONCE, thread_name_prefix="lakelog-fsck") as pool:
                for _ in pool.map(lambda row: self._check(row[0], row[1], row[2], schema), rows):
                    pass

    def older(self, files: dict[str, DataFileFacts]) -> None:
        """Check files of earlier versions: their size and their rows."""
        items = sorted(files.items())
        for start in range(0, len(items), FILES_IN_A_ROUND):
            self.findings.progress(f"{self._at('data')}: older file {start:,} of {len(items):,}")
            with TallyThreads(FILES_AT_ONCE, thread_name_prefix="lakelog-fsck") as pool:
                batch = items[start : start + FILES_IN_A_ROUND]
                for _ in pool.map(lambda item: self._check(item[0], item[1], None, None), batch):
                    pass

    def _check(
        self, path: str, facts: DataFileFacts, claimed_table: pa.Table | None, schema: Schema | None
    ) -> None:
        self.findings.count("data files")
        try:
            problem = self._read(path, facts, claimed_table, schema)
        except NotFound:
            if self.still_needed(path):
                self.findings.damage("data-file-missing", self._at(path), "a data file is missing", RESTORE)
            return
        except (StorageError, InvalidInput) as error:
            if not is_elsewhere(path):
                raise
            # An entry can name any place. An unreadable place must not end the whole check.
            self.findings.damage(
                "data-file-unreachable", path, str(error), "check the place and the right to read it"
            )
            return
        except OverflowError as error:
            # Values that Python does not have, such as the year 10000, are no damage, and must not end the
            # whole check.
            self.findings.note(
                "data-file-unchecked",
                self._at(path),
                f"its values were not checked: {error}",
                "check it by other means",
            )
            return
        if problem is not None and self.still_needed(path):
            kind, message = problem
            self.findings.damage(kind, self._at(path), message, RESTORE)
        for text in sorted(facts.vectors):
            self._check_vector(path, deletes_from_json(text), facts.rows)

    def _read(
        self, path: str, facts: DataFileFacts, claimed_table: pa.Table | None, schema: Schema | None
    ) -> tuple[str, str] | None:
        store, key = self._place(path)
        try:
            with store.open_input(key) as source:
                return self._problem(
                    source, facts, claimed_table, schema, (self.checksums or {}).get(self._at(path))
                )
        except StorageError:
            with store.open_input(key):  # raises NotFound if vacuum has deleted it between two reads
                raise

    def _check_vector(self, path: str, deletes: DeletionVector, rows: int) -> None:
        self.findings.count("deletion vectors")
        try:
            read_vector(self.store, self.prefix, deletes, rows)
        except StorageError:
            raise
        except LakelogError as error:
            if self.still_needed(deletes.path or path):
                where = self._at(deletes.path or path)
                self.findings.damage("deletion-vector-damaged", where, f"of {path}: {error}", RESTORE_VECTOR)

    def _problem(
        self,
        source: Any,
        facts: DataFileFacts,
        claimed_table: pa.Table | None,
        schema: Schema | None,
        read: Checksum | None,
    ) -> tuple[str, str] | None:
        try:
            file = open_parquet(source, facts.size_bytes, facts.footer_crc)
            source.seek(0)
            if source.read(len(MAGIC)) != MAGIC:
                return "data-file-altered", "does not begin like a Parquet file"
            footer = file.metadata
            if footer.num_rows != facts.rows:
                return "data-file-altered", f"has {footer.num_rows:,} rows, and the log says {facts.rows:,}"
            names = _names(claimed_table)
            fields = _fields(file.schema_arrow, schema, names)
            # The footer of another program's file may have other units than the log. Arrow ends the process if it
            # reads the statistics of some broken footers, so only known columns are read.
            if claimed_table is not None and facts.footer_crc is not None and names is None:
                footer_stats = footer_statistics(
                    footer, [m for _, m in fields], range(footer.num_row_groups), {f.id: 0 for f, _ in fields}
                )
                wrong = _contradiction(footer_stats, claimed_table, fields)
                if wrong is not None:
                    return "data-file-altered", f"its footer contradicts the log: {wrong}"
            if self.deep:
                self.findings.count("bytes read", facts.size_bytes)
                if read is not None and facts.crc is not None:
                    # Its bytes equal the bytes that its writer measured, and so do its values.
                    same = read == Checksum(facts.size_bytes, facts.crc)
                    return None if same else ("data-file-altered", OTHER_CHECKSUM)
                return self._read_all(source, file, facts, claimed_table, fields)
        except (pa.ArrowException, OSError, LakelogError, ValueError) as error:
            if isinstance(error, StorageError):
                raise
            if isinstance(error, OSError) and error.errno is not None:
                # Arrow's own errors about a file's content are OSErrors without a number.
                raise StorageError(
                    f"reading a data file failed: {error}; retry", location=self._at("data")
                ) from error
            return "data-file-altered", f"is not what was written: {error}"
        return None

    def _read_all(
        self,
        source: BinaryIO,
        file: pq.ParquetFile,
        facts: DataFileFacts,
        claimed_table: pa.Table | None,
        fields: Sequence[tuple[Field, MeasuredColumn]],
    ) -> tuple[str, str] | None:
        if facts.crc is not None and _crc_of(source) != facts.crc:
            return "data-file-altered", OTHER_CHECKSUM
        rows, values = 0, _Seen(fields)
        for batch in file.iter_batches(BATCH_ROWS):
            batch.validate(full=True)
            rows += batch.num_rows
            values.take(batch)
        if rows != facts.rows:
            return "data-file-altered", f"holds {rows:,} rows, and the log says {facts.rows:,}"
        wrong = None if claimed_table is None else values.contradiction(claimed_table)
        return None if wrong is None else ("data-file-altered", f"its values contradict the log: {wrong}")

    def _place(self, path: str) -> tuple[ObjectStore, str]:
        """Return a file's store and its key there."""
        if is_elsewhere(path):
            if self.open_url is None:
                raise InvalidInput(f"{path} is outside of its table: open the log through a catalog")
            return self.open_url(path)
        return self.store, f"{self.prefix}/{path}" if self.prefix else path

    def _at(self, path: str) -> str:
        store, key = self._place(path)
        return f"{store.url}/{key}"


def _crc_of(source: BinaryIO) -> int:
    source.seek(0)
    crc = 0
    while data := source.read(READ_BYTES):
        crc = zlib.crc32(data, crc)
    return crc


class _Seen:
    """The findings of a read of a file's columns: nulls, NaNs and the range of the values."""

    def __init__(self, fields: Sequence[tuple[Field, MeasuredColumn]]) -> None:
        self._fields = fields
        self._nulls = {column.id: 0 for _, column in fields}
        self._nans = {column.id: 0 for _, column in fields}
        self._ranges: dict[int, tuple[pa.Scalar, pa.Scalar]] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        for _, column in self._fields:
            values = batch.column(column.physical)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            self._nulls[column.id] += values.null_count
            if column.is_float:
                self._nans[column.id] += pc.sum(pc.is_nan(values)).as_py() or 0
                values = values.filter(pc.invert(pc.is_nan(values)))
            range_ = pc.min_max(values)
            low, high = range_["min"], range_["max"]
            if low.is_valid:
                range_so_far = self._ranges.get(column.id)
                if range_so_far is not None:
                    low = range_so_far[0] if pc.less(range_so_far[0], low).as_py() else low
                    high = range_so_far[1] if pc.greater(range_so_far[1], high).as_py() else high
                self._ranges[column.id] = low, high

    def contradiction(self, claimed_table: pa.Table) -> str | None:
        for field, column in self._fields:
            nulls = _logged(claimed_table, f"nulls{column.id}")
            if nulls is not None and nulls != self._nulls[column.id]:
                return f"{field.name} has {self._nulls[column.id]} nulls, and the log says {nulls}"
            lowest = f"lo{column.id}"
            has_bounds = lowest in claimed_table.column_names and claimed_table[lowest][0].is_valid
            nans = _logged(claimed_table, f"nans{column.id}")
            if column.is_float and has_bounds and (nans or 0) != self._nans[column.id]:
                return f"{field.name} has {self._nans[column.id]} NaNs, and the log says {nans or 0}"
            value_range = self._ranges.get(column.id)
            if value_range is None:
                continue
            for name, scalar, compare in (
                ("lo", value_range[0], pc.less),
                ("hi", value_range[1], pc.greater),
            ):
                wrong = _beyond(claimed_table, f"{name}{column.id}", pa.repeat(scalar, 1), compare)
                if wrong is not None:
                    return f"{field.name} {wrong}"
        return None


def _names(claimed_table: pa.Table | None) -> dict[int, str] | None:
    """Return the file's own names of columns by their ids. None for a file that lakelog wrote."""
    text = None if claimed_table is None else _logged(claimed_table, NAMES)
    return None if text is None else names_from_json(text)


def _fields(
    written_schema: pa.Schema, schema: Schema | None, names: dict[int, str] | None
) -> list[tuple[Field, MeasuredColumn]]:
    """Return the columns that can have statistics, with their names and types in the file."""
    columns = []
    for field in () if schema is None else schema.fields:
        name = field.physical if names is None else names.get(field.id)
        if isinstance(field.type, AtomicType) and name is not None and name in written_schema.names:
            type = type_from_arrow(written_schema.field(name).type, (field.name,))
            if isinstance(type, AtomicType) and value_type(type) is not None:
                columns.append((field, MeasuredColumn(field.id, name, type)))
    return columns


def _contradiction(
    measured: dict[int, ColumnStats], claimed_table: pa.Table, fields: Sequence[tuple[Field, MeasuredColumn]]
) -> str | None:
    """Return the contradiction between the footer and the log. None if there is none."""
    if _says_the_same(measured, claimed_table, fields):
        return None
    as_written = Schema(
        fields=tuple(msgspec.structs.replace(field, type=column.type) for field, column in fields),
        last_id=max((field.id for field, _ in fields), default=0),
    )
    footer = files_to_arrow([DataFile(path="", size_bytes=0, rows=0, stats=measured)], as_written, ())
    for field, _ in fields:
        nulls, null_count = (
            _logged(claimed_table, f"nulls{field.id}"),
            measured.get(field.id, ColumnStats()).nulls,
        )
        if nulls is not None and null_count is not None and nulls != null_count:
            return f"{field.name} has {null_count} nulls, and the log says {nulls}"
        for name, compare in (("lo", pc.less), ("hi", pc.greater)):
            column = f"{name}{field.id}"
            if column in footer.column_names:
                wrong = _beyond(claimed_table, column, footer[column].combine_chunks(), compare)
                if wrong is not None:
                    return f"{field.name} {wrong}"
    return None


def _says_the_same(
    measured: dict[int, ColumnStats], claimed_table: pa.Table, fields: Sequence[tuple[Field, MeasuredColumn]]
) -> bool:
    """Return whether a footer has exactly the log's values, as nearly all have.

    A comparison as Arrow columns takes several times as long.
    """
    try:
        return all(
            (stats.nulls, stats.min, stats.max)
            == (
                _logged(claimed_table, f"nulls{id}"),
                _logged(claimed_table, f"lo{id}"),
                _logged(claimed_table, f"hi{id}"),
            )
            for id, stats in ((field.id, measured.get(field.id, ColumnStats())) for field, _ in fields)
        )
    except (OverflowError, ValueError):  # a date or time that Python does not have
        return False


def _logged(claimed_table: pa.Table, column: str) -> Any:
    return claimed_table[column][0].as_py() if column in claimed_table.column_names else None


def _beyond(claimed_table: pa.Table, column: str, array: pa.Array, compare: Any) -> str | None:
    """Return how a value exceeds a bound of the log. None if it does not, or if no bound is known."""
    if column not in claimed_table.column_names or not array[0].is_valid:
        return None
    log_bound = claimed_table[column].combine_chunks()
    if not log_bound[0].is_valid:
        return None
    try:
        beyond = compare(converted(array, log_bound.type), log_bound)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # pruning does not use bounds of a type that is no longer comparable
    if beyond[0].as_py():
        return f"reaches {_shown(array[0])}, beyond the log's bound {_shown(log_bound[0])}"
    return None


def _shown(scalar: pa.Scalar) -> str:
    try:
        return repr(scalar.as_py())
    except (OverflowError, ValueError):  # a date or time of a year that Python does not have
        return str(scalar.cast(pa.string()))

"""Data files as the log knows them, and their columnar form.

A `DataFile` is a single Parquet file: its place, its size, its partition and its columns' statistics. Many of
them are an Arrow table with a row per file and flat typed columns. These are `path`, `size`, `rows`, `spec`,
`write`, `crc`, `footer`, `names`, `constants`, `deleted`, `deletes`, `first_row`, `version`, `curve`,
`curve_low`, `curve_high` and `p<field id>` (partition values). By column id, they are `lo<id>`, `hi<id>`,
`nulls<id>` and `nans<id>`. A NULL there means "not known", with two exceptions. In `p<field id>` of a file
whose spec has that field it is the value NULL. In `deleted` and `deletes` it means that no row of the file is
deleted.

`rows` counts the live rows. Statistics describe the file as it was written, with rows that were deleted
since: compare counts from statistics with `physical_rows`.

The rule of statistics: `lo` and `hi` are bounds of the values that are neither NULL nor NaN, not necessarily
values. Without `nans`, bounds of a float column say that there is no NaN. Bounds are kept in the type that
the column had when the file was written; readers convert them before comparing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.arrow_lists import EncodedTable, check_list, decode_table, encode_table
from lakelog.catalog.core.files.deletion_vectors import DeletionVector, deletes_from_json, deletes_to_json
from lakelog.catalog.core.schema.literals import from_arrow, to_arrow, value_type
from lakelog.catalog.core.schema.partitioning import PartitionSpec
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import Scalar, TypedValue
from lakelog.log import WriteRef
from lakelog.log.decoding import JSON_MAX, decoded
from lakelog.log.errors import FormatError, InvalidInput, UnsupportedFormat
from lakelog.log.grammar import FilePath, Int32, Number, shortened

BASE_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("spec", pa.int32(), nullable=False),
        pa.field("write", pa.string(), nullable=False),
    ]
)

CRC, FOOTER = "crc", "footer"
"""The columns of `DataFile.crc` and `footer_crc`, each left out if it is not known of any file."""

NAMES, CONSTANTS = "names", "constants"
"""The columns of `DataFile.names` and `constants`, as JSON, each left out if no file has any."""

DELETED, DELETES = "deleted", "deletes"
"""The columns of `DataFile.deletes`: the number of rows, and the whole as JSON.

Left out if no file has any.
"""

FIRST_ROW, VERSION = "first_row", "version"
"""The columns of `DataFile.first_row` and `version`, each left out if it is not known of any file."""

CURVE, CURVE_LOW, CURVE_HIGH = "curve", "curve_low", "curve_high"
"""The columns of `DataFile.curve`, `curve_low` and `curve_high`, all left out if no file has any."""

_PLANNED = ("path", "size", "rows", "spec", FOOTER, NAMES, CONSTANTS, DELETED, DELETES, FIRST_ROW, VERSION)

_JUDGED = ("rows", "spec", DELETED)

_COLUMNS = {field.name: field.type for field in BASE_SCHEMA} | {
    **dict.fromkeys((CRC, FOOTER, FIRST_ROW, VERSION, DELETED, CURVE, CURVE_LOW, CURVE_HIGH), pa.int64()),
    **dict.fromkeys((NAMES, CONSTANTS, DELETES), pa.string()),
}

_OWN = re.compile(r"data/([0-9]{20})-([a-z2-7]{26})-[^/\\\x00-\x1f\x7f]+\.(?:parquet|puffin)")

_REMOVED_SCHEMA = pa.schema([("path", pa.string()), ("rows", pa.int64()), ("size", pa.int64())])


class ColumnStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The known statistics of a column in a file; None is unknown.

    `min` and `max`, which are stored as `lo` and `hi`, are JSON literals (see `literals`).
    """

    nulls: Number | None = None
    min: Scalar = msgspec.field(name="lo", default=None)
    max: Scalar = msgspec.field(name="hi", default=None)
    nans: Number | None = None


class DataFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An immutable Parquet file of a table.

    `path` is relative to the table's location, or absolute (a path or a URL) for a file from elsewhere.
    `partition` has a JSON literal for each field of the spec, by field id; `stats` has the known statistics,
    by column id. `crc` is the CRC-32 of the file. `footer_crc` is the CRC-32 of the bytes from
    its Parquet footer's start to the file's end. Both are None if not known.

    A file that lakelog has not written has `names`: the name in the file of the field of each column id,
    which a nested field has among its siblings. A field that is not in `names` is not in the file, even if
    the file has a field of the same name. `constants` are values of columns, by id, that the file does not
    store, and that all of its rows have.

    `deletes` says which of the file's rows are deleted, and `rows` counts the other rows. `first_row` is the
    id of the first row, and `version` the version that added the file (see `row_ids`); None for files from
    before there were ids.

    All rows lie between `curve_low` and `curve_high` on the curve of the generation `curve` of the table's
    clustering (see `schema.curve`); None if that is not known. Only clustering plans by it, and no reader
    does.
    """

    path: FilePath
    size_bytes: Number = msgspec.field(name="size")
    rows: Number
    spec_id: Int32 = msgspec.field(name="spec", default=0)
    partition: dict[Int32, Scalar] = {}
    stats: dict[Int32, ColumnStats] = {}
    write_id: str = msgspec.field(name="write", default="")
    crc: Number | None = None
    footer_crc: Number | None = msgspec.field(name="footer", default=None)
    names: dict[Int32, str] | None = None
    constants: dict[Int32, TypedValue] = {}
    deletes: DeletionVector | None = None
    first_row: Number | None = None
    version: Number | None = None
    curve: Number | None = None
    curve_low: Number | None = None
    curve_high: Number | None = None

    @property
    def physical_rows(self) -> int:
        """How many rows the file holds, deleted rows included."""
        return self.rows + (self.deletes.rows if self.deletes is not None else 0)


class RemovedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data file that a commit removes from the table, with its rows and size, so that totals stay exact."""

    path: FilePath
    rows: Number
    size_bytes: Number = msgspec.field(name="size")


_NAMES = msgspec.json.Decoder(dict[Int32, str])
_CONSTANTS = msgspec.json.Decoder(dict[Int32, TypedValue])


def removed_file(file: DataFile) -> RemovedFile:
    """Return the removal of a file."""
    return RemovedFile(path=file.path, rows=file.rows, size_bytes=file.size_bytes)


def file_path(write: WriteRef, suffix: str) -> str:
    """Return the path of a file of `write`, which has the version that the write started from.

    So a vacuum can recognise, among files that no commit names, the files of writes that are fenced off.
    """
    return f"data/{write.version:020d}-{write.id}-{suffix}.parquet"


def is_elsewhere(path: str) -> bool:
    """Return whether a data file's path leads out of its table, to a file that lakelog never deletes."""
    return path.startswith("/") or "://" in path


def is_of_iceberg_client(file: DataFile) -> bool:
    """Return whether a client of Iceberg wrote a file for the table itself, with the table's column ids in it.

    Only such files are in the table's folder under names that lakelog does not give.
    """
    return file.names is not None and not is_elsewhere(file.path) and started_at(file.path) is None


def names_to_json(names: Mapping[int, str]) -> str:
    """Return `DataFile.names` as text, the same for the same names."""
    return msgspec.json.encode({str(id): names[id] for id in sorted(names)}).decode()


def names_from_json(text: str) -> dict[int, str]:
    """Return the names that `names_to_json` wrote. Raises FormatError for another text."""
    return decoded(_NAMES, text.encode(), "an entry of names of columns", size_max=JSON_MAX)


def constants_to_json(constants: Mapping[int, TypedValue]) -> str:
    """Return `DataFile.constants` as text, the same for the same constants."""
    return msgspec.json.encode({str(id): constants[id] for id in sorted(constants)}).decode()


def constants_from_json(text: str) -> dict[int, TypedValue]:
    """Return the constants that `constants_to_json` wrote. Raises FormatError for another text."""
    where = "an entry of constants of columns"
    try:
        return decoded(_CONSTANTS, text.encode(), where, size_max=JSON_MAX)
    except InvalidInput as error:
        raise FormatError(f"{where} is not what the format has there: {error}") from None


_READ: dict[str, Callable[[str], object]] = {
    NAMES: names_from_json,
    CONSTANTS: constants_from_json,
}
"""Readers of the columns that hold JSON, but `deletes`.

All are read with their list, so that later code expects no other texts.
"""


def started_at(path: str) -> int | None:
    """Return the version that the write of a data file, or of an object of deletion vectors, started from.

    None for files that lakelog did not write.
    """
    match = _OWN.fullmatch(path)
    return None if match is None else int(match[1])


def check_written_by(files: Iterable[DataFile], write: WriteRef | None) -> None:
    """Raise InvalidInput for a file whose name says that another write made it.

    Vacuum relies on the name, and the fence on the write: a file of an older write could be deleted before
    its commit.
    """
    for file in files:
        match = _OWN.fullmatch(file.path)
        if match is not None and (write is None or (int(match[1]), match[2]) != (write.version, write.id)):
            raise InvalidInput(
                f"the data file {file.path} was not written by "
                + (
                    f"write {write.id} from version {write.version}"
                    if write
                    else "this write, which has no id"
                )
                + ": begin a write, and name its files as it requires"
            )


def of_write(files: Sequence[DataFile], write: WriteRef | None) -> list[DataFile]:
    """Return `files` with the id of the write that they belong to, whatever id their writer gave."""
    if write is None:
        return list(files)
    return [
        file if file.write_id == write.id else msgspec.structs.replace(file, write_id=write.id)
        for file in files
    ]


def check_files(
    files: Sequence[DataFile], schema: Schema, specs: Mapping[int, PartitionSpec] | Iterable[PartitionSpec]
) -> None:
    """Raise InvalidInput for a file with which the table could not be read correctly.

    A missing partition value would be read as NULL, so all fields of the file's spec are required, and no
    other fields. Values and bounds must be of their types. No file may be added twice.
    """
    specs_by_id = {spec.id: spec for spec in (specs.values() if isinstance(specs, Mapping) else specs)}
    for file in files:
        spec = specs_by_id.get(file.spec_id)
        if spec is None:
            raise InvalidInput(
                f"the data file {file.path} names the partition spec {file.spec_id}, which the table does not have"
            )
        if file.partition.keys() != {field.id for field in spec.fields}:
            raise InvalidInput(
                f"the data file {file.path} has values for the partition fields {sorted(file.partition)}, but its spec "
                f"{spec.id} has the fields {sorted(field.id for field in spec.fields)}"
            )
        if file.rows < 0 or file.size_bytes < 0 or not file.path:
            raise InvalidInput(
                f"the data file {file.path!r} has {file.rows} rows and {file.size_bytes} bytes: give it a path, and "
                "numbers of at least 0"
            )
    if len({file.path for file in files}) < len(files):
        raise InvalidInput("one commit adds a data file twice: name each file once")
    if files:
        files_to_arrow(files, schema, specs_by_id)


def files_to_arrow(
    files: Sequence[DataFile], schema: Schema, specs: Mapping[int, PartitionSpec] | Iterable[PartitionSpec]
) -> pa.Table:
    """Return `files` as a table.

    `schema` and `specs` are those that the files were written with, or of their commit. Statistics of columns
    that are not in `schema` are left out. Raises InvalidInput for values of the wrong type.
    """
    arrays: list[pa.Array] = [
        pa.array([file.path for file in files], pa.string()),
        pa.array([file.size_bytes for file in files], pa.int64()),
        pa.array([file.rows for file in files], pa.int64()),
        pa.array([file.spec_id for file in files], pa.int32()),
        pa.array([file.write_id for file in files], pa.string()),
    ]
    names: list[str] = list(BASE_SCHEMA.names)
    for name, numbers in (
        (CRC, [file.crc for file in files]),
        (FOOTER, [file.footer_crc for file in files]),
        (FIRST_ROW, [file.first_row for file in files]),
        (VERSION, [file.version for file in files]),
        (CURVE, [file.curve for file in files]),
        (CURVE_LOW, [file.curve_low for file in files]),
        (CURVE_HIGH, [file.curve_high for file in files]),
    ):
        if any(number is not None for number in numbers):
            names.append(name)
            arrays.append(pa.array(numbers, pa.int64()))
    for name, texts in (
        (NAMES, [None if file.names is None else names_to_json(file.names) for file in files]),
        (CONSTANTS, [constants_to_json(file.constants) if file.constants else None for file in files]),
        (DELETES, [None if file.deletes is None else deletes_to_json(file.deletes) for file in files]),
    ):
        if any(text is not None for text in texts):
            names.append(name)
            arrays.append(pa.array(texts, pa.string()))
    if DELETES in names:
        names.append(DELETED)
        arrays.append(
            pa.array([None if file.deletes is None else file.deletes.rows for file in files], pa.int64())
        )
    for id, type in _partition_types(specs).items():
        if any(id in file.partition for file in files):
            names.append(f"p{id}")
            arrays.append(to_arrow([file.partition.get(id) for file in files], type))
    unknown = ColumnStats()
    for id in sorted({id for file in files for id in file.stats}):
        stats = [file.stats.get(id, unknown) for file in files]
        column = _value_type_of(schema, id)
        if column is not None:
            names += (f"lo{id}", f"hi{id}")
            arrays.append(to_arrow([column_stats.min for column_stats in stats], column))
            arrays.append(to_arrow([column_stats.max for column_stats in stats], column))
            if any(column_stats.nans is not None for column_stats in stats):
                names.append(f"nans{id}")
                arrays.append(pa.array([column_stats.nans for column_stats in stats], pa.int64()))
        names.append(f"nulls{id}")
        arrays.append(pa.array([column_stats.nulls for column_stats in stats], pa.int64()))
    return pa.Table.from_arrays(arrays, names=names)


def files_from_arrow(table: pa.Table) -> list[DataFile]:
    """Return the rows of such a table as files.

    A NULL partition value is left out, because it may belong to a field that the file's spec does not have.
    `DataFile.partition` means the same either way.
    """
    rows = table.num_rows
    columns = {name: from_arrow(table[name].combine_chunks()) for name in table.column_names}
    partitions: list[dict[int, Any]] = [{} for _ in range(rows)]
    stats: list[dict[int, dict[str, Any]]] = [{} for _ in range(rows)]
    for name, values in columns.items():
        kind, id = split_name(name)
        if kind == "p":
            for partition, value in zip(partitions, values, strict=True):
                if value is not None:
                    partition[id] = value
        elif kind in _STATS:
            for file_stats, value in zip(stats, values, strict=True):
                if value is not None:
                    file_stats.setdefault(id, {})[_STATS[kind]] = value
    writes = columns.get("write") or [""] * rows
    checksums, footers, names_texts, constant, deletes, first, versions, curves, lows, highs = (
        columns.get(name) or [None] * rows
        for name in (
            CRC,
            FOOTER,
            NAMES,
            CONSTANTS,
            DELETES,
            FIRST_ROW,
            VERSION,
            CURVE,
            CURVE_LOW,
            CURVE_HIGH,
        )  # fmt: skip
    )
    return [
        DataFile(
            path=columns["path"][row],
            size_bytes=columns["size"][row],
            rows=columns["rows"][row],
            spec_id=columns["spec"][row],
            partition=partitions[row],
            stats={id: ColumnStats(**file_stats) for id, file_stats in stats[row].items()},
            write_id=writes[row],
            crc=checksums[row],
            footer_crc=footers[row],
            names=None if names_texts[row] is None else names_from_json(names_texts[row]),
            constants={} if constant[row] is None else constants_from_json(constant[row]),
            deletes=None if deletes[row] is None else deletes_from_json(deletes[row]),
            first_row=first[row],
            version=versions[row],
            curve=curves[row],
            curve_low=lows[row],
            curve_high=highs[row],
        )
        for row in range(rows)
    ]


def physical_rows(files: pa.Table) -> pa.Array:
    """Return how many rows each file holds, deleted rows included."""
    rows = files["rows"].combine_chunks()
    if DELETED not in files.column_names:
        return rows
    return pc.add(rows, pc.fill_null(files[DELETED].combine_chunks(), 0))


def encode_files(
    files: Sequence[DataFile] | pa.Table,
    schema: Schema,
    specs: Mapping[int, PartitionSpec] | Iterable[PartitionSpec],
) -> bytes:
    """Return `files` as the bytes of a sidecar."""
    return encode_table(files if isinstance(files, pa.Table) else files_to_arrow(files, schema, specs))


def decode_files(blob: bytes) -> pa.Table:
    """Return the table that `encode_files` wrote.

    Raises FormatError if it is broken, or has other columns or values.
    """
    return EncodedFiles(blob).table()


class EncodedFiles:
    """The bytes of `encode_files`, decoded by column. Statistics of all columns are most of a long list."""

    def __init__(self, blob: bytes) -> None:
        """Raises FormatError if it is broken, or has other columns.

        Values are checked once they are decoded.
        """
        self._encoded = EncodedTable(blob)
        check_columns(self._encoded.names)
        absent_names = [field.name for field in BASE_SCHEMA if field.name not in self._encoded.names]
        if absent_names:
            raise FormatError(
                f"a list of data files lacks the columns {', '.join(absent_names)}: another program wrote it"
            )

    def names(self, statistics: Collection[int] | None) -> list[str]:
        """Return the columns that a plan needs of a list of files (see `is_planned`); None stands for all."""
        return [name for name in self._encoded.names if statistics is None or is_planned(name, statistics)]

    def table(self, names: Collection[str] | None = None, rows: pa.Array | None = None) -> pa.Table:
        """Return some of the columns, or all; with `rows`, only these rows.

        Raises FormatError if the returned columns have invalid values.
        """
        table = self._encoded.columns(self._encoded.names if names is None else names)
        return checked_values(table if rows is None else table.take(rows))

    def paths(self) -> pa.Table:
        """Return the paths, only to compare them: nothing checks that they are paths."""
        return self._encoded.columns(["path"])


def check_columns(names: Collection[str]) -> None:
    """Raise UnsupportedFormat for a column that no list of files has.

    A reader that ignored it could miss what it says, as with an unknown member of an event. Raises
    FormatError if `deleted` or `deletes` is there alone.
    """
    unknown_names = [name for name in names if name not in _COLUMNS and not _FLAT.fullmatch(name)]
    if unknown_names:
        raise UnsupportedFormat(
            f"a list of data files has the columns {shortened(', '.join(unknown_names))}, which this version of "
            "lakelog does not know: upgrade lakelog to read it"
        )
    if (DELETED in names) != (DELETES in names):
        raise FormatError(
            f"a list of data files has the column {DELETED} or {DELETES} alone: another program wrote it"
        )


def checked_values(table: pa.Table) -> pa.Table:
    """Return columns of files. Raises FormatError for values that no list of files may have."""
    check_list(table, _COLUMNS)
    for name in table.column_names:
        if split_name(name)[0] in ("nulls", "nans"):
            check_list(table.select([name]), {name: pa.int64()})
    for name, reader in _READ.items():
        for text in table[name].drop_null().to_pylist() if name in table.column_names else ():
            reader(text)
    if DELETES in table.column_names:
        deleted_rows = [
            None if text is None else deletes_from_json(text).rows for text in table[DELETES].to_pylist()
        ]
        if DELETED in table.column_names and table[DELETED].to_pylist() != deleted_rows:
            raise FormatError(
                "a list of data files has other numbers of deleted rows than its vectors: another program wrote it"
            )
    return table


def is_planned(name: str, statistics: Collection[int]) -> bool:
    """Return whether a plan that uses the `statistics` of these columns, by their ids, needs a column.

    Partition values are always needed, because to leave them out would mean NULL.
    """
    kind, id = split_name(name)
    return name in _PLANNED or kind == "p" or (kind != "" and id in statistics)


def is_judged(name: str, statistics: Collection[int]) -> bool:
    """Return whether a column is needed to judge files by partitions and the `statistics` of these
    columns.
    """
    kind, id = split_name(name)
    return name in _JUDGED or kind == "p" or (kind != "" and id in statistics)


def encode_removed(files: Iterable[RemovedFile]) -> bytes:
    """Return removed files as the bytes of a sidecar."""
    file_list = list(files)
    arrays = [
        [file.path for file in file_list],
        [file.rows for file in file_list],
        [file.size_bytes for file in file_list],
    ]
    return encode_table(pa.table(arrays, schema=_REMOVED_SCHEMA))


def decode_removed(blob: bytes) -> list[RemovedFile]:
    """Return the files that `encode_removed` wrote. Raises FormatError if the bytes are broken."""
    table = decode_table(blob)
    if table.schema.names != _REMOVED_SCHEMA.names:
        raise FormatError("a list of removed files has other columns than path, rows and size")
    check_list(table, _COLUMNS)
    columns = (column.to_pylist() for column in table.columns)
    return [
        RemovedFile(path=path, rows=rows, size_bytes=size) for path, rows, size in zip(*columns, strict=True)
    ]


@lru_cache(maxsize=10_000)
def split_name(name: str) -> tuple[str, int]:
    """Return kind and id of a flat column (`lo12` → `lo`, 12); the kind is empty for other columns."""
    match = _FLAT.fullmatch(name)
    return ("", -1) if match is None else (match[1], int(match[2]))


_FLAT = re.compile(r"(p|lo|hi|nulls|nans)(0|[1-9][0-9]{0,9})")
_STATS = {"lo": "min", "hi": "max", "nulls": "nulls", "nans": "nans"}


def _partition_types(specs: Mapping[int, PartitionSpec] | Iterable[PartitionSpec]) -> dict[int, pa.DataType]:
    spec_list = specs.values() if isinstance(specs, Mapping) else specs
    return {field.id: value_type(field.result) for spec in spec_list for field in spec.fields}


def _value_type_of(schema: Schema, id: int) -> pa.DataType | None:
    return value_type(schema.field_by_id(id).type) if schema.has_id(id) else None

"""Files of other writers become files of a table, at their place.

Their columns are matched to the table's once. Columns are matched by name (case-insensitive) at every level.
Ids that other writers gave to fields are ignored. From then on the file's entry has the names by column id,
so columns may be renamed, dropped and added later. Columns that a file lacks may be in the names of its
folders, as in Hive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files.data_file import ColumnStats, DataFile, files_to_arrow
from lakelog.catalog.core.files.manifest_bounds import EXACT_BELOW_BYTES
from lakelog.catalog.core.files.statistics import lower_text, upper_text
from lakelog.catalog.core.parquet.proofs import new_checks
from lakelog.catalog.core.planning.pruning import may_fail
from lakelog.catalog.core.schema.generated import refuse_generated
from lakelog.catalog.core.schema.identity import refuse_identity
from lakelog.catalog.core.schema.literals import (
    from_arrow,
    single_type,
    to_arrow,
    value_type,
)
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import PartitionField
from lakelog.catalog.core.schema.properties.known import ICEBERG, ICEBERG_ON
from lakelog.catalog.core.schema.schema import dotted
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.type_widening import is_widening
from lakelog.catalog.core.schema.types import (
    KEY,
    AtomicType,
    ColumnPath,
    Default,
    Field,
    ListType,
    MapType,
    StructType,
    Type,
    TypedValue,
    children,
)
from lakelog.log.errors import InvalidInput, Unsupported

_OF_A_TABLE = re.compile(r"(?:^|/)\d{20}-[a-z2-7]{26}-[^/]+\.parquet$")
_INTEGERS = ("byte", "short", "integer", "long")
_FLOATS = ("float", "double")
_TIMES = ("date", "timestamp", "timestamp_ntz")

NOT_THERE = "__not_in_this_file"
"""The suffix of the names under which Spark's reader searches for columns that a file does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A Parquet file elsewhere, as its footer and its folders describe it.

    `path` is absolute. `partition` has a JSON literal of the table's column for each name in the file's
    folders. `stats` are by path in the file, of columns and fields of structs. Bounds are there only if
    lakelog would have written the same. `old_calendar` says that days before the year 1582 are in the Julian
    calendar.
    """

    path: str
    size_bytes: int
    rows: int
    columns: StructType
    partition: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[ColumnPath, ColumnStats] = field(default_factory=dict)
    footer_crc: int | None = None
    old_calendar: bool = False


def data_files(
    found_files: Sequence[FoundFile],
    metadata: Metadata,
    location: str | None,
    *,
    ignore_extra_columns: bool = False,
) -> list[DataFile]:
    """Return entries for `found_files` in the table at `location`, None for a table without a place yet.

    Raises InvalidInput if any of them does not fit the table.
    """
    refuse_generated(
        metadata.schema, "insert those of the files by INSERT INTO … SELECT in Spark, rather than adding them"
    )
    if ICEBERG.of(metadata.properties) == ICEBERG_ON:
        raise Unsupported(
            f"the property {ICEBERG.name} is {ICEBERG_ON}, and readers of Iceberg would not find the columns of other "
            "writers' files: insert their rows by a query, or set the property to on-demand"
        )
    refuse_identity(metadata.schema, "insert the files' rows by a query, rather than adding them")
    if len({file.path for file in found_files}) < len(found_files):
        raise InvalidInput("the list of files to add has a file twice: name each file once")
    files = [_Fitting(file, metadata, location, ignore_extra_columns).entry() for file in found_files]
    _check_conditions(files, metadata)
    return files


def _check_conditions(files: Sequence[DataFile], metadata: Metadata) -> None:
    """Raise unless the bounds of the files prove that all of their rows satisfy the table's CHECKs."""
    for requirement in new_checks(msgspec.structs.replace(metadata, constraints=()), metadata):
        file_table = files_to_arrow(files, metadata.schema, metadata.specs)
        for file, fails in zip(
            files, may_fail(file_table, requirement.condition, metadata.specs).to_pylist(), strict=True
        ):
            if fails:
                raise InvalidInput(
                    f"the file {file.path} cannot be added: its footer does not prove that its rows satisfy "
                    f"{requirement.words}; insert its rows by a query instead"
                )


class _Fitting:
    """Matches a file to the table."""

    def __init__(self, file: FoundFile, metadata: Metadata, location: str | None, ignore_extra: bool) -> None:
        self._file = file
        self._metadata = metadata
        self._ignores_extra = ignore_extra
        self._in_key = False
        self._names: dict[int, str] = {}
        self._constants: dict[int, TypedValue] = {}
        self._stats: dict[int, ColumnStats] = {}
        is_inside = location is not None and file.path.startswith(f"{location}/")
        if is_inside or _OF_A_TABLE.search(file.path):
            self._refuse(
                "belongs to a lakelog table, whose vacuum may delete it: insert its rows by a query instead"
            )

    def entry(self) -> DataFile:
        file, fields = self._file, self._metadata.schema.fields
        self._take_constants(fields)
        other_fields = [table_field for table_field in fields if table_field.id not in self._constants]
        constant_names = {
            table_field.name.lower() for table_field in fields if table_field.id in self._constants
        }
        columns = [
            table_field
            for table_field in file.columns.fields
            if table_field.name.lower() not in constant_names
        ]
        self._match(other_fields, columns, (), ())
        if file.old_calendar and any(part.type.name in _TIMES for part in _atoms(file.columns.fields)):
            self._refuse("has dates or times of the old Julian calendar: rewrite it with Spark 3 or later")
        return DataFile(
            path=file.path,
            size_bytes=file.size_bytes,
            rows=file.rows,
            spec_id=self._metadata.spec.id,
            partition={
                table_field.id: self._partition_value(table_field)
                for table_field in self._metadata.spec.fields
            },
            stats=self._stats,
            footer_crc=file.footer_crc,
            names=self._names,
            constants=self._constants,
        )

    def _refuse(self, why: str) -> None:
        raise InvalidInput(f"the file {self._file.path} cannot be added: it {why}")

    # Columns

    def _take_constants(self, fields: Sequence[Field]) -> None:
        by_name = {table_field.name.lower(): table_field for table_field in fields}
        for name, value in self._file.partition.items():
            column = by_name.get(name.lower())
            if column is None:
                if not self._ignores_extra:
                    self._refuse(
                        f"is in a folder of the partition column {dotted((name,))}, which the table does not have: "
                        "add the column, or set ignore_extra_columns"
                    )
                continue
            if not isinstance(column.type, AtomicType) or value_type(column.type) is None:
                raise Unsupported(f"{dotted((name,))} is {column.type}, which a folder's name cannot hold")
            if value is None and not column.nullable:
                self._refuse(f"has no value for {column.name}, which is NOT NULL")
            type = single_type(column.type)
            assert type is not None, "it has values"
            if column.type.family in ("char", "varchar") and value is not None:
                if len(value) > column.type.length:
                    self._refuse(f"has {value!r} for {column.name}, which is {column.type}")
                value = value.ljust(column.type.length) if column.type.family == "char" else value
            self._constants[column.id] = TypedValue(type=type.name, value=value)
            self._stats[column.id] = _stats_of(value, type, self._file.rows)

    def _match(
        self, fields: Sequence[Field], parts: Sequence[Field], path: ColumnPath, in_file: ColumnPath | None
    ) -> None:
        """Find `fields`, siblings of the table, among `parts`, siblings in the file, and their nested fields.

        `in_file` is the path of the parts in the file, None below a list or map.
        """
        places: dict[str, Field] = {}
        for part in parts:
            if part.name.endswith(NOT_THERE):
                self._refuse(
                    f"has the column {dotted((*path, part.name))}, a name that is reserved for lakelog's Spark adapter"
                )
        for part in parts:
            twin = places.setdefault(part.name.lower(), part)
            if twin is not part:
                self._refuse(
                    f"has the columns {dotted((*path, twin.name))} and {dotted((*path, part.name))}, which differ in "
                    "upper and lower case only"
                )
        for field_ in fields:
            field_path = (*path, field_.name)
            file_part = places.pop(field_.name.lower(), None)
            if file_part is None:
                self._check_missing(field_, field_path)
                continue
            self._names[field_.id] = file_part.name
            self._fit(field_, file_part, field_path, None if in_file is None else (*in_file, file_part.name))
        if places and (self._in_key or not self._ignores_extra):
            names = ", ".join(dotted((*path, part.name)) for part in places.values())
            if self._in_key:
                self._refuse(
                    f"has {names}, without which two keys of a map may be equal: add the columns first"
                )
            self._refuse(
                f"has {names}, which the table does not have: add the columns first, or set ignore_extra_columns"
            )

    def _check_missing(self, field_: Field, path: ColumnPath) -> None:
        default = field_.default or Default()
        if not field_.nullable and default.exists is None:
            self._refuse(f"lacks the column {dotted(path)}, which is NOT NULL")
        if single_type(field_.type) is None and default.current not in (None, "NULL"):
            self._refuse(
                f"lacks the column {dotted(path)}, whose default {default.current} is for new rows alone"
            )

    def _fit(self, field_: Field, part: Field, path: ColumnPath, in_file: ColumnPath | None) -> None:
        stats = None if in_file is None else self._file.stats.get(in_file)
        if not field_.nullable and part.nullable and (stats is None or stats.nulls != 0):
            nulls = "may hold" if stats is None or stats.nulls is None else f"holds {stats.nulls:,}"
            self._refuse(f"{nulls} NULLs in {dotted(path)}, which is NOT NULL")
        match field_.type, part.type:
            case AtomicType() as wanted, AtomicType() as there:
                self._check_atomic(wanted, there, path)
                if stats is not None:
                    self._stats[field_.id] = converted_stats(stats, there, wanted)
            case StructType() as wanted, StructType() as there:
                self._match(wanted.fields, there.fields, path, in_file)
            case (ListType(), ListType()) | (MapType(), MapType()):
                in_key = self._in_key
                for inner, inner_part in zip(children(field_.type), children(part.type), strict=True):
                    self._in_key = in_key or isinstance(part.type, MapType) and inner.name == KEY
                    self._fit(inner, inner_part, (*path, inner.name), None)
                self._in_key = in_key
            case _:
                self._mismatch(field_.type, part.type, path)

    def _check_atomic(
        self, wanted_atomic_type: AtomicType, atomic_type: AtomicType, path: ColumnPath
    ) -> None:
        if wanted_atomic_type.family in ("char", "varchar"):
            self._refuse(
                f"has {atomic_type} for {dotted(path)}, which is {wanted_atomic_type}: "
                "a footer does not show whether the texts fit"
            )
        if wanted_atomic_type.family == "variant" or not is_widening(atomic_type, wanted_atomic_type):
            self._mismatch(wanted_atomic_type, atomic_type, path)

    def _mismatch(self, wanted_type: Type, other_type: Type, path: ColumnPath) -> None:
        self._refuse(
            f"has {other_type} for {dotted(path)}, which is {wanted_type} and cannot be read from {other_type}"
        )

    # Partitions

    def _partition_value(self, part: PartitionField) -> Any:
        """Return the value that all rows of the file have. Raises InvalidInput if it is not known."""
        schema = self._metadata.schema
        source = schema.field_by_id(part.source_id)
        type, rows = single_type(source.type), self._file.rows
        assert type is not None, "only single values are transformed"
        constant, stats = self._constants.get(source.id), self._stats.get(source.id)
        if constant is not None:
            bounds = [constant.value]
        elif source.id not in self._names:
            exists = None if source.default is None else source.default.exists
            if exists is not None:
                self._refuse(f"lacks {source.name}, by whose default the table is partitioned")
            bounds = [None]
        elif rows == 0 or (stats is not None and stats.nulls == rows):
            bounds = [None]
        elif stats is None or not _is_of_all_rows(stats, part, type):
            bounds = []
        else:
            bounds = [stats.min, stats.max]
        column = value_type(type)
        assert column is not None
        values = from_arrow(apply_transform(part.transform, to_arrow(bounds, column), type))
        if len(set(map(repr, values))) != 1:
            self._refuse(
                f"does not prove that all of its rows have one value of the partition field {part.name}: write it "
                f"into folders named {source.name}=<value>, or insert its rows by a query"
            )
        return values[0]


def _atoms(fields: Sequence[Field]) -> Iterator[Any]:
    for child in fields:
        if isinstance(child.type, AtomicType):
            yield child
        yield from _atoms(children(child.type))


def _stats_of(value: Any, type: AtomicType, rows: int) -> ColumnStats:
    if value is None:
        return ColumnStats(nulls=rows)
    if type.name in _FLOATS or type.name == "binary":
        return ColumnStats(nulls=0)
    if _is_text(type):
        return ColumnStats(nulls=0, min=lower_text(value), max=upper_text(value))
    return ColumnStats(nulls=0, min=value, max=value)


def converted_stats(
    stats: ColumnStats, atomic_type: AtomicType, wanted_atomic_type: AtomicType
) -> ColumnStats:
    """Return statistics of a file's column as those of the table's column.

    Bounds are kept only if they mean the same.
    """
    both_whole = atomic_type.name in _INTEGERS and wanted_atomic_type.name in _INTEGERS
    if (atomic_type == wanted_atomic_type or both_whole) and atomic_type.name not in _FLOATS:
        return stats
    return ColumnStats(nulls=stats.nulls)


def _is_text(type: AtomicType) -> bool:
    return type.name in ("string", "binary")


def _is_of_all_rows(stats: ColumnStats, part: PartitionField, type: AtomicType) -> bool:
    """Return whether all rows have the partition value that both bounds lead to."""
    if stats.nulls != 0 or stats.min is None or stats.max is None:
        return False
    keeps_order = part.transform.name != "bucket" and not _is_text(type)
    return keeps_order or _is_exact(stats, type)


def _is_exact(stats: ColumnStats, type: AtomicType) -> bool:
    """Return whether both bounds are the same value, which was not truncated."""
    if stats.min != stats.max:
        return False
    return not _is_text(type) or (
        isinstance(stats.min, str) and len(stats.min.encode("utf-8")) < EXACT_BELOW_BYTES
    )


def literal_of(text: str | None, type: Type) -> Any:
    """Return the JSON literal of a value in a folder's name.

    Raises InvalidInput if it is not of that type.
    """
    column = value_type(type)
    if text is None or column is None:
        return None
    try:
        values = pa.array([text], pa.string())
        if pa.types.is_timestamp(column):
            values = values.cast(pa.timestamp("us"))
        return from_arrow(values.cast(column))[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"{text!r}, in the name of a folder, is not a valid {type}: {error}") from None

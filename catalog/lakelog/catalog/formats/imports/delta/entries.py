"""Files of a Delta table as entries of a lakelog table: names of columns, constants, bounds, deleted rows.

Rule: the log of the source is enough, with two exceptions. A file's footer is read if the log lacks its
number of rows, or if Parquet's field ids identify its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo
from itertools import groupby
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.parquet import open_parquet
from lakelog.catalog.core.schema import (
    AtomicType,
    Field,
    TypedValue,
    children,
    dotted,
    single_type,
)
from lakelog.catalog.formats.imports.delta.actions import AddAction
from lakelog.catalog.formats.imports.delta.definition import DeltaDefinition
from lakelog.catalog.formats.imports.delta.partition_values import literal_of
from lakelog.catalog.formats.imports.delta.statistics import StatisticsReader
from lakelog.catalog.formats.imports.delta.vectors import read_deletes
from lakelog.log import OpenUrl
from lakelog.log.costs import TallyThreads
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, Unsupported

FILES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class _Looked:
    """The content of a footer. `names` has column names by id; it is None if the log knows them."""

    rows: int
    crc: int | None
    names: dict[int, str] | None


class DeltaEntries:
    """Makes entries of the files of a table. `names` has the columns' names in files, by id.

    `definitions` are those of all versions that are read. A file may have columns of any version, also as its
    partition. `known` has entries of an earlier import by path, whose footers are not read again.
    """

    def __init__(
        self,
        table: str,
        open_url: OpenUrl,
        names: Mapping[int, str],
        definitions: Sequence[DeltaDefinition],
        zone: tzinfo | None,
        known_files: Mapping[str, DataFile],
    ) -> None:
        self._table = table
        self._open_url = open_url
        self._names = names
        distinct = [definition for definition, _ in groupby(definitions)]
        self._by_field_id = [definition for definition in distinct if definition.field_ids]
        self._partition_columns = {
            column.id: column for definition in distinct for column in definition.partition
        }
        self._names_by_constants: dict[frozenset[int], dict[int, str]] = {}
        self._zone = zone
        self._known = known_files

    def of(self, adds: Mapping[str, AddAction], definition: DeltaDefinition) -> tuple[DataFile, ...]:
        """Return entries of files by their paths.

        Makes a GET request for each vector that is not in the log, and for each file whose footer is needed.
        """
        statistics = StatisticsReader(definition.schema, self._names)

        def entry(path: str) -> DataFile:
            return self._entry(path, adds[path], definition, statistics)

        paths: Sequence[str] = list(adds)
        if not any(self._needs_a_look(add, definition) for add in adds.values()):
            return tuple(map(entry, paths))
        with TallyThreads(FILES_AT_ONCE, thread_name_prefix="lakelog-delta") as pool:
            return tuple(pool.map(entry, paths))

    def _needs_a_look(self, add: AddAction, definition: DeltaDefinition) -> bool:
        vector = add.deletion_vector
        return (
            bool(definition.field_ids)
            or (vector is not None and vector.storage_type != "i")
            or (add.stats is None and add.parsed is None)
        )

    def _entry(
        self,
        path: str,
        add: AddAction,
        definition: DeltaDefinition,
        statistics: StatisticsReader,
    ) -> DataFile:
        vector = add.deletion_vector
        file_stats = statistics.of(add.stats, add.parsed, has_vector=vector is not None)
        constants, partition = self._partition(path, add, definition)
        rows, crc, names = file_stats.rows, None, self._names_beside(constants)
        if rows is None or definition.field_ids:
            footer = self._looked(path, add, definition)
            rows, crc = footer.rows, footer.crc
            if footer.names is not None:
                names = {id: name for id, name in footer.names.items() if id not in constants}
        if add.size < 0:
            raise FormatError(f"the log of {self._table} gives the file {path} {add.size} bytes")
        deletes = None
        if vector is not None and vector.cardinality:
            deletes = read_deletes(vector, path, rows, self._table, self._open_url)
        return DataFile(
            path=path,
            size_bytes=add.size,
            rows=rows - (0 if deletes is None else deletes.rows),
            spec_id=definition.spec.id,
            partition=partition,
            stats={id: stats for id, stats in file_stats.columns.items() if id not in constants},
            footer_crc=crc,
            names=names,
            constants=constants,
            deletes=deletes,
            first_row=add.base_row_id,
        )

    def _names_beside(self, constants: Iterable[int]) -> dict[int, str]:
        """Return the names of the other columns in files. Files with the same constants share a mapping."""
        inside = frozenset(constants)
        if inside not in self._names_by_constants:
            self._names_by_constants[inside] = {
                id: name for id, name in self._names.items() if id not in inside
            }
        return self._names_by_constants[inside]

    def _partition(
        self, path: str, add: AddAction, definition: DeltaDefinition
    ) -> tuple[dict[int, TypedValue], dict[int, Any]]:
        constants: dict[int, TypedValue] = {}
        values: dict[int, Any] = {}
        for column in definition.partition:
            if column.physical not in add.partition_values:
                raise FormatError(
                    f"the log of the Delta table {self._table} has no value of the partition column "
                    f"{dotted((column.name,))} for the file {path}"
                )
            text = add.partition_values[column.physical]
            try:
                value = literal_of(text, column.type, self._zone)
            except InvalidInput as error:
                kind = Unsupported if isinstance(error, Unsupported) else InvalidInput
                raise kind(
                    f"the file {path} of the Delta table {self._table} cannot be imported: its value of the partition "
                    f"column {dotted((column.name,))} is not one: {error.message}"
                ) from None
            constants[column.id] = _constant(value, column.type)
            values[column.field_id] = value
        for id, column in self._partition_columns.items():
            if id not in constants and column.physical in add.partition_values:
                # In another version, the column has a different type.
                with suppress(InvalidInput):
                    value = literal_of(add.partition_values[column.physical], column.type, self._zone)
                    constants[id] = _constant(value, column.type)
        return constants, values

    # Footers

    def _looked(self, path: str, add: AddAction, definition: DeltaDefinition) -> _Looked:
        """Return the content of a file's footer. Raises NotFound or FormatError, with the table and the file."""
        known_file = self._known.get(path)
        if known_file is not None and known_file.size_bytes == add.size:
            names = known_file.names if definition.field_ids else None
            return _Looked(known_file.physical_rows, known_file.footer_crc, names)
        store, key = self._open_url(path)
        try:
            with store.open_input(key) as source:
                file = open_parquet(source, add.size, None)
                names = None
                if definition.field_ids:
                    names = self._names_in(file.schema_arrow)
                return _Looked(file.metadata.num_rows, None, names)
        except NotFound:
            raise NotFound(
                f"the data file {path} of the Delta table {self._table} is not there: its vacuum may have deleted it; "
                "import fewer versions"
            ) from None
        except (pa.ArrowException, OSError, FormatError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = error.message if isinstance(error, LakelogError) else error
            raise FormatError(
                f"the data file {path} of the Delta table {self._table} cannot be read ({reason}): it was truncated or "
                "altered"
            ) from error

    def _names_in(self, schema: pa.Schema) -> dict[int, str]:
        """Return the names of columns in a file by their ids, from its field ids.

        Raises FormatError if it has none.
        """
        if not any(_field_id(field) is not None for field in schema):
            raise FormatError("its columns have no field ids, by which the table knows them")
        names: dict[int, str] = {}
        for field in self._by_field_id:
            names |= _matched(field.schema.fields, list(schema), field.field_ids)
        return names


def _constant(value: Any, type: AtomicType) -> TypedValue:
    plain = single_type(type)
    assert plain is not None, "partition columns have single values"
    return TypedValue(type=plain.name, value=value)


def _matched(
    fields: tuple[Field, ...], parts: Sequence[pa.Field], field_ids: Mapping[int, int]
) -> Iterator[tuple[int, str]]:
    by_id = {_field_id(part): part for part in parts}
    for field in fields:
        part = by_id.get(field_ids.get(field.id))
        if part is not None:
            yield field.id, part.name
            yield from _below(field, part.type, field_ids)


def _below(field: Field, type: pa.DataType, field_ids: Mapping[int, int]) -> Iterator[tuple[int, str]]:
    """Yield the struct fields in a column, also through lists and maps, whose parts have no names."""
    inner = children(field.type)
    if pa.types.is_struct(type):
        yield from _matched(inner, list(type), field_ids)
    elif pa.types.is_map(type) and len(inner) == 2:
        for part, part_type in zip(inner, (type.key_type, type.item_type), strict=True):
            yield from _below(part, part_type, field_ids)
    elif (pa.types.is_list(type) or pa.types.is_large_list(type)) and len(inner) == 1:
        yield from _below(inner[0], type.value_type, field_ids)


def _field_id(field: pa.Field) -> int | None:
    id = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if id is None else int(id)

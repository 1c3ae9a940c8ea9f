"""Files of a Delta table as entries of a lakelog table: names of columns, constants, bounds, deleted rows.

Rule: the log of the source is enough. A file itself is looked at only where the log does not say how many rows it has,
or where its columns are known by Parquet's field ids, and then its footer only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo
from itertools import groupby
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.files import Constant, DataFile
from lakelog.catalog.core.parquet import open_parquet
from lakelog.catalog.core.schema import AtomicType, Field, children, dotted
from lakelog.catalog.formats.imports.delta.actions import Add
from lakelog.catalog.formats.imports.delta.definition import Definition
from lakelog.catalog.formats.imports.delta.partition_values import literal_of
from lakelog.catalog.formats.imports.delta.statistics import Statistics
from lakelog.catalog.formats.imports.delta.vectors import read_deletes
from lakelog.log import OpenUrl
from lakelog.log.costs import Threads
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, Unsupported

FILES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a footer says: `names` are those of columns by their ids, None where the log knows them."""

    rows: int
    crc: int | None
    names: dict[int, str] | None


class Entries:
    """Makes entries of the files of one table, whose columns are called `names` in files, by id.

    `definitions` are those of all versions that are read: a file may have columns of any, also as its partition.
    `known` has entries of an earlier import by path, whose footers need not be read again.
    """

    def __init__(
        self,
        table: str,
        open_url: OpenUrl,
        names: Mapping[int, str],
        definitions: Sequence[Definition],
        zone: tzinfo | None,
        known: Mapping[str, DataFile],
    ) -> None:
        self._table = table
        self._open_url = open_url
        self._names = names
        distinct = [each for each, _ in groupby(definitions)]
        self._by_field_id = [each for each in distinct if each.field_ids]
        self._partition_columns = {column.id: column for each in distinct for column in each.partition}
        self._names_by_constants: dict[frozenset[int], dict[int, str]] = {}
        self._zone = zone
        self._known = known

    def of(self, adds: Mapping[str, Add], definition: Definition) -> tuple[DataFile, ...]:
        """Return entries of files by their paths. Costs a GET for each vector that is not in the log, and for each file
        that has to be looked at."""
        statistics = Statistics(definition.schema, self._names)

        def entry(path: str) -> DataFile:
            return self._entry(path, adds[path], definition, statistics)

        paths: Sequence[str] = list(adds)
        if not any(self._needs_a_look(add, definition) for add in adds.values()):
            return tuple(map(entry, paths))
        with Threads(FILES_AT_ONCE, thread_name_prefix="lakelog-delta") as pool:
            return tuple(pool.map(entry, paths))

    def _needs_a_look(self, add: Add, definition: Definition) -> bool:
        vector = add.deletion_vector
        return (
            bool(definition.field_ids)
            or (vector is not None and vector.storage_type != "i")
            or (add.stats is None and add.parsed is None)
        )

    def _entry(
        self,
        path: str,
        add: Add,
        definition: Definition,
        statistics: Statistics,
    ) -> DataFile:
        vector = add.deletion_vector
        known = statistics.of(add.stats, add.parsed, has_vector=vector is not None)
        constants, partition = self._partition(path, add, definition)
        rows, crc, names = known.rows, None, self._names_beside(constants)
        if rows is None or definition.field_ids:
            looked = self._looked(path, add, definition)
            rows, crc = looked.rows, looked.crc
            if looked.names is not None:
                names = {id: name for id, name in looked.names.items() if id not in constants}
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
            stats={id: stats for id, stats in known.columns.items() if id not in constants},
            footer_crc=crc,
            names=names,
            constants=constants,
            deletes=deletes,
            first_row=add.base_row_id,
        )

    def _names_beside(self, constants: Iterable[int]) -> dict[int, str]:
        """Return what files call the other columns: one mapping for all of them."""
        inside = frozenset(constants)
        if inside not in self._names_by_constants:
            self._names_by_constants[inside] = {
                id: name for id, name in self._names.items() if id not in inside
            }
        return self._names_by_constants[inside]

    def _partition(
        self, path: str, add: Add, definition: Definition
    ) -> tuple[dict[int, Constant], dict[int, Any]]:
        constants: dict[int, Constant] = {}
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
                # Another version has this column in place of one of another type.
                with suppress(InvalidInput):
                    value = literal_of(add.partition_values[column.physical], column.type, self._zone)
                    constants[id] = _constant(value, column.type)
        return constants, values

    # Footers

    def _looked(self, path: str, add: Add, definition: Definition) -> _Looked:
        """Return what the file itself says. NotFound, FormatError, naming table and file."""
        before = self._known.get(path)
        if before is not None and before.size_bytes == add.size:
            names = before.names if definition.field_ids else None
            return _Looked(before.physical_rows, before.footer_crc, names)
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
            said = error.message if isinstance(error, LakelogError) else error
            raise FormatError(
                f"the data file {path} of the Delta table {self._table} cannot be read ({said}): it was truncated or "
                "altered"
            ) from error

    def _names_in(self, schema: pa.Schema) -> dict[int, str]:
        """Return what a file calls the columns, by their ids, where it has their field ids. FormatError without any."""
        if not any(_field_id(each) is not None for each in schema):
            raise FormatError("its columns have no field ids, by which the table knows them")
        found: dict[int, str] = {}
        for each in self._by_field_id:
            found |= _matched(each.schema.fields, list(schema), each.field_ids)
        return found


def _constant(value: Any, type: AtomicType) -> Constant:
    plain = AtomicType("string") if type.family in ("char", "varchar") else type
    return Constant(type=plain.name, value=value)


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
    """Yield the fields of structs in a column, through lists and maps, whose parts have no names."""
    inner = children(field.type)
    if pa.types.is_struct(type):
        yield from _matched(inner, list(type), field_ids)
    elif pa.types.is_map(type) and len(inner) == 2:
        for part, each in zip(inner, (type.key_type, type.item_type), strict=True):
            yield from _below(part, each, field_ids)
    elif (pa.types.is_list(type) or pa.types.is_large_list(type)) and len(inner) == 1:
        yield from _below(inner[0], type.value_type, field_ids)


def _field_id(field: pa.Field) -> int | None:
    id = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if id is None else int(id)

"""Entries of an Iceberg table's data files. The ids in a file's footer say which column is which.

Bounds come from the footer too, under the rules for files of other writers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.files import ColumnStats, DataFile
from lakelog.catalog.core.parquet import NOT_THERE, converted_stats, read_footer
from lakelog.catalog.core.schema import (
    AtomicType,
    Field,
    PartitionSpec,
    Schema,
    Type,
    TypedValue,
    children,
    dotted,
    is_list,
    is_widening,
    type_from_arrow,
)
from lakelog.catalog.formats.imports.iceberg.client_columns import RESERVED_FROM, check_client_columns, id_of
from lakelog.catalog.formats.imports.iceberg.manifests import IcebergEntry
from lakelog.log import OpenUrl
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

_TIMES = ("date", "timestamp", "timestamp_ntz")


class FooterReader:
    """Reads footers of the files of the table at `url`. `mapping` has ids by names, for files without ids.

    With `is_of_client`, a client of Iceberg writes the files for lakelog's own table. They have all of their columns,
    and no row ids of their own.
    """

    def __init__(
        self,
        url: str,
        open_url: OpenUrl,
        mapping: Sequence[Mapping[str, Any]] | None,
        *,
        is_of_client: bool = False,
    ) -> None:
        self._is_of_client = is_of_client
        self._url = url
        self._open_url = open_url
        self._mapping = mapping

    def entry(self, name: str, entry: IcebergEntry, schema: Schema, spec: PartitionSpec) -> DataFile:
        """Return the entry of a data file, without deleted rows. Makes at most 2 GET requests."""
        store, key = self._open_url(name)
        try:
            footer, arrow, old_times = read_footer(store, name, key, entry.size_bytes, {})
        except NotFound:
            if self._is_of_client:
                raise NotFound(f"there is no {name}: write it before the commit") from None
            raise NotFound(
                f"the Iceberg table at {self._url} has the data file {name}, which is not there: it has expired in the "
                "source, or was moved. Import newer metadata, or fewer versions"
            ) from None
        if footer.rows != entry.rows:
            raise InvalidInput(
                f"the file {name} of the source has {footer.rows:,} rows, and its manifest says {entry.rows:,}: it was "
                "written anew since"
            )
        clash, names, types = _shape(arrow.serialize().to_pybytes())
        if clash is not None:
            raise Unsupported(
                f"the file {name} of the source has the columns {' and '.join(clash)}, which readers of lakelog do not "
                "distinguish: rewrite it there"
            )
        if footer.old_calendar and any(atom.name in _TIMES for atom in _atoms(footer.columns.fields)):
            raise Unsupported(
                f"the file {name} of the source has dates or times of the old Julian calendar: rewrite it with Spark 3 "
                "or later"
            )
        if self._is_of_client:
            check_client_columns(name, arrow, schema)
            if old_times:
                raise Unsupported(
                    f"the file {name} has times of the deprecated type INT96: write microseconds"
                )
        elif not names:
            names = self._mapped(arrow, name)
            types = self._mapped_types(arrow)
        columns = {field.id: field for _, field in schema.walk()}
        for id, type_in_file in types.items():
            if id in columns:
                self._check(
                    name, dotted(schema.path_of(id)), columns[id].type, type_in_file, old_times, names[id]
                )
        constants = _constants(entry, spec, schema, names)
        if self._is_of_client:
            _check_all_written(name, constants, schema)
        stats = {}
        for column in schema.fields:
            column_stats = footer.stats.get((names.get(column.id, ""),))
            stats_type = types.get(column.id)
            if (
                column_stats is not None
                and isinstance(stats_type, AtomicType)
                and isinstance(column.type, AtomicType)
            ):
                stats[column.id] = converted_stats(column_stats, stats_type, column.type)
        for field in schema.fields:
            if not field.nullable:
                self._check_values(name, field, stats, names, constants)
                if self._is_of_client and field.id in names and arrow.field(names[field.id]).nullable:
                    _check_proven(name, field, stats)
        return DataFile(
            path=name,
            size_bytes=entry.size_bytes,
            rows=entry.rows,
            spec_id=entry.spec_id,
            partition=dict(entry.partition),
            stats=stats,
            footer_crc=footer.footer_crc,
            names=names,
            constants=constants,
        )

    def ids(self, file: DataFile) -> Set[int]:
        """Return the ids of the fields that a file of the table may have values of. Makes at most 2 GET requests.

        A file of another writer has them in its entry, without a request.
        """
        if file.names is not None:
            return file.names.keys() | file.constants.keys()
        name = f"{self._url}/{file.path}"
        store, key = self._open_url(name)
        _, arrow, _ = read_footer(store, name, key, file.size_bytes, {})
        return dict(_named(arrow)).keys()

    def _check(
        self, name: str, column: str, wanted: Any, there: Any, old_times: frozenset[str], in_file: str
    ) -> None:
        if not isinstance(wanted, AtomicType) or not isinstance(there, AtomicType):
            if type(wanted) is type(there):
                return
        elif is_widening(there, wanted) or (wanted.name == "timestamp" and in_file in old_times):
            return
        raise Unsupported(
            f"the file {name} of the source has {there} for the column {column}, which is {wanted} and cannot be read "
            "from it: rewrite the source's data files, or copy its rows by CREATE TABLE … AS SELECT"
        )

    def _check_values(
        self,
        name: str,
        field: Field,
        stats: Mapping[int, ColumnStats],
        names: Mapping[int, str],
        constants: Mapping[int, TypedValue],
    ) -> None:
        """Raise InvalidInput if a file has NULLs of a required column."""
        if field.id in constants:
            holds = constants[field.id].value is None
        elif field.id in names:
            column_stats = stats.get(field.id)
            holds = column_stats is not None and bool(column_stats.nulls)
        else:
            holds = field.default is None or field.default.exists is None
        if holds:
            raise InvalidInput(
                f"the file {name} of the source has NULLs in {dotted((field.name,))}, which is required there: it "
                "cannot be imported before its rows are as its columns say"
            )

    def _mapped(self, arrow: pa.Schema, name: str) -> dict[int, str]:
        """Return the names of columns by their ids in a file without ids."""
        if self._mapping is None:
            raise Unsupported(
                f"the file {name} of the source has no ids of columns, and the source has no property "
                "schema.name-mapping.default, which says what they are called: set it there, or rewrite the file"
            )
        return dict(_by_mapping(arrow, self._mapping))

    def _mapped_types(self, arrow: pa.Schema) -> dict[int, Type]:
        """Return the types of the top-level columns of a file without ids, by id."""
        top = [{**mapped_field, "fields": ()} for mapped_field in self._mapping or ()]
        return {id: type_from_arrow(arrow.field(name).type, (name,)) for id, name in _by_mapping(arrow, top)}


@lru_cache(maxsize=1024)
def _shape(serialized_data: bytes) -> tuple[tuple[str, str] | None, dict[int, str], dict[int, Type]]:
    """Return names that clash, the names of columns by their ids, and the types of top-level columns by id.

    Most files of a table have the same schema, which is read once.
    """
    arrow = pa.ipc.read_schema(pa.py_buffer(serialized_data))
    clash = _clash(arrow)
    names = {} if clash is not None else dict(_named(arrow))
    return clash, names, _types(arrow, names)


def _clash(fields: Any) -> tuple[str, str] | None:
    """Return two siblings of the same name, for readers that do not distinguish upper and lower case."""
    names: dict[str, str] = {}
    for field in fields:
        same_name = names.get(field.name.lower(), NOT_THERE if field.name.endswith(NOT_THERE) else None)
        if same_name is not None:
            return same_name, field.name
        names[field.name.lower()] = field.name
        if pa.types.is_struct(field.type):
            below = _clash([field.type.field(i) for i in range(field.type.num_fields)])
            if below is not None:
                return below
    return None


def _check_proven(name: str, field: Field, stats: Mapping[int, ColumnStats]) -> None:
    """Raise InvalidInput unless the footer proves that a column has no NULLs."""
    if field.id not in stats or stats[field.id].nulls != 0:
        raise InvalidInput(
            f"the footer of {name} does not prove that {dotted((field.name,))} has no NULLs, which is required: write "
            "the column as required, or with statistics"
        )


def _check_all_written(name: str, constants: Mapping[int, TypedValue], schema: Schema) -> None:
    """Raise Unsupported if a file lacks a partition column, whose value an export would not show."""
    if constants:
        missing = dotted(schema.path_of(min(constants)))
        raise Unsupported(f"the file {name} lacks the partition column {missing}: write all columns")


def _atoms(fields: Sequence[Field]) -> Iterator[AtomicType]:
    for field in fields:
        if isinstance(field.type, AtomicType):
            yield field.type
        yield from _atoms(children(field.type))


def _named(fields: Any) -> Iterator[tuple[int, str]]:
    """Yield the ids of struct fields at any depth, with their names."""
    for field in fields:
        id = _id_of(field)
        if id is not None:
            yield id, field.name
        yield from _below(field.type)


def _below(type: pa.DataType) -> Iterator[tuple[int, str]]:
    if pa.types.is_struct(type):
        yield from _named([type.field(i) for i in range(type.num_fields)])
    elif is_list(type):
        yield from _below(type.value_type)
    elif pa.types.is_map(type):
        yield from _below(type.key_type)
        yield from _below(type.item_type)


def _id_of(field: pa.Field) -> int | None:
    id = id_of(field)
    return id if id is not None and 0 < id < RESERVED_FROM else None


def _by_mapping(fields: Any, mapping: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    fields_by_name = {
        name: mapped_field for mapped_field in mapping for name in mapped_field.get("names", ())
    }
    for field in fields:
        mapped = fields_by_name.get(field.name)
        if mapped is None:
            continue
        if "field-id" in mapped:
            yield mapped["field-id"], field.name
        yield from _mapped_below(field.type, mapped.get("fields", ()))


def _mapped_below(type: pa.DataType, mapping: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    inner = {name: mapped_field for mapped_field in mapping for name in mapped_field.get("names", ())}
    if pa.types.is_struct(type):
        yield from _by_mapping([type.field(i) for i in range(type.num_fields)], mapping)
    elif is_list(type):
        yield from _mapped_below(type.value_type, inner.get("element", {}).get("fields", ()))
    elif pa.types.is_map(type):
        yield from _mapped_below(type.key_type, inner.get("key", {}).get("fields", ()))
        yield from _mapped_below(type.item_type, inner.get("value", {}).get("fields", ()))


def _types(arrow: pa.Schema, names: Mapping[int, str]) -> dict[int, Type]:
    """Return the types of the top-level columns of a file, by id."""
    return {
        id: type_from_arrow(arrow.field(name).type, (name,))
        for id, name in names.items()
        if arrow.get_field_index(name) >= 0 and _id_of(arrow.field(name)) == id
    }


def _constants(
    entry: IcebergEntry, spec: PartitionSpec, schema: Schema, names: Mapping[int, str]
) -> dict[int, TypedValue]:
    """Return the values of partition columns that the file lacks."""
    constants = {}
    top = {field.id for field in schema.fields}
    for field in spec.fields:
        if field.transform.name == "identity" and field.source_id in top and field.source_id not in names:
            constants[field.source_id] = TypedValue(type=field.result.name, value=entry.partition[field.id])
    return constants

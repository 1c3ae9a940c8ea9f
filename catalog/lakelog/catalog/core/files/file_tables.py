"""Arrow tables of data files: joined though their columns differ, filtered by path, kept in tiers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import BASE_SCHEMA, split_name
from lakelog.log.errors import FormatError
from lakelog.log.grammar import shortened

TIER_RATIO = 2
"""A table that is kept is at least this many times as long as the next one; so there are log2(n) of them."""

LONG = 100_000
"""A table of so many rows stays as it is: a copy of it costs more than one chunk more for every plan."""


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return all rows of `tables` as one table without chunks. A column that was widened gets its widest type."""
    if not tables:
        return empty()
    if len(tables) == 1:
        return tables[0].combine_chunks()
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables).combine_chunks()
    types: dict[str, pa.DataType] = {}
    for table in tables:
        for field in table.schema:
            known = types.get(field.name)
            types[field.name] = field.type if known is None else _wider(known, field.type)
    return pa.concat_tables(
        [_converted(table, types) for table in tables], promote_options="default"
    ).combine_chunks()


def without(table: pa.Table, paths: Collection[str] | pa.Array) -> pa.Table:
    """Return the rows of `table` whose path is not in `paths`; `table` itself when all stay."""
    if not len(paths) or not table.num_rows:
        return table
    value_set = paths if isinstance(paths, pa.Array) else pa.array(list(paths), pa.string())
    gone = pc.is_in(table["path"], value_set=value_set)
    return table.filter(pc.invert(gone)) if pc.any(gone).as_py() else table


def tiered(tables: Sequence[pa.Table]) -> tuple[pa.Table, ...]:
    """Return `tables` with the last ones joined until every one is longer than the next by `TIER_RATIO`, or `LONG`."""
    kept = [table for table in tables if table.num_rows]
    if not kept:
        return ()
    first, length = len(kept) - 1, kept[-1].num_rows
    while first > 0 and kept[first - 1].num_rows < min(TIER_RATIO * length, LONG):
        first -= 1
        length += kept[first].num_rows
    return (*kept[:first], joined(kept[first:]))


def grouped(tables: Iterable[pa.Table]) -> tuple[pa.Table, ...]:
    """Return the same rows in the same order in tables of at least `LONG` rows, and the rest in a last one: each costs
    a plan some time."""
    found: list[pa.Table] = []
    group: list[pa.Table] = []
    length = 0
    for table in tables:
        if table.num_rows:
            group.append(table)
            length += table.num_rows
        if length >= LONG:
            found.append(joined(group))
            group, length = [], 0
    return (*found, joined(group)) if group else tuple(found)


def in_order(files: pa.Table, columns: Sequence[int]) -> pa.Table:
    """Return files in the order of their partitions, and within these of the lower bounds of `columns`, by their ids:
    files that a filter needs are then near to one another. Those that are equal stay as they are."""
    fields = sorted(id for kind, id in map(split_name, files.column_names) if kind == "p")
    names = [*(f"p{id}" for id in fields), *(f"lo{id}" for id in columns)]
    keys = [name for name in names if name in files.column_names and not pa.types.is_null(files[name].type)]
    if pc.count_distinct(files["spec"]).as_py() > 1:
        keys = ["spec", *keys]
    if not keys:
        return files
    try:
        return files.take(pc.sort_indices(files, sort_keys=[(name, "ascending") for name in keys]))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
        return files  # of a type that another client has made up: an order is not needed


def empty() -> pa.Table:
    """Return the table of no files."""
    return BASE_SCHEMA.empty_table()


def with_rows(files: pa.Table) -> pa.Table:
    """Return the files that have live rows: the others stand for partitions that were added without any."""
    return files.filter(pc.greater(files["rows"], 0))


def converted(column: pa.ChunkedArray | pa.Array, type: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Return statistics or partition values, stored in a type that the column had once, in the type that it has now.

    Types only ever widen, so this cannot fail on what lakelog wrote. What cannot be converted all the same is an
    error (pa.ArrowInvalid, pa.ArrowNotImplementedError), never a wrong value.
    """
    return column if column.type == type else column.cast(type)


def _converted(table: pa.Table, types: dict[str, pa.DataType]) -> pa.Table:
    for index, field in enumerate(table.schema):
        wanted = types[field.name]
        if field.type != wanted:
            try:
                column = converted(table.column(index), wanted)
            except pa.ArrowException as error:
                raise FormatError(
                    f"lists of files have {field.type} and {wanted} in their columns {field.name} "
                    f"({shortened(str(error))}): find out which client wrote them"
                ) from error
            table = table.set_column(index, field.name, column)
    return table


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return one if _width(one) >= _width(other) else other


def _width(type: pa.DataType) -> int:
    """Rank the types that a column may have had; only those that widening leads to one another are ever compared."""
    if pa.types.is_decimal(type):
        return 1000 + int(type.precision)
    if pa.types.is_timestamp(type):
        return 100
    return int(type.bit_width) if pa.types.is_primitive(type) else 0

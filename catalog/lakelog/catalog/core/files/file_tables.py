"""Arrow tables of data files: joined though their columns differ, filtered by path, kept in tiers. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import BASE_SCHEMA, split_name
from lakelog.log.errors import FormatError
from lakelog.log.grammar import shortened

TIER_RATIO = 2
"""A table that is kept is at least this many times as long as the next table. So there are log2(n) tables."""

LONG = 100_000
"""A table of so many rows stays as it is, because a copy of it costs more than another chunk for every plan.
"""


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return all rows of `tables` as a table without chunks.

    A column that was widened gets its widest type. After a rollback, a column may widen another way than before.
    Then it gets the later table's type. Its bounds in tables of the other types are not known, because a value of
    one of these may not be exact in another.
    """
    if not tables:
        return empty()
    if len(tables) == 1:
        return tables[0].combine_chunks()
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables).combine_chunks()
    types: dict[str, pa.DataType] = {}
    for table in tables:
        for field in table.schema:
            column_type = types.get(field.name)
            if column_type is None or not _widens(field.type, column_type):
                types[field.name] = field.type
    return pa.concat_tables(
        [_converted(table, types) for table in tables], promote_options="default"
    ).combine_chunks()


def without(table: pa.Table, paths: Collection[str] | pa.Array) -> pa.Table:
    """Return the rows of `table` whose path is not in `paths`; `table` itself if all stay."""
    if not len(paths) or not table.num_rows:
        return table
    value_set = paths if isinstance(paths, pa.Array) else pa.array(list(paths), pa.string())
    in_paths = pc.is_in(table["path"], value_set=value_set)
    return table.filter(pc.invert(in_paths)) if pc.any(in_paths).as_py() else table


def check_distinct(tables: Sequence[pa.Table]) -> None:
    """Raise FormatError if a path is there twice: a reader would return the rows of that file twice."""
    paths = _paths_of(tables)
    if len(pc.unique(paths)) == len(paths):
        return
    counts = pc.value_counts(paths.combine_chunks())
    [path] = counts.filter(pc.greater(counts.field("counts"), 1)).slice(0, 1).field("values").to_pylist()
    raise live_twice(path)


def live_twice(path: str) -> FormatError:
    """Return the error about a file that a commit has added although it was live."""
    return FormatError(
        f"the file {shortened(path)} is live twice, because a commit has added a file that was live before: run "
        "lakelog fsck, find that commit with lakelog history, and roll the table back to a version before it"
    )


def are_apart(base: Sequence[pa.Table], new: Sequence[pa.Table]) -> bool:
    """Return whether no path of `new` is in `base` or twice in `new`."""
    if not new:
        return True
    paths = _paths_of(new)
    own_paths = pc.unique(paths)
    return len(own_paths) == len(paths) and not any(
        pc.any(pc.is_in(table["path"], value_set=own_paths)).as_py() for table in base
    )


def _paths_of(tables: Sequence[pa.Table]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for table in tables for chunk in table["path"].chunks], pa.string())


def tiered(tables: Sequence[pa.Table]) -> tuple[pa.Table, ...]:
    """Return `tables` with the last tables joined, so that they are tiers.

    Each is then at least `TIER_RATIO` times as long as the next, or `LONG`.
    """
    full_tables = [table for table in tables if table.num_rows]
    if not full_tables:
        return ()
    first, length = len(full_tables) - 1, full_tables[-1].num_rows
    while first > 0 and full_tables[first - 1].num_rows < min(TIER_RATIO * length, LONG):
        first -= 1
        length += full_tables[first].num_rows
    return (*full_tables[:first], joined(full_tables[first:]))


def grouped(tables: Iterable[pa.Table]) -> tuple[pa.Table, ...]:
    """Return the same rows in the same order, in tables of at least `LONG` rows and a last table.

    Fewer tables are better, because each costs a plan some time.
    """
    long_tables: list[pa.Table] = []
    group: list[pa.Table] = []
    length = 0
    for table in tables:
        if table.num_rows:
            group.append(table)
            length += table.num_rows
        if length >= LONG:
            long_tables.append(joined(group))
            group, length = [], 0
    return (*long_tables, joined(group)) if group else tuple(long_tables)


def in_order(files: pa.Table, columns: Sequence[int]) -> pa.Table:
    """Return files in the order of their partitions, and within these of the lower bounds of `columns`.

    `columns` are ids. So files that a filter needs are near to each other. Equal files keep their order.
    """
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
    """Return the files that have live rows.

    Other files stand for partitions that were added without any rows.
    """
    return files.filter(pc.greater(files["rows"], 0))


def converted(column: pa.ChunkedArray | pa.Array, type: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Return statistics or partition values in the column's present type, from an earlier type.

    Types only ever widen, so this cannot fail on statistics that lakelog wrote. A value that cannot be
    converted all the same is an error (pa.ArrowInvalid, pa.ArrowNotImplementedError), never a wrong value.
    """
    return column if column.type == type else column.cast(type)


def _converted(table: pa.Table, types: dict[str, pa.DataType]) -> pa.Table:
    for index, field in enumerate(table.schema):
        type = types[field.name]
        if field.type == type:
            continue
        if _BOUND.fullmatch(field.name) and not _widens(field.type, type):
            column = pa.nulls(table.num_rows, type)
        else:
            try:
                column = converted(table.column(index), type)
            except pa.ArrowException as error:
                raise FormatError(
                    f"lists of files have {field.type} and {type} in their columns {field.name} "
                    f"({shortened(str(error))}): find out which client wrote them"
                ) from error
        table = table.set_column(index, field.name, column)
    return table


_BOUND = re.compile(r"p?(?:lo|hi)[0-9]+")
"""The columns with bounds of files or of manifests."""


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether a column's type may widen so (see catalog/README.md), or not change."""
    if pa.types.is_integer(old):
        if pa.types.is_integer(new):
            return bool(old.bit_width <= new.bit_width)
        if pa.types.is_decimal(new):
            return bool(new.precision - new.scale >= (10 if old.bit_width <= 32 else 20))
        return bool(old.bit_width <= 32 and pa.types.is_float64(new))
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale <= new.scale and old.precision - old.scale <= new.precision - new.scale)
    if pa.types.is_date(old):
        return bool(old == new or pa.types.is_timestamp(new))
    if pa.types.is_float32(old):
        return bool(old == new or pa.types.is_float64(new))
    return bool(old == new or pa.types.is_null(old))

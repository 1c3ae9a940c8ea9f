"""Which statistics of a file the log keeps: of a wide table, not those of all columns.

Plans read what is kept, and what they lack only makes them read more, so a table of hundreds of columns must not make
each entry as long as all of them. What a file itself has is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.schema import ALL_COLUMNS, STATISTICS, AtomicType, Metadata, columns_named, dotted

FIRST_COLUMNS = 32


def columns_with_statistics(metadata: Metadata) -> frozenset[int] | None:
    """Return the ids of the columns of which files' statistics are kept; None for all.

    They are the first 32 columns with values (of nested ones, those inside), those by which rows are partitioned,
    sorted or clustered, those of keys and CHECKs, those that are NOT NULL, and those that the table's property names.
    """
    schema = metadata.schema
    if schema.last_id <= FIRST_COLUMNS:
        return None
    named = set(columns_named(metadata.properties, STATISTICS))
    if ALL_COLUMNS in named:
        return None
    columns = [(path, field) for path, field in schema.walk() if isinstance(field.type, AtomicType)]
    if len(columns) <= FIRST_COLUMNS:
        return None
    kept = {field.id for _, field in columns[:FIRST_COLUMNS]}
    kept.update(part.source_id for spec in metadata.specs for part in spec.fields)
    kept.update(order.source_id for order in metadata.sort_order.fields)
    kept.update(metadata.clustering)
    kept.update(id for constraint in metadata.constraints for id in constraint.columns)
    for path, field in columns:
        if not field.nullable or _is_named(path, named):
            kept.add(field.id)
    return frozenset(kept)


def _is_named(path: Sequence[str], named: set[str]) -> bool:
    """Return whether a column, or one that it is a part of, is among the named ones."""
    return any(dotted(path[:depth]) in named for depth in range(1, len(path) + 1))


def with_kept_statistics(files: Iterable[DataFile], metadata: Metadata) -> list[DataFile]:
    """Return the entries of new files as the log keeps them."""
    kept = columns_with_statistics(metadata)
    if kept is None:
        return list(files)
    return [
        msgspec.structs.replace(file, stats={id: stats for id, stats in file.stats.items() if id in kept})
        for file in files
    ]

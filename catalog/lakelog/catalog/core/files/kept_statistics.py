"""Which statistics of a file the log keeps: for a wide table, not those of all columns.

A table of hundreds of columns must not make each entry as long as all of them. Plans read the kept
statistics, and a missing statistic only makes them read more. The statistics in a file itself do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.properties.known import ALL_COLUMNS, STATISTICS
from lakelog.catalog.core.schema.schema import dotted
from lakelog.catalog.core.schema.types import AtomicType

FIRST_COLUMNS = 32


def columns_with_statistics(metadata: Metadata) -> frozenset[int] | None:
    """Return the ids of the columns whose statistics are kept for each file; None for all.

    They are the first 32 columns with values (of nested columns, those inside), and the columns of
    partitions, sort order and clustering. The columns of keys and CHECKs, the NOT NULL columns, and the
    columns that the table's property names are added.
    """
    schema = metadata.schema
    if schema.last_id <= FIRST_COLUMNS:
        return None
    property_names = set(STATISTICS.of(metadata.properties))
    if ALL_COLUMNS in property_names:
        return None
    columns = [(path, field) for path, field in schema.walk() if isinstance(field.type, AtomicType)]
    if len(columns) <= FIRST_COLUMNS:
        return None
    column_ids = {field.id for _, field in columns[:FIRST_COLUMNS]}
    column_ids.update(part.source_id for spec in metadata.specs for part in spec.fields)
    column_ids.update(order.source_id for order in metadata.sort_order.fields)
    column_ids.update(metadata.clustering)
    column_ids.update(id for constraint in metadata.constraints for id in constraint.columns)
    for path, field in columns:
        if not field.nullable or _is_named(path, property_names):
            column_ids.add(field.id)
    return frozenset(column_ids)


def _is_named(path: Sequence[str], named: set[str]) -> bool:
    """Return whether a column, or a column that it is a part of, is among the names."""
    return any(dotted(path[:depth]) in named for depth in range(1, len(path) + 1))


def with_kept_statistics(files: Iterable[DataFile], metadata: Metadata) -> list[DataFile]:
    """Return the entries of new files as the log keeps them."""
    column_ids = columns_with_statistics(metadata)
    if column_ids is None:
        return list(files)
    return [
        msgspec.structs.replace(
            file, stats={id: stats for id, stats in file.stats.items() if id in column_ids}
        )
        for file in files
    ]

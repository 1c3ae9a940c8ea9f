"""Clustering: columns by which the rows of a write are spread over its files, so that few files hold similar rows.

No file says how it was clustered, so the columns may be changed at any time; statistics show what files hold. A
table's clustering is a list of column ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakelog.catalog.schema.partitioning import IDENTITY, SortField, SortOrder, sort_order_from
from lakelog.catalog.schema.schema import Schema, dotted
from lakelog.log.errors import InvalidInput


def clustering_from(
    columns: Sequence[str | Sequence[str]], schema: Schema, *, case_sensitive: bool = False
) -> tuple[int, ...]:
    """Return the ids of the columns, each the name of one or the names that lead to a field of structs.

    NoSuchColumn; InvalidInput for one that is named twice, or whose values have no order.
    """
    paths = [[column] if isinstance(column, str) else list(column) for column in columns]
    wanted = [{"transform": IDENTITY.name, "column": path} for path in paths]
    ids = [field.source_id for field in sort_order_from(wanted, schema, case_sensitive=case_sensitive).fields]
    for index, id in enumerate(ids):
        if id in ids[:index]:
            raise InvalidInput(f"the clustering names {dotted(paths[index])} twice: leave one out")
    return tuple(ids)


def order_within_files(clustering: Sequence[int], sort_order: SortOrder) -> SortOrder:
    """Return the order of the rows in a new file: by the clustering first, then as the sort order says."""
    clustered = tuple(SortField(source_id=id) for id in clustering)
    return msgspec.structs.replace(sort_order, fields=(*clustered, *sort_order.fields))

"""Plans of the files that an engine reads or rewrites, and the facts that it needs before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.files import TableEstimates
from lakelog.catalog.core.logs import WarehouseStores
from lakelog.catalog.core.planning import TopRows, bind
from lakelog.catalog.core.planning import left_out_by_partition as count_left_out
from lakelog.catalog.core.schema import Filter, as_predicate, values_json
from lakelog.catalog.core.state import ClusteringTarget, CompactionTarget, FileGroup
from lakelog.catalog.core.writes import compaction_commit, delete, file_changes, known_taken, matching_files
from lakelog.catalog.engine.operations import of_table
from lakelog.catalog.table import Table
from lakelog.catalog.table_version import TableVersion


@of_table
def plan(table: TableVersion, predicate: Filter | None = None, *, top: TopRows | None = None) -> pa.Table:
    """Return the data files that may hold rows matching `predicate`.

    Without it, return the files that may hold `top` rows.
    """
    return table.table_head.plan(predicate, top)


@of_table
def left_out_by_partition(table: TableVersion, predicate: Filter, planned: int) -> int | None:
    """Return how many files a plan of `planned` files has left out by its conditions on partitioned columns.

    None if counting them takes a read.
    """
    bound, left_out_count = bind(as_predicate(predicate), table.schema), table.file_count - planned
    return count_left_out(
        table.table_head.state.files, bound, table.table_head.metadata.specs, left_out_count
    )


@of_table
def plan_partial(table: TableVersion, predicate: Filter) -> pa.Table:
    """Return the data files in which an overwrite by this filter may replace some rows, but not all.

    A condition that lakelog does not understand may be true of any row.
    """
    return matching_files(table.table_head, bind(as_predicate(predicate), table.schema), in_part=True)[1]


@of_table
def can_delete(table: TableVersion, filter: Filter) -> bool:
    """Return whether `Table.delete` with this filter removes whole files only."""
    predicate = as_predicate(filter)
    table.table_head.note_rows_read(predicate)
    return delete.is_by_files(table.table_head, predicate)


def can_overwrite(table: TableVersion, filter: Filter) -> bool:
    """Return whether `Table.overwrite` accepts this filter.

    It does if lakelog knows exactly which rows match.
    """
    return file_changes.is_understood(as_predicate(filter), table.schema)


@of_table
def identity_values(table: TableVersion) -> list[dict[str, Any]]:
    """Return the next value of each identity column, `{"column": id, "next": value}`, as far as known here."""
    return values_json(table.schema, known_taken(table.table_head))


def estimates(table: TableVersion) -> TableEstimates | None:
    """Return the last result of `compute_statistics`, by column id; None if it was never run."""
    return table.table_head.state.estimates


# Compaction and clustering


@of_table
def plan_compaction(
    table: TableVersion, goal: CompactionTarget, filter: Filter | None, *, until: int, limit_bytes: int
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the files to rewrite next, and their groups, for `commit_compaction`."""
    return compaction_commit.plan_groups(table.table_head, goal, filter, until=until, limit_bytes=limit_bytes)


@of_table
def plan_clustering(
    table: TableVersion, goal: ClusteringTarget, filter: Filter | None, *, until: int, key: Sequence[int]
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the files to put in order next, and their groups, for `commit_compaction`.

    Raises DoneInPart if the table is no longer clustered by the columns `key`.
    """
    from lakelog.catalog.keeping.upkeep import plan_next as plan_next_clustering

    return plan_next_clustering(table.table_head, goal, filter, until=until, key=key)


@of_table
def clustering_overlap(table: TableVersion) -> float:
    """Return how many files a look-up of a value of each column of `CLUSTER BY` reads, on average.

    0 for a table that is not clustered.
    """
    from lakelog.catalog.keeping.upkeep import overlap_of

    return overlap_of(table.table_head.all_files(), table.metadata) or 0.0


@of_table
def ranked(table: Table, *, dry_run: bool = False) -> Table:
    """Return the newest version, with boundaries along which `plan_clustering` can divide its rows.

    Raises InvalidInput if the table is not clustered, also in a dry run.
    """
    from lakelog.catalog.keeping.upkeep import check_clustered
    from lakelog.catalog.keeping.upkeep import ranked as with_ranks

    head = table._writable("cluster").refreshed()
    check_clustered(head)
    return table._with(head if dry_run else with_ranks(head))


# Stores


def places(catalog: CatalogNames) -> WarehouseStores:
    """Return the stores that a catalog reads and writes. Tests can wrap them in a store that counts."""
    return catalog._logs.places

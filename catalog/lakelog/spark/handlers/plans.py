"""Reading a table that was loaded."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.planning import Aggregate, TopRows, partition_values
from lakelog.catalog.core.schema import PartitionSpec, apply_changes
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.read_together import read_together as versions_together
from lakelog.log.costs import Tally, tallied
from lakelog.log.errors import LakelogError, Unsupported
from lakelog.spark.arrow_streams import files_in_arrow, in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import plans as ask
from lakelog.spark.requests.base import Done, Possible


def plan(at: OpenCatalog, asked: ask.Plan) -> tuple[ask.Planned, Beside]:
    top = None if asked.top is None else TopRows(**msgspec.structs.asdict(asked.top))
    cost = Tally()
    with tallied(cost):
        table = at.loaded(asked)
        planned = table.plan(asked.predicate, top=top)
    deleted = pc.sum(planned["deleted"], min_count=0).as_py() if "deleted" in planned.column_names else 0
    answer = ask.Planned(
        files=table.file_count,
        deleted=deleted,
        requests=cost.requests.total(),
        bytes=cost.bytes_read,
        by_partition=table.left_out_by_partition(asked.predicate, planned.num_rows),
    )
    return answer, files_in_arrow(planned, _keys(planned, table.specs, asked.keys))


def _keys(planned: pa.Table, specs: Sequence[PartitionSpec], ids: Sequence[int]) -> list[pa.Array]:
    """Return the values of partition fields of each file; none where not all files are partitioned by all of them."""
    if not ids:
        return []
    complete = [spec.id for spec in specs if {field.id for field in spec.fields} >= set(ids)]
    if not pc.all(pc.is_in(planned["spec"], value_set=pa.array(complete, pa.int32())), min_count=0).as_py():
        return []
    fields = {field.id: field for spec in specs for field in spec.fields}
    return [partition_values(planned, fields[id]) for id in ids]


def plan_cut(at: OpenCatalog, asked: ask.PlanCut) -> tuple[Done, Beside]:
    return Done(), files_in_arrow(at.loaded(asked).plan_partial(asked.predicate))


def read_together(at: OpenCatalog, asked: ask.ReadTogether) -> ask.Versions:
    """One table that is `settled` cannot move any more. CommitConflict where it has to."""
    found = versions_together([at.handles.loaded(table, asked.transaction) for table in asked.tables])
    for table, reference in zip(found, asked.tables, strict=True):
        if reference.settled not in (-1, table.version):
            raise CommitConflict(
                f"{table.name} changed to version {table.version} while the statement that reads it was prepared: "
                "run it again",
                version=table.version,
            )
        at.handles.remember(table, asked.transaction, past=False, step=reference.step)
    return ask.Versions(versions=tuple(table.version for table in found))


def can_delete(at: OpenCatalog, asked: ask.CanDelete) -> Possible:
    try:
        return Possible(possible=at.loaded(asked).can_delete(asked.predicate))
    except Unsupported:
        # Spark has its own words for a condition that a table cannot delete by.
        return Possible(possible=False)


def can_overwrite(at: OpenCatalog, asked: ask.CanOverwrite) -> Possible:
    return Possible(possible=at.loaded(asked).can_overwrite(asked.predicate))


def can_change(at: OpenCatalog, asked: ask.CanChange) -> Possible:
    try:
        apply_changes(at.loaded(asked).metadata, (asked.change,))
    except LakelogError:
        return Possible(possible=False)
    return Possible(possible=True)


def aggregate(at: OpenCatalog, asked: ask.Aggregate) -> tuple[ask.Known, bytes]:
    wanted = [Aggregate(kind=each.kind, column=each.column) for each in asked.aggregates]
    found = at.loaded(asked).scan().aggregate(wanted, asked.group_by)
    if found is None:
        return ask.Known(known=False), b""
    return ask.Known(known=True), in_arrow(found.schema, found.to_batches())

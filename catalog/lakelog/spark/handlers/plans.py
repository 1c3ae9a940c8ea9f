"""Reading a loaded table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog import Aggregate, PartitionSpec, Predicate, engine
from lakelog.catalog.engine import TopRows, apply_changes, partition_values
from lakelog.catalog.errors import CommitConflict
from lakelog.log.costs import CostTally, tallied
from lakelog.log.errors import LakelogError, Unsupported
from lakelog.spark.arrow_streams import files_in_arrow, in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import plans as ask
from lakelog.spark.requests.base import EmptyAnswer, PossibleAnswer


def plan(at: ServedCatalog, asked: ask.PlanFiles) -> tuple[ask.PlanFacts, Beside]:
    top = None if asked.top is None else TopRows(**msgspec.structs.asdict(asked.top))
    cost = CostTally()
    # Read once: a join may give thousands of values at run time.
    predicate = Predicate.from_json(asked.predicate)
    with tallied(cost):
        table = at.loaded(asked)
        planned_files = engine.plan(table, predicate, top=top)
    deleted = (
        pc.sum(planned_files["deleted"], min_count=0).as_py()
        if "deleted" in planned_files.column_names
        else 0
    )
    answer = ask.PlanFacts(
        files=table.file_count,
        deleted=deleted,
        requests=cost.requests.total(),
        bytes=cost.bytes_read,
        by_partition=engine.left_out_by_partition(table, predicate, planned_files.num_rows),
    )
    return answer, files_in_arrow(planned_files, _keys(planned_files, table.specs, asked.keys))


def _keys(planned: pa.Table, specs: Sequence[PartitionSpec], ids: Sequence[int]) -> list[pa.Array]:
    """Return each file's values of partition fields.

    Empty if not all files are partitioned by all of them.
    """
    if not ids:
        return []
    complete = [spec.id for spec in specs if {field.id for field in spec.fields} >= set(ids)]
    if not pc.all(pc.is_in(planned["spec"], value_set=pa.array(complete, pa.int32())), min_count=0).as_py():
        return []
    fields = {field.id: field for spec in specs for field in spec.fields}
    return [partition_values(planned, fields[id]) for id in ids]


def plan_cut(at: ServedCatalog, asked: ask.PlanCut) -> tuple[EmptyAnswer, Beside]:
    return EmptyAnswer(), files_in_arrow(engine.plan_partial(at.loaded(asked), asked.predicate))


def read_together(at: ServedCatalog, asked: ask.ReadTogether) -> ask.VersionList:
    """Return versions as of the same moment.

    A `settled` table cannot move any more. Raises CommitConflict if it has to.
    """
    tables = engine.read_together([at.handles.loaded(table, asked.transaction) for table in asked.tables])
    for table, reference in zip(tables, asked.tables, strict=True):
        if reference.settled not in (-1, table.version):
            raise CommitConflict(
                f"{table.name} changed to version {table.version} while the statement that reads it was prepared: "
                "run it again",
                version=table.version,
            )
        at.handles.remember(table, asked.transaction, past=False, step=reference.step)
    return ask.VersionList(versions=tuple(table.version for table in tables))


def can_delete(at: ServedCatalog, asked: ask.CanDelete) -> PossibleAnswer:
    try:
        return PossibleAnswer(possible=engine.can_delete(at.loaded(asked), asked.predicate))
    except Unsupported:
        # Spark has its own words for a condition that a table cannot delete by.
        return PossibleAnswer(possible=False)


def can_overwrite(at: ServedCatalog, asked: ask.CanOverwrite) -> PossibleAnswer:
    return PossibleAnswer(possible=engine.can_overwrite(at.loaded(asked), asked.predicate))


def can_change(at: ServedCatalog, asked: ask.CanChange) -> PossibleAnswer:
    try:
        apply_changes(at.loaded(asked).metadata, (asked.change,))
    except LakelogError:
        return PossibleAnswer(possible=False)
    return PossibleAnswer(possible=True)


def aggregate(at: ServedCatalog, asked: ask.ReadAggregates) -> tuple[ask.AggregatesKnown, bytes]:
    aggregates = [Aggregate(kind=aggregate.kind, column=aggregate.column) for aggregate in asked.aggregates]
    rows = at.loaded(asked).scan().aggregate(aggregates, asked.group_by)
    if rows is None:
        return ask.AggregatesKnown(known=False), b""
    return ask.AggregatesKnown(known=True), in_arrow(rows.schema, rows.to_batches())

"""The facts of a table that the adapter needs. `TableFacts.scala` reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog import Constraint, Expression, PartitionSpec, Ranks, Schema, SortOrder, Table, engine
from lakelog.catalog.engine import (
    BLOOM_FPP,
    BLOOM_NDV,
    COMPRESSION_CODEC,
    TARGET_FILE_SIZE,
    WRITE_MODES,
    CheckConstraint,
    ForeignKey,
    StagedTable,
    bloom_columns,
    bounds_now,
    is_of,
    schema_to_spark,
    shown_names,
    transform_to_json,
)
from lakelog.spark.requests.base import FoundBy, LoadedRef
from lakelog.spark.requests.tables import (
    BloomFacts,
    ConstraintFacts,
    CurveFacts,
    OptimizerEstimate,
    PartitionFacts,
    RankedColumn,
    SortFacts,
    TableFacts,
)


def of_table(table: Table, *, past: bool = False, step: int = 0) -> TableFacts:
    """Return the facts of a table's version.

    `past` says that the user requested that version, to read it only.
    """
    return TableFacts(
        id=table.id,
        version=table.version,
        past=past,
        step=step,
        ref=_ref(table),
        found_by=found_by(table),
        location=table.location,
        own_location=table.metadata.own_location,
        provider=table.provider,
        comment=table.comment,
        constraints=constraint_facts(table.constraints, table.schema),
        estimates=_estimates(table),
        curve=_curve(table.metadata.ranks, table.metadata.clustering, table.schema),
        **_definition(
            table.schema, table.spec, table.sort_order, table.metadata.clustering, table.properties
        ),
    )


def of_stage(stage: StagedTable) -> TableFacts:
    """Return the facts of a staged table. Its version is the version of the table that it replaces, or 0."""
    return TableFacts(
        id=stage.table_id,
        version=stage.replaced or 0,
        past=False,
        step=0,
        location=stage.url,
        own_location=stage.own_location,
        provider=stage.provider,
        comment=stage.comment,
        constraints=constraint_facts(stage.constraints, stage.schema),
        estimates=(),
        **_definition(stage.schema, stage.spec, stage.sort_order, stage.clustering, stage.properties),
    )


def constraint_facts(constraints: Sequence[Constraint], schema: Schema) -> tuple[ConstraintFacts, ...]:
    """Return constraints with the names of their columns. Spark does not request the columns of a CHECK."""
    return tuple(_constraint(constraint, schema) for constraint in constraints)


def found_by(table: Table) -> FoundBy | None:
    """Return the name that a table was loaded by, in the form of requests."""
    loaded_by = table.table_head.found_by
    return (
        None if loaded_by is None else FoundBy(identifier=loaded_by.identifier, namespace=loaded_by.namespace)
    )


def _ref(table: Table) -> LoadedRef | None:
    """Return the tag or branch that the table is on, if any, in the form of requests."""
    if table.table_head.ref_id is None:
        return None
    return LoadedRef(name=table.ref, id=table.table_head.ref_id, kind=table.refs[table.ref].kind)


def _curve(ranks: Ranks | None, clustering: Sequence[int], schema: Schema) -> CurveFacts | None:
    if ranks is None or not is_of(ranks, clustering):
        return None
    return CurveFacts(
        generation=ranks.generation,
        bits=ranks.bits,
        columns=tuple(
            RankedColumn(column=tuple(schema.path_of(rank_column.id)), bounds=bounds_now(rank_column, schema))
            for rank_column in ranks.columns
        ),
    )


def _estimates(table: Table) -> tuple[OptimizerEstimate, ...]:
    """Return the statistics of whole columns that still exist, with their present names.

    Nothing after rows were added, as for Spark's own tables, because Spark would plan no rows for values
    outside of the bounds.
    """
    table_estimates = engine.estimates(table)
    if table_estimates is None or table_estimates.added_since:
        return ()
    return tuple(
        OptimizerEstimate(column=field.name, **msgspec.structs.asdict(table_estimates.columns[field.id]))
        for field in table.schema.fields
        if field.id in table_estimates.columns
    )


def _definition(
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    clustering: Sequence[int],
    properties: Mapping[str, str],
) -> dict[str, Any]:
    """Return the facts that existing and staged tables have in common."""
    return {
        "schema": schema_to_spark(schema, internal=True),
        "spec_id": spec.id,
        "partitioning": tuple(
            PartitionFacts(
                field_id=field.id,
                name=name,
                result=field.result.name,
                **transform_to_json(schema, field.source_id, field.transform),
            )
            for name, field in zip(shown_names(spec, schema), spec.fields, strict=True)
        ),
        "sort_order": tuple(
            SortFacts(
                direction=field.direction,
                nulls=field.nulls,
                **transform_to_json(schema, field.source_id, field.transform),
            )
            for field in order.fields
        ),
        "clustering": tuple(tuple(schema.path_of(id)) for id in clustering),
        "properties": dict(properties),
        "target_file_size_bytes": TARGET_FILE_SIZE.of(properties),
        "compression_codec": COMPRESSION_CODEC.of(properties),
        "bloom": _bloom(schema, properties),
        "write_modes": {command: mode.of(properties) for command, mode in WRITE_MODES.items()},
    }


def _bloom(schema: Schema, properties: Mapping[str, str]) -> BloomFacts | None:
    columns = tuple(bloom_columns(properties, schema))
    if not columns:
        return None
    return BloomFacts(columns=columns, fpp=BLOOM_FPP.of(properties), ndv=BLOOM_NDV.of(properties))


def _constraint(constraint: Constraint, schema: Schema) -> ConstraintFacts:
    facts = ConstraintFacts(
        kind=str(constraint.__struct_config__.tag),
        name=constraint.name,
        rely=constraint.rely,
        columns=tuple(tuple(schema.path_of(id)) for id in constraint.columns),
    )
    match constraint:
        case CheckConstraint():
            predicate = msgspec.convert(constraint.predicate, Expression | None)
            return msgspec.structs.replace(facts, sql=constraint.sql, predicate=predicate)
        case ForeignKey():
            return msgspec.structs.replace(facts, table=constraint.table, referenced=constraint.referenced)
        case _:
            return facts

"""What the adapter needs to know of a table: see `TableFacts.scala`, which reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog.core.ddl import Stage
from lakelog.catalog.core.schema import (
    BLOOM_FPP,
    BLOOM_NDV,
    COMPRESSION_CODEC,
    TARGET_FILE_SIZE,
    WRITE_MODES,
    Check,
    Constraint,
    Expression,
    ForeignKey,
    PartitionSpec,
    Ranks,
    Schema,
    SortOrder,
    bloom_columns,
    bounds_now,
    is_of,
    schema_to_spark,
    shown_names,
    transform_to_json,
    value_of,
)
from lakelog.catalog.table import Table
from lakelog.spark.requests.base import FoundBy, Ref
from lakelog.spark.requests.tables import (
    BloomFacts,
    ConstraintFacts,
    CurveFacts,
    Estimate,
    PartitionFacts,
    RankedColumn,
    SortFacts,
    TableFacts,
)


def of_table(table: Table, *, past: bool = False, step: int = 0) -> TableFacts:
    """Return the facts of one version of a table; `past` when the user asked for that version, to read it only."""
    return TableFacts(
        id=table.id,
        version=table.version,
        past=past,
        step=step,
        ref=_ref(table),
        found_by=found_by(table),
        location=table.location,
        own_location=table.own_location,
        provider=table.provider,
        comment=table.comment,
        constraints=constraint_facts(table.constraints, table.schema),
        estimates=_estimates(table),
        curve=_curve(table.metadata.ranks, table.metadata.clustering, table.schema),
        **_definition(
            table.schema, table.spec, table.sort_order, table.metadata.clustering, table.properties
        ),
    )


def of_stage(stage: Stage) -> TableFacts:
    """Return the facts of a table to be; its version is that of the table which it replaces, or 0."""
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
    """Return constraints with the names of their columns; Spark does not request the columns of a CHECK."""
    return tuple(_constraint(each, schema) for each in constraints)


def found_by(table: Table) -> FoundBy | None:
    """Return the name that a table was loaded by, as requests name it too."""
    by = table.head.found_by
    return None if by is None else FoundBy(identifier=by.identifier, namespace=by.namespace)


def _ref(table: Table) -> Ref | None:
    """Return the tag or branch that the table is on, if it is on any, as requests name it too."""
    if table.ref_id is None:
        return None
    return Ref(name=table.ref, id=table.ref_id, kind=table.refs[table.ref].kind)


def _curve(ranks: Ranks | None, clustering: Sequence[int], schema: Schema) -> CurveFacts | None:
    if ranks is None or not is_of(ranks, clustering):
        return None
    return CurveFacts(
        generation=ranks.generation,
        bits=ranks.bits,
        columns=tuple(
            RankedColumn(column=tuple(schema.path_of(each.id)), bounds=bounds_now(each, schema))
            for each in ranks.columns
        ),
    )


def _estimates(table: Table) -> tuple[Estimate, ...]:
    """Return what is known of whole columns that are there still, with their present names.

    Nothing once rows were added, as for Spark's own tables: values outside of the bounds would be planned as none.
    """
    known = table.estimates
    if known is None or known.added_since:
        return ()
    return tuple(
        Estimate(column=field.name, **msgspec.structs.asdict(known.columns[field.id]))
        for field in table.schema.fields
        if field.id in known.columns
    )


def _definition(
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    clustering: Sequence[int],
    properties: Mapping[str, str],
) -> dict[str, Any]:
    """Return the facts of a table that is there and of a table to be."""
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
        "target_file_size_bytes": int(value_of(properties, TARGET_FILE_SIZE)),
        "compression_codec": value_of(properties, COMPRESSION_CODEC),
        "bloom": _bloom(schema, properties),
        "write_modes": {command: value_of(properties, mode) for command, mode in WRITE_MODES.items()},
    }


def _bloom(schema: Schema, properties: Mapping[str, str]) -> BloomFacts | None:
    columns = tuple(bloom_columns(properties, schema))
    if not columns:
        return None
    return BloomFacts(
        columns=columns, fpp=float(value_of(properties, BLOOM_FPP)), ndv=int(value_of(properties, BLOOM_NDV))
    )


def _constraint(constraint: Constraint, schema: Schema) -> ConstraintFacts:
    facts = ConstraintFacts(
        kind=str(constraint.__struct_config__.tag),
        name=constraint.name,
        rely=constraint.rely,
        columns=tuple(tuple(schema.path_of(id)) for id in constraint.columns),
    )
    match constraint:
        case Check():
            predicate = msgspec.convert(constraint.predicate, Expression | None)
            return msgspec.structs.replace(facts, sql=constraint.sql, predicate=predicate)
        case ForeignKey():
            return msgspec.structs.replace(facts, table=constraint.table, referenced=constraint.referenced)
        case _:
            return facts

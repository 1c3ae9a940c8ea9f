"""What the adapter needs to know of a table, as JSON: see `TableFacts.scala`, which reads it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog.ddl import Stage
from lakelog.catalog.schema import (
    COMPRESSION_CODEC,
    TARGET_FILE_SIZE,
    WRITE_MODES,
    Check,
    Constraint,
    ForeignKey,
    PartitionSpec,
    Schema,
    SortOrder,
    schema_to_spark,
    shown_names,
    transform_to_json,
    value_of,
)
from lakelog.catalog.table import Table


def of_table(table: Table, *, past: bool = False) -> dict[str, Any]:
    """Return the facts of one version of a table; `past` when the user asked for that version, to read it only."""
    return {
        "id": table.id,
        "version": table.version,
        "past": past,
        "location": table.location,
        "own_location": table.own_location,
        "provider": table.provider,
        "comment": table.comment,
        "constraints": constraints_to_json(table.constraints, table.schema),
        "estimates": _estimates(table),
        **_ref(table),
        **_definition(
            table.schema, table.spec, table.sort_order, table.metadata.clustering, table.properties
        ),
    }


def _ref(table: Table) -> dict[str, Any]:
    """Return the tag or branch that the table is on, if it is on any, as requests name it too."""
    if table.ref_id is None:
        return {}
    return {"ref": {"name": table.ref, "id": table.ref_id, "kind": table.refs[table.ref].kind}}


def _estimates(table: Table) -> list[dict[str, Any]]:
    """Return what is known of whole columns that are there still, with their present names.

    Nothing once rows were added, as for Spark's own tables: values outside of the bounds would be planned as none.
    """
    known = table.estimates
    if known is None or known.added_since:
        return []
    return [
        {"column": field.name, **msgspec.to_builtins(known.columns[field.id])}
        for field in table.schema.fields
        if field.id in known.columns
    ]


def of_stage(stage: Stage) -> dict[str, Any]:
    """Return the facts of a table to be; its version is that of the table which it replaces, or 0."""
    return {
        "id": stage.table_id,
        "version": stage.replaced or 0,
        "past": False,
        "step": 0,
        "location": stage.url,
        "own_location": stage.own_location,
        "estimates": [],
        "provider": stage.provider,
        "comment": stage.comment,
        "constraints": constraints_to_json(stage.constraints, stage.schema),
        **_definition(stage.schema, stage.spec, stage.sort_order, stage.clustering, stage.properties),
    }


def _definition(
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    clustering: Sequence[int],
    properties: Mapping[str, str],
) -> dict[str, Any]:
    return {
        "schema": schema_to_spark(schema, internal=True),
        "spec_id": spec.id,
        "partitioning": [
            {
                "field_id": field.id,
                "name": name,
                "result": field.result.name,
                **transform_to_json(schema, field.source_id, field.transform),
            }
            for name, field in zip(shown_names(spec, schema), spec.fields, strict=True)
        ],
        "sort_order": [
            {
                "direction": field.direction,
                "nulls": field.nulls,
                **transform_to_json(schema, field.source_id, field.transform),
            }
            for field in order.fields
        ],
        "clustering": [list(schema.path_of(id)) for id in clustering],
        "properties": dict(properties),
        "target_file_size_bytes": int(value_of(properties, TARGET_FILE_SIZE)),
        "compression_codec": value_of(properties, COMPRESSION_CODEC),
        "write_modes": {command: value_of(properties, mode) for command, mode in WRITE_MODES.items()},
    }


def constraints_to_json(constraints: Sequence[Constraint], schema: Schema) -> list[dict[str, Any]]:
    """Return constraints with the names of their columns; Spark asks for no columns of a CHECK."""
    found = []
    for each in constraints:
        json: dict[str, Any] = {
            "kind": each.__struct_config__.tag,
            "name": each.name,
            "rely": each.rely,
            "columns": [schema.path_of(id) for id in each.columns],
        }
        if isinstance(each, Check):
            json |= {"sql": each.sql, "predicate": each.predicate}
        if isinstance(each, ForeignKey):
            json |= {"table": each.table, "referenced": each.referenced}
        found.append(json)
    return found

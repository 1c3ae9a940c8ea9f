"""A table's definition in Iceberg's metadata, as lakelog's: columns, partitioning, order, properties. Pure.

Rule: an export of the result shows the client's definition again. A part is refused by name if an export would show
it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelog.catalog.core.schema import (
    ICEBERG_VERSION,
    AlteredDefinition,
    Metadata,
    PartitionSpec,
    Schema,
    SortField,
    SortOrder,
    Transform,
    check_definition,
    check_exportable,
    dotted,
    result_type,
    with_names_of,
    with_schema,
)
from lakelog.catalog.core.state import COMMENT
from lakelog.catalog.formats.iceberg.metadata_json import DERIVED_PROPERTIES
from lakelog.catalog.formats.iceberg.schemas import exported_specs
from lakelog.catalog.formats.iceberg_commits.columns import (
    check_constraints,
    check_dropped,
    merged_columns,
    new_columns,
)
from lakelog.catalog.formats.iceberg_commits.updates import FORMAT_VERSION, UpdatedMetadata, as_protocol
from lakelog.catalog.formats.imports.iceberg.schemas import specs_from
from lakelog.log.errors import InvalidInput, Unsupported

Json = Mapping[str, Any]


def new_definition(target: UpdatedMetadata) -> AlteredDefinition:
    """Return the definition of a new table. Raises Unsupported or InvalidInput, with the part that cannot be."""
    with as_protocol("the schema"):
        schema = new_columns(target.schema, target.document["last-column-id"])
    spec = _spec(target.spec, schema)
    properties, comment = _properties(target, None)
    definition = AlteredDefinition(
        schema=schema,
        specs=(spec,),
        sort_order=_order(target.order, schema),
        properties=properties,
        comment=comment,
    )
    _check(None, definition)
    return definition


def altered_definition(
    metadata: Metadata, base: Json, target: UpdatedMetadata, *, has_rows: bool = True
) -> AlteredDefinition:
    """Return the definition of a table after a commit. `base` is Iceberg's metadata of its present definition.

    Parts stay as they are if the client did not change them. `has_rows` says if rows from before stay. Raises
    Unsupported or InvalidInput.
    """
    document = target.document
    schema = metadata.schema
    if document["current-schema-id"] != base["current-schema-id"]:
        with as_protocol("the schema"):
            schema = merged_columns(target.schema, schema, document["last-column-id"], has_rows=has_rows)
    specs = tuple(with_schema(spec, schema) for spec in metadata.specs)
    if document["default-spec-id"] != base["default-spec-id"]:
        spec = _spec(target.spec, schema)
        known_spec = metadata.specs_by_id.get(spec.id)
        if known_spec is not None and {field.id for field in known_spec.fields} != {
            field.id for field in spec.fields
        }:
            raise Unsupported(
                f"the partitioning {spec.id} has fields that Iceberg's readers misread, so that they do not see all of "
                "it: add a partitioning instead"
            )
        specs = (*(item for item in specs if item.id != spec.id), spec)
    order = metadata.sort_order
    if document["default-sort-order-id"] != base["default-sort-order-id"]:
        order = _order(target.order, schema)
    properties, comment = _properties(target, base)
    definition = AlteredDefinition(
        schema=schema,
        specs=specs,
        sort_order=order,
        properties=with_names_of(schema, metadata.schema, properties),
        comment=comment,
        constraints=metadata.constraints,
        clustering=metadata.clustering,
    )
    uses = {
        **{field.source_id: "the partitioning" for field in definition.spec.fields},
        **{field.source_id: "the sort order" for field in order.fields},
        **dict.fromkeys(metadata.clustering, "the clustering"),
    }
    check_dropped(metadata.schema, schema, uses)
    check_constraints(metadata.schema, schema, metadata.constraints)
    _check(metadata, definition)
    return definition


def _check(old_metadata: Metadata | None, definition: AlteredDefinition) -> None:
    if not definition.schema.fields:
        raise InvalidInput("a table has at least one column: give its schema a field")
    check_definition(old_metadata, definition)
    check_exportable(definition.schema, "the table is a client's of Iceberg")
    shown_spec = exported_specs(
        Metadata(
            schema=definition.schema,
            specs=definition.specs,
            sort_order=definition.sort_order,
            properties={},
        ),
        definition.schema,
    )[definition.spec.id]
    if shown_spec != definition.spec:
        left_out = {field.name for field in definition.spec.fields} - {
            field.name for field in shown_spec.fields
        }
        raise Unsupported(
            f"the partition field {', '.join(sorted(left_out))} is not supported here, as some readers of Iceberg miss "
            "rows by its values: partition by another transform, such as bucket"
        )


def _spec(json_spec: Json, schema: Schema) -> PartitionSpec:
    spec_id = json_spec["spec-id"]
    with as_protocol("the partitioning"):
        specs = specs_from({"partition-specs": [json_spec], "default-spec-id": spec_id}, [schema])
    specs.check_used(spec_id)
    spec = specs[spec_id]
    if len(spec.fields) < len(json_spec["fields"]):
        raise InvalidInput("the partitioning has a field of a column that the table does not have")
    names = [field.name.lower() for field in spec.fields]
    if len(set(names)) < len(names):
        raise InvalidInput("two partition fields have the same name (case-insensitive): rename one of them")
    for field in spec.fields:
        path = schema.path_of(field.source_id)
        same_name = schema.get((field.name,), case_sensitive=True)
        if same_name is not None and (same_name.id != field.source_id or field.transform.name != "identity"):
            raise InvalidInput(
                f"the partition field {field.name} of {dotted(path)} has the name of a column: rename the field"
            )
    return spec


def _order(json_order: Json, schema: Schema) -> SortOrder:
    fields = []
    for part in json_order["fields"]:
        source_id = part["source-id"]
        nulls: Any = str(part["null-order"]).removeprefix("nulls-")
        if not schema.has_id(source_id):
            raise InvalidInput("the sort order has a column that the table does not have")
        if part["direction"] not in ("asc", "desc") or nulls not in ("first", "last"):
            raise InvalidInput(
                f"the sort order of {dotted(schema.path_of(source_id))} has the direction {part['direction']!r} and "
                f"{part['null-order']!r}: use asc or desc, and nulls-first or nulls-last"
            )
        transform = Transform.parse(part["transform"])
        result_type(transform, schema.field_by_id(source_id).type)
        fields.append(
            SortField(source_id=source_id, transform=transform, direction=part["direction"], nulls=nulls)
        )
    return SortOrder(fields=tuple(fields))


def _properties(target: UpdatedMetadata, base: Json | None) -> tuple[dict[str, str], str | None]:
    """Return the properties and the comment."""
    properties = {
        name: value for name, value in target.document["properties"].items() if name not in DERIVED_PROPERTIES
    }
    comment = properties.pop(COMMENT, None)
    version = target.document[FORMAT_VERSION]
    asked_version = properties.pop(FORMAT_VERSION, None)
    if asked_version is not None and asked_version not in ("2", "3"):
        raise Unsupported(f"version {asked_version!r} of Iceberg's format is not supported: use 2 or 3")
    if base is None or version != base[FORMAT_VERSION] or asked_version is not None:
        properties[ICEBERG_VERSION.name] = asked_version or str(version)
    return properties, comment

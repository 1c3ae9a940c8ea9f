"""The events of a change of a table's definition."""

from __future__ import annotations

from collections.abc import Mapping

from lakelog.catalog.core.schema.iceberg_limits import check_iceberg
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import with_schema
from lakelog.catalog.core.schema.properties.policy import check_policy
from lakelog.catalog.core.schema.schema_changes import AlteredDefinition
from lakelog.catalog.core.state.events import (
    ClusteringChanged,
    ConstraintAdded,
    ConstraintDropped,
    PartitioningChanged,
    SchemaChanged,
    SortOrderChanged,
    TableAltered,
    TableEvent,
)
from lakelog.catalog.core.state.property_changes import COMMENT


def events_of(metadata: Metadata, altered_definition: AlteredDefinition) -> list[TableEvent]:
    """Return the events that turn `metadata` into `altered_definition`."""
    check_iceberg(altered_definition.schema, altered_definition.properties)
    check_policy(altered_definition.properties)
    events: list[TableEvent] = []
    if altered_definition.schema != metadata.schema:
        events.append(SchemaChanged(schema=altered_definition.schema))
    if altered_definition.spec != with_schema(metadata.spec, altered_definition.schema):
        events.append(PartitioningChanged(spec=altered_definition.spec))
    if altered_definition.sort_order != metadata.sort_order:
        events.append(SortOrderChanged(sort_order=altered_definition.sort_order))
    # The same changes may drop a constraint and add a new constraint of the same name.
    events.extend(
        ConstraintDropped(name=constraint.name)
        for constraint in metadata.constraints
        if constraint not in altered_definition.constraints
    )
    events.extend(
        ConstraintAdded(constraint=constraint)
        for constraint in altered_definition.constraints
        if constraint not in metadata.constraints
    )
    if altered_definition.clustering != metadata.clustering:
        events.append(ClusteringChanged(columns=altered_definition.clustering))
    old_properties, new_properties = (
        _properties(metadata.properties, metadata.comment),
        _properties(altered_definition.properties, altered_definition.comment),
    )
    if old_properties != new_properties:
        set_ = {key: value for key, value in new_properties.items() if old_properties.get(key) != value}
        events.append(
            TableAltered(set=set_, removed=tuple(sorted(old_properties.keys() - new_properties.keys())))
        )
    return events


def _properties(properties: Mapping[str, str], comment: str | None) -> dict[str, str]:
    return dict(properties) | ({COMMENT: comment} if comment is not None else {})

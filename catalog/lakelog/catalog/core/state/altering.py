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


def events_of(metadata: Metadata, altered: AlteredDefinition) -> list[TableEvent]:
    """Return the events that turn `metadata` into `altered`."""
    check_iceberg(altered.schema, altered.properties)
    check_policy(altered.properties)
    events: list[TableEvent] = []
    if altered.schema != metadata.schema:
        events.append(SchemaChanged(schema=altered.schema))
    if altered.spec != with_schema(metadata.spec, altered.schema):
        events.append(PartitioningChanged(spec=altered.spec))
    if altered.sort_order != metadata.sort_order:
        events.append(SortOrderChanged(sort_order=altered.sort_order))
    # The same changes may drop a constraint and add a new constraint of the same name.
    events.extend(
        ConstraintDropped(name=constraint.name)
        for constraint in metadata.constraints
        if constraint not in altered.constraints
    )
    events.extend(
        ConstraintAdded(constraint=constraint)
        for constraint in altered.constraints
        if constraint not in metadata.constraints
    )
    if altered.clustering != metadata.clustering:
        events.append(ClusteringChanged(columns=altered.clustering))
    old_properties, new_properties = (
        _properties(metadata.properties, metadata.comment),
        _properties(altered.properties, altered.comment),
    )
    if old_properties != new_properties:
        set_ = {key: value for key, value in new_properties.items() if old_properties.get(key) != value}
        events.append(
            TableAltered(set=set_, removed=tuple(sorted(old_properties.keys() - new_properties.keys())))
        )
    return events


def _properties(properties: Mapping[str, str], comment: str | None) -> dict[str, str]:
    return dict(properties) | ({COMMENT: comment} if comment is not None else {})

"""The events of a change of a table's definition."""

from __future__ import annotations

from collections.abc import Mapping

from lakelog.catalog.core.schema import Altered, Metadata, check_iceberg, check_policy, with_schema
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
from lakelog.catalog.core.state.properties import COMMENT


def events_of(metadata: Metadata, altered: Altered) -> list[TableEvent]:
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
    # A constraint of the same name may be dropped and added anew by the same changes.
    events.extend(
        ConstraintDropped(name=each.name) for each in metadata.constraints if each not in altered.constraints
    )
    events.extend(
        ConstraintAdded(constraint=each) for each in altered.constraints if each not in metadata.constraints
    )
    if altered.clustering != metadata.clustering:
        events.append(ClusteringChanged(columns=altered.clustering))
    before, after = (
        _properties(metadata.properties, metadata.comment),
        _properties(altered.properties, altered.comment),
    )
    if before != after:
        set_ = {key: value for key, value in after.items() if before.get(key) != value}
        events.append(TableAltered(set=set_, removed=tuple(sorted(before.keys() - after.keys()))))
    return events


def _properties(properties: Mapping[str, str], comment: str | None) -> dict[str, str]:
    return dict(properties) | ({COMMENT: comment} if comment is not None else {})

"""A table's metadata: everything but its files, as columns, partitioning, order, properties. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from lakelog.catalog.schema.constraints import Constraint
from lakelog.catalog.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.schema.schema import Schema
from lakelog.catalog.schema.stored_types import ready


class Metadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything about a table except its files.

    `specs` holds every partition spec that files may have been written by, the current one last. `generation` is the
    version of the create or replace that this metadata goes back to: writes that started in another generation are for
    another table. `clustering` has the ids of the columns by which writes cluster their rows.
    """

    schema: Schema
    specs: tuple[PartitionSpec, ...]
    sort_order: SortOrder
    properties: dict[str, str]
    provider: str | None = None
    comment: str | None = None
    own_location: bool = False
    generation: int = 0
    constraints: tuple[Constraint, ...] = ()
    clustering: tuple[int, ...] = ()

    @property
    def spec(self) -> PartitionSpec:
        return self.specs[-1]

    @property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        return {spec.id: spec for spec in self.specs}


def leave_out_empty(metadata: dict[str, Any]) -> None:
    """Remove an empty clustering from stored metadata, which older versions of lakelog do not know."""
    if not metadata["clustering"]:
        del metadata["clustering"]


ready(Metadata)

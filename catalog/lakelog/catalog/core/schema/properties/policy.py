"""The upkeep policy in the properties of a table and of the namespaces above it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakelog.catalog.core.schema.properties.kinds import NEVER
from lakelog.catalog.core.schema.properties.known import (
    DELETED_RATIO,
    INHERITED,
    KEEP_FOR,
    MAINTENANCE,
    VACUUM_AGE,
)
from lakelog.log.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePolicy:
    """A table's upkeep policy. `said` is off, on-demand or auto, or None if no property says.

    Without an age, nothing expires or is deleted. `keeps_all` is true if a property says so for versions.
    """

    said: str | None
    deleted_ratio: float
    keep_for: dt.timedelta | None
    keeps_all: bool
    vacuum_age: dt.timedelta | None

    @property
    def mode(self) -> str:
        return MAINTENANCE.default if self.said is None else self.said


def policy_of(levels: Iterable[tuple[str, Mapping[str, str]]]) -> MaintenancePolicy:
    """Return the policy of a table.

    `levels` has the properties of the table and of each namespace above it, the nearest first, each with a
    name for messages. Raises InvalidInput if they contradict each other, or make no sense.
    """
    values: dict[str, str] = {}
    owner_of: dict[str, str] = {}
    for name, properties in levels:
        for key in INHERITED:
            if key in properties and key not in values:
                INHERITED[key].check(properties[key])
                values[key], owner_of[key] = properties[key], name
    keep_for, vacuum_age = KEEP_FOR.of(values), VACUUM_AGE.of(values)
    if keep_for is not None and vacuum_age is not None and keep_for < vacuum_age:
        of = (
            f" of {owner_of[property.name]}" if owner_of[property.name] else ""
            for property in (KEEP_FOR, VACUUM_AGE)
        )
        raise InvalidInput(
            f"the property {KEEP_FOR.name}{next(of)} is {values[KEEP_FOR.name]}, shorter than "
            f"{VACUUM_AGE.name}{next(of)}, {values[VACUUM_AGE.name]}: a "
            "write may take as long as the latter, and needs the version that it started from. Keep versions for at "
            "least as long"
        )
    return MaintenancePolicy(
        said=values.get(MAINTENANCE.name),
        deleted_ratio=DELETED_RATIO.of(values),
        keep_for=keep_for,
        keeps_all=values.get(KEEP_FOR.name) == NEVER,
        vacuum_age=vacuum_age,
    )


def check_policy(properties: Mapping[str, str]) -> None:
    """Raise InvalidInput if properties of a table or namespace contradict each other."""
    policy_of([("", properties)])

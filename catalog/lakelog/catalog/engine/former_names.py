"""The logs that a name leads to, and the logs that it has led to lately.

A request that is sent again may find its name at another object, or at none. The first object was renamed, moved or
dropped in between. Its log has the request's commit. Rule: only a purged log is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.ddl import new_table
from lakelog.catalog.core.logs import FoundLog, TrackedLog, place_in
from lakelog.catalog.core.state import (
    NAMESPACE,
    RELATION,
    EntryDefined,
    EntryLinked,
    EntryPurged,
    EntryRenamed,
    EntryUnlinked,
    NamespaceState,
    namespace_events,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, LogView
from lakelog.log.errors import CommitUnknown, FormatError, InvalidInput, NotFound, Unsupported


class FormerLogUnknown(CommitUnknown):
    """A name has led to a log that cannot be found any more."""


@dataclass(frozen=True, slots=True)
class NameChange:
    """An object that a name of a namespace no longer leads to."""

    space: str
    name: str
    id: str
    new_name: str | None
    """Its next name in the same namespace. None if it has none there."""
    time_us: int


@dataclass(slots=True)
class NameChanges:
    """The names that the newest commits have taken away, and the purged ids."""

    taken: list[NameChange] = field(default_factory=list)
    purged: dict[str, int] = field(default_factory=dict)

    def add(self, state: Any, change: Commit) -> str | None:
        """Add a commit of the log with this state. Return the id of the object that gets a name."""
        if not isinstance(state, NamespaceState):
            return None
        object_id: str | None = None
        for event in namespace_events(change):
            match event:
                case EntryLinked() | EntryDefined():
                    object_id = event.id
                case EntryRenamed():
                    self.taken.append(
                        NameChange(event.space, event.name, event.id, event.new_name, change.time_us)
                    )
                case EntryUnlinked():
                    self.taken.append(NameChange(event.space, event.name, event.id, None, change.time_us))
                case EntryPurged():
                    self.purged[event.id] = change.time_us
        return object_id

    def followed_by(self, later: NameChanges, since_us: int) -> NameChanges:
        """Return these and later changes, since a time."""
        taken = [change for change in (*later.taken, *self.taken) if change.time_us >= since_us]
        purged = {id: us for id, us in (self.purged | later.purged).items() if us >= since_us}
        return NameChanges(taken, purged)


ChangesOf = Callable[[TrackedLog[Any], LogView[Any]], NameChanges]
"""Returns the changes of names in a namespace's log, up to a view at least."""


def logs_of_name(
    catalog: CatalogNames, name: Identifier, changes_of: ChangesOf, *, is_table: bool
) -> Iterator[TrackedLog[Any]]:
    """Yield the logs that a name leads to, or has led to lately. The present log is first.

    Costs a round of GETs for each level of the name, if nothing has changed. Raises FormerLogUnknown if a log cannot be
    found: its object was moved away from a place that its user chose, or has got a third name since.
    """
    tree = catalog._tree
    present = tree.find_table(name) if is_table else tree.find_namespace(name)
    if present is not None:
        yield present.tracked
    names = RecentNames(catalog)
    level = {"": True}
    for depth, part in enumerate(name):
        space = RELATION if is_table and depth == len(name) - 1 else NAMESPACE
        below: dict[str, bool] = {}
        for place, is_present in level.items():
            # The present logs were read just now.
            above = tree.logs.namespace(place)
            for lower_place, is_lower_present in names.places(
                above, space, part, changes_of, is_fresh=is_present
            ):
                below[lower_place] = below.get(lower_place, False) or (is_present and is_lower_present)
        level = below
    for place in level:
        if present is None or place != present.tracked.location:
            yield tree.logs.table(place) if is_table else tree.logs.namespace(place)


class RecentNames:
    """The objects that names have led to."""

    def __init__(self, catalog: CatalogNames) -> None:
        self._tree = catalog._tree

    def present_ids(self, name: Identifier) -> set[str]:
        """Return the ids of the objects that a name leads to now."""
        parent = self._tree.find_namespace(name[:-1])
        if parent is None or not name:
            return set()
        state = parent.view.state
        entries = (
            state.entry(RELATION, name[-1]),
            state.entry(NAMESPACE, name[-1]),
            state.definition(RELATION, name[-1]),
        )
        return {entry.id for entry in entries if entry is not None}

    def places(
        self, above: TrackedLog[Any], space: str, name: str, changes_of: ChangesOf, *, is_fresh: bool
    ) -> Iterator[tuple[str, bool]]:
        """Yield the places of the logs of a name in a namespace. With each, say if the name still leads there.

        If the namespace `is_fresh`, its known version is used.
        """
        try:
            view = (above.known if is_fresh else None) or above.current()
        except NotFound:
            return
        entry = view.state.entry(space, name)
        if entry is not None:
            yield entry.location, True
        changes = changes_of(above, view)
        for change in changes.taken:
            is_same = entry is not None and entry.id == change.id
            if (change.space, change.name) != (space, name) or change.id in changes.purged or is_same:
                continue
            place = self._place_of(above, view, change)
            if place is not None:
                yield place, False
            elif not _is_definition(view.state, change):
                raise FormerLogUnknown(
                    f"the name {quoted((name,))} has led to another log, which was moved since. If this request was "
                    "sent before, it is not known whether it was done there. Look for its effect",
                    commit_id="",
                    location=self._tree.logs.url(above.location),
                )

    def _place_of(
        self, above: TrackedLog[Any], view: LogView[NamespaceState], change: NameChange
    ) -> str | None:
        """Return the place of the log of a change. None if it cannot be found."""
        state = view.state
        dropped_log = state.dropped_log(change.id)
        if dropped_log is not None:
            return dropped_log.entry.location
        renamed = None if change.new_name is None else state.entry(change.space, change.new_name)
        if renamed is not None and renamed.id == change.id:
            return renamed.location
        if change.space == NAMESPACE:
            own_places = [place_in(above.location, change.id)]
        else:
            folder = f"{above.location}/" if above.location else ""
            own_places = [f"{folder}t-{change.id}"]
            with suppress(InvalidInput, Unsupported):
                own_places.append(new_table(self._tree.logs, FoundLog(above, view), change.id))
        return next((place for place in own_places if self._has_log(change.space, place, change.id)), None)

    def _has_log(self, space: str, place: str, id: str) -> bool:
        try:
            logs = self._tree.logs
            tracked: TrackedLog[Any] = logs.table(place) if space == RELATION else logs.namespace(place)
            return tracked.current().log_id == id
        except (FormatError, InvalidInput, NotFound):
            return False


def _is_definition(state: NamespaceState, change: NameChange) -> bool:
    """Return whether a change is known to be of a view or function."""
    drop = state.dropped.get(change.id)
    if drop is not None:
        return drop.definition is not None
    return any(entry.id == change.id for _, entry in state.definitions(change.space))

"""What creations of tables that were stopped have left, or that are under way: folders to which no name leads.

They may have copies of rows of any table, and a clone that was stopped has lists of its source's files. No reader
finds them, and a vacuum of their namespace deletes them once they are old. An erasure purges clones of its tables, as
the versions that they are of expire with it, and names the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.core.logs import NameTree, TableHead, Target, TrackedLog
from lakelog.catalog.core.schema import Predicate, physical_name
from lakelog.catalog.core.state import TableCloned, TableState, table_events
from lakelog.catalog.errors import NoSuchColumn
from lakelog.catalog.keeping.erasure.holdings import boundaries, held_by
from lakelog.catalog.keeping.erasure.lost_columns import names_in
from lakelog.catalog.keeping.erasure.namespaces import Namespace
from lakelog.catalog.keeping.erasure.row_set import RowSet, row_set
from lakelog.catalog.keeping.erasure.work import ErasureWork, NumberArray, united
from lakelog.catalog.keeping.maintenance import Orphan, unfinished, unlinked
from lakelog.catalog.names import quoted
from lakelog.log import Commit
from lakelog.log.errors import LakelogError, NotFound

DATA = "data/"


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A folder to which no name leads, and that has such rows, or may. `orphan` is the clone there, to be purged."""

    url: str
    orphan: Orphan | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """The tables that an erasure is about: `ids`, also of purged ones; `rows` of those that were looked at. `is_due`:
    one of them has such rows. `places` are the namespaces that they are in. `erased`: the versions, by ids, from which
    on they have none."""

    ids: Collection[str]
    rows: Mapping[str, RowSet]
    places: Collection[str]
    is_due: bool
    erased: Mapping[str, int]

    def shared_with(self, state: TableState) -> NumberArray:
        """Return the ids of rows of these tables that a clone has, as far as it comes from them. What matches in a
        clone says nothing about the rows of its source, which may be others by now."""
        known = [(self.rows.get(each.id), each.until) for each in state.ancestors]
        return united([np.empty(0, np.int64), *(rows.shared(until) for rows, until in known if rows)])


def unlinked_with_rows(
    tree: NameTree, namespaces: Sequence[Namespace], predicate: Predicate, family: Family
) -> Iterator[Unlinked]:
    """Yield the folders to which no name leads, and that have such rows, or may: all in the namespaces of the family,
    and clones of the family anywhere."""
    locations = {each.location for space in namespaces for each in space.state.dropped.values()}
    ids = {id for space in namespaces for id in space.state.dropped}
    for space in namespaces:
        for names in space.state.entries.values():
            locations |= {entry.location for entry in names.values()}
            ids |= {entry.id for entry in names.values()}
    for space in namespaces:
        target = Target(quoted(space.path), space.path, space.tracked, space.view)
        for tracked in unlinked(tree.logs, target, locations):
            is_near = space.tracked.location in family.places
            found = _judged(tree, tracked, predicate, family, ids, is_near=is_near)
            if found is not None:
                yield found


def _judged(
    tree: NameTree,
    tracked: TrackedLog[TableState],
    predicate: Predicate,
    family: Family,
    ids: Collection[str],
    *,
    is_near: bool,
) -> Unlinked | None:
    url = tree.logs.url(tracked.location)
    try:
        view = tracked.at_its_place()
    except NotFound:
        return Unlinked(url) if _folder_may_have(tracked, predicate, is_near=is_near) else None
    except LakelogError:
        return Unlinked(url)
    ancestors = {each.id for each in view.state.ancestors}
    is_of_family = bool(ancestors & set(family.ids))
    # What a purged table was called is not known for ever: near the family, it may have been one of it.
    is_clone = is_of_family or (is_near and not ancestors <= set(ids))
    if not (is_near or is_clone):
        return None
    head = TableHead(tree.logs, tracked, view, tracked.location)
    if not view.purged:
        if is_clone and _is_clean(head, family.erased):
            return None
        # A boundary says nothing about which row it is of.
        if not (is_clone and family.is_due and boundaries(head)) and not _may_have(
            head, predicate, family.shared_with(view.state) if is_clone else None
        ):
            return None
    return Unlinked(url, unfinished(tree, tracked, view) if is_of_family or view.purged else None)


def _is_clean(clone: TableHead, erased: Mapping[str, int]) -> bool:
    """Return whether it is a clone of a version that followed the erasure: one that another user is making."""
    source = clone.state.ancestors[-1].id
    try:
        first = clone.tracked.log.entry_at(1)
        if source not in erased or not isinstance(first, Commit):
            return False
        versions = [each.version for each in table_events(first) if isinstance(each, TableCloned)]
    except LakelogError:
        return False
    return versions[:1] >= [erased[source]]


def _may_have(head: TableHead, predicate: Predicate, shared: NumberArray | None) -> bool:
    try:
        held = held_by(head, row_set(head, predicate, ErasureWork(), shared))
    except NoSuchColumn:
        return False
    except LakelogError:
        return True
    return bool(held.live or held.past)


def _folder_may_have(tracked: TrackedLog[TableState], predicate: Predicate, *, is_near: bool) -> bool:
    """Return whether a folder without a log has lists of files, or, near the family, files with all columns of the
    condition."""
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    if next(iter(tracked.store.list_after(f"{tracked.log.keys.log}/")), None) is not None:
        return True
    for key, _ in tracked.store.list_sizes(f"{prefix}{DATA}") if is_near else ():
        try:
            with tracked.store.open_input(key) as source:
                columns = pq.read_schema(source).names
        except NotFound:
            continue
        except (pa.ArrowException, OSError):
            return True  # half a file
        stems = {name.rpartition("_")[0].lower() for name in columns}
        if {physical_name(each, 0).rpartition("_")[0].lower() for each in names_in(predicate)} <= stems:
            return True
    return False

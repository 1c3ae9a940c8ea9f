"""Folders to which no name leads: leftovers of stopped creations of tables, and creations under way.

They may have copies of rows of any table, and a stopped clone has lists of its source's files. No reader
finds them, and a vacuum of their namespace deletes them once they are old. An erasure purges clones of its
tables because their source's versions expire with it. It names the other folders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.core.logs import LogTarget, NameTree, TableHead, TrackedLog
from lakelog.catalog.core.schema import Predicate, physical_name
from lakelog.catalog.core.state import TableCloned, TableState, table_events
from lakelog.catalog.errors import NoSuchColumn
from lakelog.catalog.keeping.erasure.holdings import boundaries, held_by
from lakelog.catalog.keeping.erasure.lost_columns import names_in
from lakelog.catalog.keeping.erasure.namespaces import ErasureNamespace
from lakelog.catalog.keeping.erasure.row_set import RowSet, row_set
from lakelog.catalog.keeping.erasure.work import ErasureWork, NumberArray, united
from lakelog.catalog.keeping.maintenance.orphans import OrphanLog, unfinished, unlinked
from lakelog.catalog.names import quoted
from lakelog.log import Commit
from lakelog.log.errors import LakelogError, NotFound

DATA = "data/"


@dataclass(frozen=True, slots=True)
class UnlinkedFolder:
    """A folder to which no name leads, and that has rows to erase, or may.

    `orphan` is the clone there, to be purged.
    """

    url: str
    orphan: OrphanLog | None = None


@dataclass(frozen=True, slots=True)
class TableFamily:
    """The tables of an erasure.

    `ids` includes purged tables. `rows` has the tables that were searched. `is_due`: a table of them has rows
    to erase. `places` are their namespaces. `erased` has the versions, by ids, from which on they have none.
    """

    ids: Collection[str]
    rows: Mapping[str, RowSet]
    places: Collection[str]
    is_due: bool
    erased: Mapping[str, int]

    def shared_with(self, state: TableState) -> NumberArray:
        """Return the ids of rows of these tables that a clone has from them.

        A match in a clone says nothing about the rows of its source, which may have changed.
        """
        sources = [(self.rows.get(ancestor.id), ancestor.until) for ancestor in state.ancestors]
        return united([np.empty(0, np.int64), *(rows.shared(until) for rows, until in sources if rows)])


def unlinked_with_rows(
    tree: NameTree, namespaces: Sequence[ErasureNamespace], predicate: Predicate, family: TableFamily
) -> Iterator[UnlinkedFolder]:
    """Yield the folders to which no name leads, and that have rows to erase, or may.

    These are all such folders in the namespaces of the family, and clones of the family anywhere.
    """
    entries = [entry for space in namespaces for _, _, entry in space.state.all_logs()]
    entries += [drop.entry for space in namespaces for drop in space.state.dropped_logs()]
    locations, ids = {entry.location for entry in entries}, {entry.id for entry in entries}
    for space in namespaces:
        target = LogTarget(quoted(space.path), space.path, space.tracked, space.view)
        for table_log in unlinked(tree.logs, target, locations):
            is_near = space.tracked.location in family.places
            folder = _judged(tree, table_log, predicate, family, ids, is_near=is_near)
            if folder is not None:
                yield folder


def _judged(
    tree: NameTree,
    tracked: TrackedLog[TableState],
    predicate: Predicate,
    family: TableFamily,
    ids: Collection[str],
    *,
    is_near: bool,
) -> UnlinkedFolder | None:
    url = tree.logs.url(tracked.location)
    try:
        view = tracked.at_its_place()
    except NotFound:
        return UnlinkedFolder(url) if _folder_may_have(tracked, predicate, is_near=is_near) else None
    except LakelogError:
        return UnlinkedFolder(url)
    ancestors = {ancestor.id for ancestor in view.state.ancestors}
    is_of_family = bool(ancestors & set(family.ids))
    # A purged table's name is not known forever. Near the family, it may have been a table of the family.
    is_clone = is_of_family or (is_near and not ancestors <= set(ids))
    if not (is_near or is_clone):
        return None
    head = TableHead(tree.logs, tracked, view, tracked.location)
    if not view.purged:
        if is_clone and _is_clean(head, family.erased):
            return None
        # A boundary does not say which row it comes from.
        if not (is_clone and family.is_due and boundaries(head)) and not _may_have(
            head, predicate, family.shared_with(view.state) if is_clone else None
        ):
            return None
    return UnlinkedFolder(url, unfinished(tree, tracked, view) if is_of_family or view.purged else None)


def _is_clean(clone: TableHead, erased: Mapping[str, int]) -> bool:
    """Return whether it is a clone of a version after the erasure, which another user is making."""
    source = clone.state.ancestors[-1].id
    try:
        first = clone.tracked.log.entry_at(1)
        if source not in erased or not isinstance(first, Commit):
            return False
        versions = [event.version for event in table_events(first) if isinstance(event, TableCloned)]
    except LakelogError:
        return False
    return versions[:1] >= [erased[source]]


def _may_have(head: TableHead, predicate: Predicate, shared_array: NumberArray | None) -> bool:
    try:
        holdings = held_by(head, row_set(head, predicate, ErasureWork(), shared_array))
    except NoSuchColumn:
        return False
    except LakelogError:
        return True
    return bool(holdings.live or holdings.past)


def _folder_may_have(tracked: TrackedLog[TableState], predicate: Predicate, *, is_near: bool) -> bool:
    """Return whether a folder without a log may have rows to erase.

    It may if it has lists of files. Near the family, it may if a file has all columns of the condition.
    """
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
            return True  # a half-written file
        stems = {name.rpartition("_")[0].lower() for name in columns}
        if {physical_name(column, 0).rpartition("_")[0].lower() for column in names_in(predicate)} <= stems:
            return True
    return False

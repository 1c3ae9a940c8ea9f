"""What creations of tables that were stopped have left, or that are under way: folders to which no name leads.

They may have copies of rows of any table, and a clone that was stopped has lists of its source's files. No reader
finds them, and a vacuum of their namespace deletes them once they are old. An erasure names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.erasure.dropped import Namespace
from lakelog.catalog.erasure.holdings import held_by
from lakelog.catalog.erasure.lost_columns import names_in
from lakelog.catalog.erasure.row_set import row_set
from lakelog.catalog.erasure.work import ErasureWork
from lakelog.catalog.logs import NameTree, TableHead, Target, TrackedLog
from lakelog.catalog.maintenance import unlinked
from lakelog.catalog.names import quoted
from lakelog.catalog.schema import Predicate, physical_name
from lakelog.catalog.state import TableState
from lakelog.log.errors import LakelogError, NotFound

DATA = "data/"


def unlinked_with_rows(
    tree: NameTree,
    namespaces: Sequence[Namespace],
    places: Collection[str],
    predicate: Predicate,
    family: Collection[str],
) -> Iterator[str]:
    """Yield the URLs of folders in the namespaces at `places` to which no name leads, and that have such rows, or may;
    clones of tables of the `family`, by their ids, always may."""
    known = {each.location for space in namespaces for each in space.state.dropped.values()}
    known |= {
        entry.location
        for space in namespaces
        for names in space.state.entries.values()
        for entry in names.values()
    }
    for space in namespaces:
        if space.tracked.location not in places or space.is_dropped:
            continue
        target = Target(quoted(space.path), space.path, space.tracked, space.view)
        for tracked in unlinked(tree.logs, target, known):
            if _may_have(tree, tracked, predicate, family):
                yield tree.logs.url(tracked.location)


def _may_have(
    tree: NameTree, tracked: TrackedLog[TableState], predicate: Predicate, family: Collection[str]
) -> bool:
    try:
        view = tracked.at_its_place()
    except NotFound:
        return _files_may_have(tracked, predicate)
    except LakelogError:
        return True
    if view.purged:
        return False
    if any(each.id in family for each in view.state.ancestors):
        return True
    head = TableHead(tree.logs, tracked, view, tracked.location)
    try:
        held = held_by(head, row_set(head, predicate, ErasureWork()))
    except NotFound:
        return False  # it has no such column
    except LakelogError:
        return True
    return bool(held.live or held.past)


def _files_may_have(tracked: TrackedLog[TableState], predicate: Predicate) -> bool:
    """Return whether a folder without a log has lists of files, or files with all columns of the condition."""
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    if next(iter(tracked.store.list_after(f"{tracked.log.keys.log}/")), None) is not None:
        return True
    for key, _ in tracked.store.list_sizes(f"{prefix}{DATA}"):
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

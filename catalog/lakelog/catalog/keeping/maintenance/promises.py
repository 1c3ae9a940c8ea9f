"""Whether what a table keeps for its clones is still needed, and the end of it, on both sides.

The clone's log alone decides: it is purged, or says that no version of it that can be read has files of that owner any
more. Neither can be taken back, so a look at it never gets old. Where the log of a clone is missing, is another one, or
cannot be read, its files are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, NothingToDo, TrackedLog, known_path_to
from lakelog.catalog.core.state import CloneReleased, Origin, OriginsReleased, Promise, TableState, encode
from lakelog.catalog.keeping.maintenance.reachable import added, all_named, named_by, reachable
from lakelog.catalog.names import quoted
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import (
    FormatError,
    InvalidInput,
    LakelogError,
    LogSealed,
    NotFound,
    PermissionDenied,
    StorageError,
    Unsupported,
)


def over(logs: LogCache, owner: str, clones: Collection[tuple[str, Promise]]) -> list[str]:
    """Return the ids of the clones that need nothing any more of the log `owner`, an id. Costs a load of each."""
    return [id for id, promise in clones if _is_over(logs, owner, id, promise.location)]


def _is_over(logs: LogCache, owner: str, id: str, location: str) -> bool:
    view = _clone(logs, id, location)
    return view is not None and (view.purged or all(origin.id != owner for origin in view.state.origins))


def _clone(logs: LogCache, id: str, location: str) -> View[TableState] | None:
    """Return a clone's log as it is, None where that is not known. StorageError."""
    try:
        view = logs.table(location).at_its_place()
    except PermissionDenied:
        return None
    except StorageError:
        raise
    except (NotFound, FormatError, InvalidInput):
        return None
    return view if view.log_id == id else None


def kept_for(
    logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState], without: Collection[str] = ()
) -> list[str]:
    """Return the names of the clones that need files in this table's own folder.

    Those at the locations `without` go together with the table, and do not count.
    """
    clones = [
        (id, each)
        for id, each in view.state.clones.items()
        if each.location not in without and _has_own(tracked, each)
    ]
    ended = over(logs, view.log_id, clones)
    return sorted(_name_of(logs, id, each) for id, each in clones if id not in ended)


def _has_own(tracked: TrackedLog[TableState], promise: Promise) -> bool:
    chunks = promise.files.chunks(tracked.log.read_blobs, ())
    return any(not is_elsewhere(path) for chunk in chunks for path in named_by(chunk)["path"].to_pylist())


def _name_of(logs: LogCache, id: str, promise: Promise) -> str:
    try:
        view = _clone(logs, id, promise.location)
    except StorageError:
        view = None
    link = None if view is None else view.state.link
    if link is None:
        return logs.url(promise.location)
    path = known_path_to(logs, link.namespace)
    # By its name alone it would be taken for a table of the root: its namespace was dropped.
    return logs.url(promise.location) if path is None else quoted([*path, link.name])


def end_promises(logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]) -> View[TableState]:
    """Keep nothing more for clones that need nothing more, and return the view after that: by one commit, if any."""
    ended = over(logs, view.log_id, view.state.clones.items())
    return _ended(tracked, view, ended) if ended else view


def release_lost(logs: LogCache, tracked: TrackedLog[TableState], title: str, clone: str) -> Promise:
    """Keep nothing more for a clone whose log is gone, which can never say that it needs nothing; return what was kept.

    InvalidInput where nothing is kept for it. Unsupported where its log, or a part of it, is there; PermissionDenied
    and StorageError where that cannot be seen.
    """
    view = tracked.current()
    promise = view.state.clones.get(clone)
    if promise is None:
        kept = ", ".join(sorted(view.state.clones)) or "none"
        raise InvalidInput(f"{title} keeps no files for a clone {clone}: it does for {kept}")
    url = logs.url(promise.location)
    log = logs.table(promise.location).log
    try:
        found = log.load()
    except NotFound:
        left = next(iter(log.replay.store.list_after(f"{log.keys.log}/")), None)
        if left is not None:
            raise Unsupported(
                f"the log of the clone at {url} is damaged and not gone, {left} is there: repair it, or restore it "
                "from a backup"
            ) from None
    else:
        is_over = found.purged or all(origin.id != view.log_id for origin in found.state.origins)
        if found.log_id == clone and not is_over:
            raise Unsupported(
                f"the clone at {url} is there, and needs files of {title}: materialize it and expire its older "
                "versions, or drop and purge it"
            )
    _ended(tracked, view, [clone])
    return promise


def _ended(
    tracked: TrackedLog[TableState], view: View[TableState], clones: Sequence[str]
) -> View[TableState]:
    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        known = tuple(id for id in clones if id in view.state.clones)
        if not known:
            raise NothingToDo("it has ended")
        return Draft(events=encode([CloneReleased(clones=known)]))

    try:
        return tracked.commit(view, decide).view
    except NothingToDo:
        return tracked.current()


def end_at_origins(logs: LogCache, clone: str, location: str, origins: Sequence[Origin]) -> None:
    """End what these logs keep for the clone at a place that was purged, or has released them. What cannot be done now,
    for whatever reason, a vacuum of that table does: it looks at the clone's log.

    An id can be given to a log anywhere: it counts only at the place that the promise has.
    """
    for origin in origins:
        tracked = logs.table(origin.location)
        with suppress(LakelogError):
            view = tracked.current()
            promise = view.state.clones.get(clone)
            if view.log_id == origin.id and promise is not None and promise.location == location:
                _ended(tracked, view, [clone])


def settle_origins(logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]) -> list[str]:
    """Release what a clone needs no more (see `release_origins`), and return the folders of the tables that still keep
    files for it."""
    view = release_origins(logs, tracked, view)
    return [logs.url(origin.location) for origin in view.state.origins]


def release_origins(
    logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]
) -> View[TableState]:
    """Release the logs of which no version of this clone that can be read has a file, and return the view after that.

    Costs nothing for a table that is no clone, or has borrowed files on one of its lines; else one GET for each version
    that can be read.
    """
    free = _unneeded(logs, tracked, view)
    if not free:
        return view
    folders = [logs.url(origin.location) for origin in free]

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        for commit in passed:
            if any(has_any(table, folder) for table in added(tracked, commit) for folder in folders):
                raise NothingToDo("they are needed again")
        known = {origin.id for origin in view.state.origins}
        released = tuple(origin.id for origin in free if origin.id in known)
        if not released:
            raise NothingToDo("they are released")
        return Draft(events=encode([OriginsReleased(logs=released)]))

    try:
        after = tracked.commit(view, decide).view
    except (NothingToDo, LogSealed):
        return tracked.current()
    end_at_origins(logs, view.log_id, tracked.location, free)
    return after


def _unneeded(logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]) -> list[Origin]:
    folders = {origin: logs.url(origin.location) for origin in view.state.origins}
    if not folders:
        return []
    live = tracked.read(view, lambda view: all_named(tracked, view))
    free = [origin for origin, folder in folders.items() if not any(has_any(files, folder) for files in live)]
    if not free:
        return []
    ever = reachable(tracked, view.version)
    return [origin for origin in free if not has_any(ever, folders[origin])]


def has_any(files: pa.Table, folder: str) -> bool:
    """Return whether any of these objects is in the folder of a table."""
    return bool(pc.any(pc.starts_with(files["path"], f"{folder.rstrip('/')}/"), min_count=0).as_py())

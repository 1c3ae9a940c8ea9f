"""Whether a table's promises to its clones are still needed, and their end, on both sides.

Only the clone's log decides. It is purged, or it records that no readable version of it has files of that
owner any more. Neither can be undone, so a check never becomes outdated. If a clone's log is missing, is
another log, or cannot be read, its files are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, NothingToDo, TrackedLog, known_path_to
from lakelog.catalog.core.state import (
    CloneOrigin,
    ClonePromise,
    CloneReleased,
    OriginsReleased,
    TableState,
    encode,
)
from lakelog.catalog.keeping.maintenance.reachable import added, all_named, named_by, reachable
from lakelog.catalog.names import quoted
from lakelog.log import Commit, Draft, LogView
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


def over(logs: LogCache, owner: str, clones: Collection[tuple[str, ClonePromise]]) -> list[str]:
    """Return the ids of the clones that need no file of the log `owner`, an id, any more.

    Loads each clone's log.
    """
    return [id for id, promise in clones if _is_over(logs, owner, id, promise.location)]


def _is_over(logs: LogCache, owner: str, id: str, location: str) -> bool:
    view = _clone(logs, id, location)
    return view is not None and (view.purged or all(origin.id != owner for origin in view.state.origins))


def _clone(logs: LogCache, id: str, location: str) -> LogView[TableState] | None:
    """Return a clone's present log. None if it is not known. Raises StorageError."""
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
    logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState], without: Collection[str] = ()
) -> list[str]:
    """Return the names of the clones that need files in this table's own folder.

    Clones at the locations `without` are purged together with the table, and do not count.
    """
    clones = [
        (id, promise)
        for id, promise in view.state.clones.items()
        if promise.location not in without and _has_own(tracked, promise)
    ]
    ended_clones = over(logs, view.log_id, clones)
    return sorted(_name_of(logs, id, promise) for id, promise in clones if id not in ended_clones)


def _has_own(tracked: TrackedLog[TableState], promise: ClonePromise) -> bool:
    chunks = promise.files.chunks(tracked.log.read_blobs, ())
    return any(not is_elsewhere(path) for chunk in chunks for path in named_by(chunk)["path"].to_pylist())


def _name_of(logs: LogCache, id: str, promise: ClonePromise) -> str:
    try:
        view = _clone(logs, id, promise.location)
    except StorageError:
        view = None
    link = None if view is None else view.state.link
    if link is None:
        return logs.url(promise.location)
    path = known_path_to(logs, link.namespace)
    # By its name alone it would look like a table of the root, because its namespace was dropped.
    return logs.url(promise.location) if path is None else quoted([*path, link.name])


def end_promises(
    logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]
) -> LogView[TableState]:
    """End the promises to clones that need nothing any more, by a single commit. Return the view after it."""
    ended_clones = over(logs, view.log_id, view.state.clones.items())
    return _ended(tracked, view, ended_clones) if ended_clones else view


def release_lost(
    logs: LogCache, tracked: TrackedLog[TableState], title: str, clone: str, *, dry_run: bool
) -> ClonePromise:
    """End the promise to a clone whose log is gone, and which can never release it. Return the promise.

    With `dry_run`, only check whether that is possible. Raises InvalidInput if there is no promise to the
    clone. Raises Unsupported if its log, or a part of it, exists. Raises PermissionDenied or StorageError if
    that cannot be seen.
    """
    view = tracked.current()
    promise = view.state.clones.get(clone)
    if promise is None:
        clone_ids = ", ".join(sorted(view.state.clones)) or "none"
        raise InvalidInput(f"{title} keeps no files for a clone {clone}: it does for {clone_ids}")
    url = logs.url(promise.location)
    log = logs.table(promise.location).log
    try:
        clone_view = log.load()
    except NotFound:
        key = next(iter(log.replay.store.list_after(f"{log.keys.log}/")), None)
        if key is not None:
            raise Unsupported(
                f"the log of the clone at {url} is damaged and not gone, {key} is there: repair it, or restore it "
                "from a backup"
            ) from None
    else:
        is_over = clone_view.purged or all(origin.id != view.log_id for origin in clone_view.state.origins)
        if clone_view.log_id == clone and not is_over:
            raise Unsupported(
                f"the clone at {url} is there, and needs files of {title}: materialize it and expire its older "
                "versions, or drop and purge it"
            )
    if not dry_run:
        _ended(tracked, view, [clone])
    return promise


def _ended(
    tracked: TrackedLog[TableState], view: LogView[TableState], clones: Sequence[str]
) -> LogView[TableState]:
    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        present_clones = tuple(id for id in clones if id in view.state.clones)
        if not present_clones:
            raise NothingToDo("it has ended")
        return Draft(events=encode([CloneReleased(clones=present_clones)]))

    try:
        return tracked.commit(view, decide).view
    except NothingToDo:
        return tracked.current()


def end_at_origins(logs: LogCache, clone: str, location: str, origins: Sequence[CloneOrigin]) -> None:
    """End these logs' promises to the clone at a place that was purged, or that has released them.

    If this is not possible now, for whatever reason, a vacuum of the origin's table does it, by the clone's
    log.

    A log anywhere can have any id. So an id counts only at the place that the promise names.
    """
    for origin in origins:
        origin_log = logs.table(origin.location)
        with suppress(LakelogError):
            view = origin_log.current()
            promise = view.state.clones.get(clone)
            if view.log_id == origin.id and promise is not None and promise.location == location:
                _ended(origin_log, view, [clone])


def settle_origins(logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]) -> list[str]:
    """Release the origins that a clone does not need any more. Return the folders of the remaining origins.

    See `release_origins`. The remaining tables still keep files for the clone.
    """
    view = release_origins(logs, tracked, view)
    return [logs.url(origin.location) for origin in view.state.origins]


def release_origins(
    logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]
) -> LogView[TableState]:
    """Release the logs of which no readable version of this clone has a file, and return the view after that.

    Makes no request for a table that is no clone, or that has borrowed files on a line. Otherwise makes a GET
    request for each readable version.
    """
    free = _unneeded(logs, tracked, view)
    if not free:
        return view
    folders = [logs.url(origin.location) for origin in free]

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        for commit in passed_commits:
            if any(has_any(table, folder) for table in added(tracked, commit) for folder in folders):
                raise NothingToDo("they are needed again")
        origin_ids = {origin.id for origin in view.state.origins}
        free_ids = tuple(origin.id for origin in free if origin.id in origin_ids)
        if not free_ids:
            raise NothingToDo("they are released")
        return Draft(events=encode([OriginsReleased(logs=free_ids)]))

    try:
        new_view = tracked.commit(view, decide).view
    except (NothingToDo, LogSealed):
        return tracked.current()
    end_at_origins(logs, view.log_id, tracked.location, free)
    return new_view


def _unneeded(
    logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]
) -> list[CloneOrigin]:
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

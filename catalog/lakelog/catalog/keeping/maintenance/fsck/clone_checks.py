"""The two sides of a clone: a table with files of another table, and that table's promise to keep them.

They are two logs, read one after the other. Only the other side can undo the last state of a side. So a
contradiction counts if it still exists after both are read again. This module must not change anything.
"""

from __future__ import annotations

from typing import Any

from lakelog.catalog.core.logs import LogCache
from lakelog.catalog.core.state import CloneOrigin, ClonePromise, TableState
from lakelog.catalog.keeping.maintenance.fsck.links import shown
from lakelog.catalog.keeping.maintenance.fsck.walk import CheckedLog, WarehouseWalk
from lakelog.catalog.keeping.maintenance.promises import has_any
from lakelog.catalog.keeping.maintenance.reachable import reachable
from lakelog.log import LogView
from lakelog.log.errors import LakelogError, NotFound, StorageError


def check_clones(walk: WarehouseWalk) -> None:
    """Report clones whose files are not kept any more, and promises that nothing needs."""
    for checked_log in list(walk.checked.values()):
        view = checked_log.verified.view
        if view is None or view.purged or not isinstance(view.state, TableState):
            continue
        for origin in view.state.origins:
            _check_kept(walk, checked_log, origin)
        for id, promise in view.state.clones.items():
            _check_needed(walk, checked_log, id, promise)


def _check_kept(walk: WarehouseWalk, checked_log: CheckedLog, origin: CloneOrigin) -> None:
    owner = _table(walk.logs, origin.location)
    if owner is not None and _keeps(owner, origin, checked_log.verified.log_id):
        return
    current_view = _table(walk.logs, checked_log.tracked.location)
    if current_view is None or current_view.purged or origin not in current_view.state.origins:
        return  # released since
    folder = walk.logs.url(origin.location)
    if not _needs(checked_log, current_view, folder):
        return
    walk.findings.damage(
        "clone-not-kept",
        walk.logs.url(checked_log.tracked.location),
        f"{shown(checked_log.name)} is a clone with files of the table at {folder}, which does not keep them for it",
        "materialize the clone, and expire its older versions, before that table is vacuumed; else restore both "
        "folders from one backup",
    )


def _needs(checked_log: CheckedLog, view: LogView[TableState], folder: str) -> bool:
    """Return whether a readable version has a file of that folder, as far as that can be found out."""
    try:
        return has_any(reachable(checked_log.tracked, view.version), folder)
    except StorageError:
        raise
    except LakelogError:
        return True


def _keeps(owner: LogView[TableState], origin: CloneOrigin, clone: str) -> bool:
    return owner.log_id == origin.id and not owner.purged and clone in owner.state.clones


def _check_needed(walk: WarehouseWalk, checked_log: CheckedLog, id: str, promise: ClonePromise) -> None:
    clone = _table(walk.logs, promise.location)
    url = walk.logs.url(checked_log.tracked.location)
    if clone is None or clone.log_id != id:
        walk.findings.note(
            "clone-missing",
            url,
            f"{shown(checked_log.name)} keeps files "
            f"for a clone at {walk.logs.url(promise.location)}, the log of which is "
            "not there, or cannot be read",
            "restore that folder from a backup; where it is gone for good, run `lakelog release-clone` with the "
            f"table and the id {id}, and `--apply`",
        )
    elif clone.purged or all(origin.id != checked_log.verified.log_id for origin in clone.state.origins):
        walk.findings.note(
            "clone-over",
            url,
            f"{shown(checked_log.name)} keeps files "
            f"for a clone at {walk.logs.url(promise.location)}, which needs them no "
            "more",
            "leave it to vacuum",
        )


def _table(logs: LogCache, location: str) -> LogView[Any] | None:
    """Return a table's log, read again. None if there is no readable log."""
    try:
        return logs.table(location).log.load()
    except NotFound:
        return None
    except StorageError:
        raise
    except LakelogError:
        return None

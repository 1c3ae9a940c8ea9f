"""The two sides of a clone: the table that has files of another, and the promise of that other to keep them.

They are two logs, read one after the other. What each says at its end can only be taken back by the other, so a
contradiction counts where it is still there when both are read anew. It must not change anything.
"""

from __future__ import annotations

from typing import Any

from lakelog.catalog.core.logs import LogCache
from lakelog.catalog.core.state import Origin, Promise, TableState
from lakelog.catalog.keeping.maintenance.fsck.links import shown
from lakelog.catalog.keeping.maintenance.fsck.walk import Checked, Walk
from lakelog.catalog.keeping.maintenance.promises import has_any
from lakelog.catalog.keeping.maintenance.reachable import reachable
from lakelog.log import View
from lakelog.log.errors import LakelogError, NotFound, StorageError


def check_clones(walk: Walk) -> None:
    """Report clones for which nothing is kept any more, and what is kept for nothing."""
    for checked in list(walk.checked.values()):
        view = checked.verified.view
        if view is None or view.purged or not isinstance(view.state, TableState):
            continue
        for origin in view.state.origins:
            _check_kept(walk, checked, origin)
        for id, promise in view.state.clones.items():
            _check_needed(walk, checked, id, promise)


def _check_kept(walk: Walk, checked: Checked, origin: Origin) -> None:
    owner = _table(walk.logs, origin.location)
    if owner is not None and _keeps(owner, origin, checked.verified.log_id):
        return
    now = _table(walk.logs, checked.tracked.location)
    if now is None or now.purged or origin not in now.state.origins:
        return  # released meanwhile
    folder = walk.logs.url(origin.location)
    if not _needs(checked, now, folder):
        return
    walk.findings.damage(
        "clone-not-kept",
        walk.logs.url(checked.tracked.location),
        f"{shown(checked.name)} is a clone with files of the table at {folder}, which does not keep them for it",
        "materialize the clone, and expire its older versions, before that table is vacuumed; else restore both "
        "folders from one backup",
    )


def _needs(checked: Checked, now: View[TableState], folder: str) -> bool:
    """Return whether a version that can be read has a file of that folder, as far as that can be found out."""
    try:
        return has_any(reachable(checked.tracked, now.version), folder)
    except StorageError:
        raise
    except LakelogError:
        return True


def _keeps(owner: View[TableState], origin: Origin, clone: str) -> bool:
    return owner.log_id == origin.id and not owner.purged and clone in owner.state.clones


def _check_needed(walk: Walk, checked: Checked, id: str, promise: Promise) -> None:
    clone = _table(walk.logs, promise.location)
    url = walk.logs.url(checked.tracked.location)
    if clone is None or clone.log_id != id:
        walk.findings.note(
            "clone-missing",
            url,
            f"{shown(checked.name)} keeps files for a clone at {walk.logs.url(promise.location)}, the log of which is "
            "not there, or cannot be read",
            "restore that folder from a backup; where it is gone for good, run `lakelog release-clone` with the "
            f"table and the id {id}",
        )
    elif clone.purged or all(origin.id != checked.verified.log_id for origin in clone.state.origins):
        walk.findings.note(
            "clone-over",
            url,
            f"{shown(checked.name)} keeps files for a clone at {walk.logs.url(promise.location)}, which needs them no "
            "more",
            "leave it to vacuum",
        )


def _table(logs: LogCache, location: str) -> View[Any] | None:
    """Return a table's log read anew, None where there is none that can be read."""
    try:
        return logs.table(location).log.load()
    except NotFound:
        return None
    except StorageError:
        raise
    except LakelogError:
        return None

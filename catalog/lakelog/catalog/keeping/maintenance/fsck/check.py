"""`check`: the entry point for a check of a warehouse, a table, a namespace, or the log at a place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from lakelog.catalog.core.logs import LogCache, follow, no_such_table
from lakelog.catalog.core.state import NAMESPACE, RELATION
from lakelog.catalog.keeping.maintenance.fsck import clone_checks, surroundings, transaction_checks
from lakelog.catalog.keeping.maintenance.fsck.data_checks import Checksum
from lakelog.catalog.keeping.maintenance.fsck.repair import repair as repair_all
from lakelog.catalog.keeping.maintenance.fsck.walk import CheckDepth, WarehouseWalk
from lakelog.catalog.names import Identifier
from lakelog.log import wait_for_background
from lakelog.log.checks.findings import Findings
from lakelog.log.errors import InvalidInput, LakelogError, NotFound
from lakelog.log.format import Commit, decode_base, decode_entry
from lakelog.log.replay import is_blank


def check_warehouse(
    logs: LogCache,
    name: Identifier = (),
    *,
    location: str | None = None,
    deep: bool = False,
    all_versions: bool = False,
    repair: bool = False,
    checksums: Mapping[str, Checksum] | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> Findings:
    """Check the whole warehouse, the table or namespace `name` with all below it, or the log at `location`.

    Reads every object of the logs, and the footers of the data files of current versions. With
    `all_versions`, reads the footers of all readable versions. With `deep`, reads every page, except of files
    whose `checksums` (by URL) an engine computed. With `repair`, makes the provably safe repairs (see
    `repair`) and checks again. Raises NoSuchTable, NotFound, and FormatError if damage hides `name`.
    """
    # Snapshots that this process is about to write for its own commits are not missing.
    with suppress(TimeoutError):
        wait_for_background()
    depth = CheckDepth(deep=deep, all_versions=all_versions, checksums=checksums or {})
    walk = _walked(logs, name, location, depth, Findings(progress=progress))
    if not repair:
        return walk.findings
    repairs = repair_all(walk)
    again = _walked(logs, name, location, depth, Findings(progress=progress))
    again.findings.repaired = repairs
    return again.findings


def _walked(
    logs: LogCache, name: Identifier, location: str | None, depth: CheckDepth, findings: Findings
) -> WarehouseWalk:
    walk = WarehouseWalk(logs, findings, depth)
    _check_scope(walk, name, location)
    transaction_checks.check_undecided(walk)
    return walk


def _check_scope(walk: WarehouseWalk, name: Identifier, location: str | None) -> None:
    if location is not None:
        _check_place(walk, location)
    elif name:
        _check_named(walk, name)
    elif _is_set_up(walk.logs):
        walk.namespace("", ())
        _check_around(walk)
    transaction_checks.check_cuts(walk)
    clone_checks.check_clones(walk)


def _check_around(walk: WarehouseWalk) -> None:
    """Run the checks that need all logs of the warehouse to have been checked."""
    walk.whole = True
    surroundings.check(walk)
    transaction_checks.check_decisions(walk)


def _is_set_up(logs: LogCache) -> bool:
    """Return whether there is a warehouse. A missing or empty folder is a new warehouse, without logs."""
    store = logs.places.store(logs.warehouse)
    tests = (surroundings.is_of_doctor, surroundings.is_published, surroundings.is_proof)
    first = next(
        (key for key in store.list_after("") if not any(is_derived(key) for is_derived in tests)), None
    )
    if first is not None and not any(surroundings.is_own(key) for key in (first, *store.list_after("_log/"))):
        raise InvalidInput(f"{logs.warehouse} is not a lakelog warehouse: it holds {first!r} and no log")
    return first is not None


def _check_named(walk: WarehouseWalk, name: Identifier) -> None:
    """Check the table or namespace of this name. The namespaces on the way are read, not checked."""
    levels = list(follow(walk.logs, name[:-1], lambda path, entry, tracked: tracked.log.load()))
    if len(levels) < len(name):
        raise no_such_table(name)
    home = levels[-1]
    table, namespace = (home.view.state.entry(space, name[-1]) for space in (RELATION, NAMESPACE))
    if table is None and namespace is None:
        raise no_such_table(name)
    if table is not None:
        walk.table(table.location, name, table, home.tracked.location)
    if namespace is not None:
        walk.namespace(namespace.location, name, namespace, home.tracked.location)


def _check_place(walk: WarehouseWalk, location: str) -> None:
    location = walk.logs.location(location)
    if holds_a_table(walk.logs, location):
        walk.table(location, None)
    elif location == "":
        walk.namespace("", ())
        _check_around(walk)
    else:
        walk.namespace(location, None)


def holds_a_table(logs: LogCache, location: str) -> bool:
    """Return, from the oldest readable object, whether the log at a place is a table's or a namespace's."""
    unread_log = logs.unread(location)
    keys, store, features = unread_log.log.keys, unread_log.store, unread_log.log.replay.features
    versions = [key for key in store.list_after(f"{keys.log}/0") if re.search(r"/[0-9]{20}\.json$", key)]
    for key in versions[:100]:
        data = store.get(key)
        try:
            entry = decode_entry(data or b"", key, features)
        except LakelogError:
            continue
        if isinstance(entry, Commit) and entry.events:
            kind = str(entry.events[0].get("event"))
            return not kind.startswith(("namespace-", "entry-", "cut-"))
        break
    for key in store.list_after(f"{keys.log}/bases/"):
        try:
            base = decode_base(store.get(key) or b"", key, features, number=int(key[-25:-5]))
            if is_blank(base):
                continue
            return isinstance(base.root.state, dict) and "metadata" in base.root.state
        except (LakelogError, ValueError):
            continue
    if not versions:
        raise NotFound(f"there is no log at {logs.url(location)}: check the path")
    return bool(re.search(r"(^|/)t-[a-z2-7]{26}$", location))

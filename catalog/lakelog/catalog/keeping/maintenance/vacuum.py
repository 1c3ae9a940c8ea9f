"""Deleting unreachable objects: data files of no retained version or write under way, and leftovers of logs.

A file never counts as abandoned because of its age. Its name has the version from which its write started. So
a commit with a fence at some version comes first. From then on the log itself refuses every write that
started before it. Consider a file that no retained version has, and whose name has a version older than the
fence. It can never be reached again, whenever it was listed and whatever its writer still does. The age
decides only where the fence is put. It must be long enough for writes under way: a write that started before
the fence fails with a clear error, and only loses its work. The fence's commit sees commits made during a
vacuum: it is decided on all commits before it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import msgspec

from lakelog.catalog.core.ddl import NeededVersions, folder_of_cuts
from lakelog.catalog.core.files import without
from lakelog.catalog.core.logs import (
    LogScope,
    LogTarget,
    NameTree,
    Progress,
    TrackedLog,
    in_turn,
    no_progress,
)
from lakelog.catalog.core.state import FilesVacuumed, NameLink, NamespaceState, TableState, encode
from lakelog.catalog.errors import DoneInPart, LinkedElsewhere
from lakelog.catalog.formats.iceberg import unneeded
from lakelog.catalog.keeping.maintenance import orphans, purge
from lakelog.catalog.keeping.maintenance.adopted import UnusedAdoptedFiles, unreached
from lakelog.catalog.keeping.maintenance.adopted import delete as delete_adopted
from lakelog.catalog.keeping.maintenance.ages import age_us, judging_us, until_us
from lakelog.catalog.keeping.maintenance.engine import MANY_OBJECTS, OBJECTS_AT_ONCE, Engine, burying
from lakelog.catalog.keeping.maintenance.expire import LOGS_AT_ONCE
from lakelog.catalog.keeping.maintenance.found_files import FoundFiles, own_files
from lakelog.catalog.keeping.maintenance.listing import bounds_of, listed
from lakelog.catalog.keeping.maintenance.promises import end_promises, release_origins
from lakelog.catalog.keeping.maintenance.purge import PurgedContent, folder
from lakelog.catalog.keeping.maintenance.reachable import DATA, added, all_named, among, paths, unreachable
from lakelog.catalog.names import quoted
from lakelog.catalog.retention import DROPPED_RETENTION_DAYS
from lakelog.log import Commit, Draft, LogView, expiry
from lakelog.log.burial import is_buried
from lakelog.log.errors import InvalidInput, LakelogError, LogSealed, NotFound
from lakelog.log.leftovers import last_base_from, unreferenced

PAGE = 50_000
"""The number of data files that are compared with the table's files at once."""

VACUUM_DEFAULT_AGE = dt.timedelta(days=3)
VACUUM_DEFAULT_DROPPED_AGE = dt.timedelta(days=DROPPED_RETENTION_DAYS)


class Vacuumed(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that are deleted, or would be, at a place, and the reason.

    `kind`: table, namespace (its log's leftovers); dropped-table, dropped-namespace (dropped longer ago than
    its retention: purged with all that is below); unlinked-table, unlinked-namespace (an unfinished
    creation); adopted-files (in the folder of a table's former source). `files` are data files, and `objects`
    are all others except commits. `fence` is the first version whose writes continue; None if no fence was
    needed. `waiting` files are in no version, but their writes may still be under way. `foreign` files are
    not lakelog's, or are another table's too: they stay. A dropped object may be `kept_for_clones` of these
    names. `error` is the reason if a place was skipped. `keys` names every object, if requested.
    """

    kind: str
    name: str
    location: str
    fence: int | None = None
    files: int = 0
    size_bytes: int = 0
    objects: int = 0
    object_bytes: int = 0
    waiting: int = 0
    foreign: int = 0
    kept_for_cuts: bool = False
    kept_for_clones: tuple[str, ...] = ()
    error: str | None = None
    keys: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Return whether the dropped object stays as it is."""
        return self.kept_for_cuts or bool(self.kept_for_clones)


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumRequest:
    """The arguments of a vacuum, with ages in microseconds."""

    write_age_us: int
    dropped_age_us: int
    dry_run: bool
    keys: bool
    trust_clock: bool = False
    progress: Progress = no_progress
    engine: Engine | None = None
    marks: bool = False


def vacuum_wish(
    *,
    older_than: dt.timedelta | None = None,
    dropped_older_than: dt.timedelta | None = None,
    dry_run: bool,
    keys: bool,
    trust_clock: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
    marks: bool = False,
) -> VacuumRequest:
    """Return the arguments of a vacuum. Raises InvalidInput for negative ages and other types.

    An `engine` deletes a table's objects if there are many, after the commit that keeps writers from them.
    With `marks`, the fence of a table moves even if there is nothing to delete. So the log records up to
    which version it was searched.
    """
    return VacuumRequest(
        write_age_us=age_us("older_than", VACUUM_DEFAULT_AGE if older_than is None else older_than),
        dropped_age_us=age_us(
            "dropped_older_than",
            VACUUM_DEFAULT_DROPPED_AGE if dropped_older_than is None else dropped_older_than,
        ),
        dry_run=dry_run,
        keys=keys,
        trust_clock=trust_clock,
        progress=progress or no_progress,
        engine=engine,
        marks=marks,
    )


def vacuum_logs(tree: NameTree, scope: LogScope, asked_request: VacuumRequest) -> list[Vacuumed]:
    """Delete the unreachable objects in `scope`, or report the objects that would be deleted.

    A failure does not stop the rest. Raises ClockNotTrusted (see `ages`).

    For each table, makes 4 to 6 LIST requests (more for more than 1000 files, see `listing`) and a few GETs.
    If it meets a file that the current version lacks, it makes a GET request for each retained version since
    the file's write began. It makes a PUT request for the fence, and a request for every 1000 deletions. For
    each namespace, it makes a LIST request of its folders, and a GET request for each folder that no name
    leads to.
    """

    def goes(now_us: int) -> set[str]:
        results = _each(
            tree, scope, replace(asked_request, dry_run=True, keys=True, progress=no_progress), now_us
        )
        return {name for result in results for name in (*result.keys, _purged(result)) if name}

    now_us = judging_us(
        tree, scope, goes, only_look=asked_request.dry_run, trust_clock=asked_request.trust_clock
    )
    return _each(tree, scope, asked_request, now_us)


def _purged(each: Vacuumed) -> str:
    """Return the name of a purged object, which can no longer be restored, though it may have no objects."""
    return f"{each.kind} {each.name}" if each.kind.startswith("dropped") and not each.is_kept else ""


def _each(tree: NameTree, scope: LogScope, request: VacuumRequest, now_us: int) -> list[Vacuumed]:
    results = [
        Vacuumed(kind=log.kind, name=log.name, location=log.location, error=log.error)
        for log in scope.unreadable
    ]
    known_places = orphans.known_places(scope)
    for namespace in scope.namespaces:
        request.progress(f"{namespace.name}: dropped and unlinked objects")
        try:
            results += _dropped(tree, namespace, request, now_us)
            results += _unlinked(tree, namespace, known_places, request, now_us)
            results += _leftovers(namespace, request)
        except LakelogError as error:
            results.append(_failed("namespace", namespace, error))
    together = replace(request, progress=in_turn(request.progress))

    def table(target: LogTarget[TableState]) -> list[Vacuumed]:
        table_results: list[Vacuumed] = []
        try:
            table_results.append(_table(tree, target, together, now_us))
            table_results += _adopted(tree, target, together)
        except LakelogError as error:
            if scope.is_one_table:
                raise
            table_results.append(_failed("table", target, error))
        return table_results

    # Most tables have few objects, and round trips take the time. So several tables are processed in
    # parallel.
    for begin in range(0, len(scope.tables), LOGS_AT_ONCE):
        batch = scope.tables[begin : begin + LOGS_AT_ONCE]
        request.progress(f"{begin + 1:,} of {len(scope.tables):,}: {batch[0].name}")
        for table_results in tree.logs.in_parallel(table, batch):
            results += table_results
    return results


def _failed(kind: str, target: LogTarget[Any], error: LakelogError) -> Vacuumed:
    return Vacuumed(kind=kind, name=target.name, location=target.tracked.log.location, error=str(error))


def _answer(
    kind: str, name: str, location: str, content: PurgedContent, request: VacuumRequest, **more: Any
) -> Vacuumed:
    keys = tuple(sorted(content.files.keys() | content.objects.keys())) if request.keys else ()
    return Vacuumed(
        kind=kind,
        name=name,
        location=location,
        files=len(content.files),
        size_bytes=sum(content.files.values()),
        objects=len(content.objects),
        object_bytes=sum(content.objects.values()),
        foreign=content.foreign,
        keys=keys,
        **more,
    )


# Tables


def _table(tree: NameTree, target: LogTarget[TableState], request: VacuumRequest, now_us: int) -> Vacuumed:
    table_log = target.tracked
    # Waiting for another client's transaction may abort it, so a dry run only reads.
    view = table_log.current() if request.dry_run else table_log.settled()
    if view.sealed:
        raise NotFound(f"{target.name} was dropped meanwhile: nothing was done")
    if not request.dry_run:
        view = end_promises(tree.logs, table_log, release_origins(tree.logs, table_log, view))
    prefix = folder(table_log)
    base = last_base_from(table_log.log, view)
    objects = unreferenced(table_log.log, view, base)
    for place in (table_log.log.keys.log, f"{prefix}_txn", f"{prefix}{DATA}".rstrip("/")):
        objects |= table_log.store.list_leftovers(f"{place}/")
    objects |= unneeded(table_log.store, prefix, tree.logs.url(table_log.location))
    candidates, foreign = _unreached(table_log, view, prefix, request.progress)
    if not candidates.count and not request.marks:
        fence = 0  # no fence is needed
    elif request.write_age_us:
        # A write from an earlier version than this is even older.
        fence = max(table_log.version_then(view, until_us(now_us, request.write_age_us)), view.fence)
    else:
        fence = view.version + 1
    deletable = candidates.before(fence)
    waiting_count = candidates.count - deletable.count
    if request.dry_run:
        new_fence = fence if deletable.count else None
    elif (
        deletable.count or (waiting_count and fence == view.version) or (request.marks and fence > view.fence)
    ):
        # If there was no commit for long, this commit allows the next run to move the fence.
        fence, deletable = _fenced(table_log, view, fence if request.write_age_us else None, candidates)
        waiting_count = candidates.count - deletable.count
        new_fence = fence
    else:
        new_fence = None
    del candidates
    if not request.dry_run:
        try:
            if deletable.count or objects or base is not None:
                _end_expiry(target, view, request)
            _delete(table_log, deletable, prefix, objects, request)
        except LakelogError as error:
            raise DoneInPart(
                f"of {target.name}, some files are left that can go: {error}. Run vacuum again, which deletes them"
            ) from error
    keys = tuple(sorted([*deletable.keys(prefix), *objects])) if request.keys else ()
    return Vacuumed(
        kind="table",
        name=target.name,
        location=table_log.log.location,
        fence=new_fence,
        files=deletable.count,
        size_bytes=deletable.size_bytes,
        objects=len(objects),
        object_bytes=sum(objects.values()),
        waiting=waiting_count,
        foreign=foreign,
        keys=keys,
    )


def _end_expiry(target: LogTarget[TableState], view: LogView[TableState], request: VacuumRequest) -> None:
    """Complete an expiry that was stopped or is under way, so that expired versions cannot be read any more.

    This is done only before a deletion, because by then another process may have done it.
    """
    log = target.tracked.log
    base = last_base_from(log, view)
    if base is not None and not is_buried(log.replay, base):
        expiry.clean_up(log, base, bury=burying(request.engine, target.name, base.root.version))


def _delete(
    tracked: TrackedLog[TableState],
    files: FoundFiles,
    prefix: str,
    objects: Collection[str],
    request: VacuumRequest,
) -> None:
    keys = chain(files.keys(prefix), objects)
    count = files.count + len(objects)
    if request.engine is None or count <= MANY_OBJECTS:
        purge.delete_keys(tracked, keys, count, request.progress)
        return
    deleted_count = 0
    while batch := [f"{tracked.store.url}/{key}" for key in islice(keys, OBJECTS_AT_ONCE)]:
        request.engine.delete(batch)
        deleted_count += len(batch)
        request.progress(f"{tracked.log.location}: {deleted_count:,} of {count:,} objects deleted")


def _unreached(
    tracked: TrackedLog[TableState], view: LogView[TableState], prefix: str, progress: Progress
) -> tuple[FoundFiles, int]:
    """Return the data files that no readable version up to `view` has, and the number of foreign files.

    Holds a page of all existing files at once.
    """
    live = tracked.read(view, lambda view: all_named(tracked, view))
    objects = listed(tracked.store, f"{prefix}{DATA}", bounds_of(prefix, live, view.version))
    candidates = FoundFiles()
    foreign = object_count = 0
    while page := list(islice(objects, PAGE)):
        object_count += len(page)
        files, foreign_count = own_files(page, prefix)
        foreign += foreign_count
        for chunk in live:
            files = without(files, among(chunk, files))
        candidates.add(files)
        progress(f"{tracked.log.location}: {object_count:,} objects listed")
    # A file's name has the version from which its write started, and no version before that has the file.
    unreached_tables = unreachable(tracked, view.version, candidates.tables, candidates.oldest, progress)
    return FoundFiles(unreached_tables), foreign


def _fenced(
    tracked: TrackedLog[TableState], view: LogView[TableState], fence: int | None, unreached_files: FoundFiles
) -> tuple[int, FoundFiles]:
    """Commit the fence, and return it with the files of `unreached_files` that can be deleted behind it.

    Without a given fence it is the commit's own version. Then no write that began before can commit.
    """
    decision: tuple[int, FoundFiles] = (0, FoundFiles())

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        nonlocal decision
        new_fence = max(view.version + 1 if fence is None else fence, view.fence)
        brought = {
            path for commit in passed_commits for table in added(tracked, commit) for path in paths(table)
        }
        deletable = unreached_files.before(new_fence, brought)
        decision = new_fence, deletable
        event = FilesVacuumed(files=deletable.count, size_bytes=deletable.size_bytes)
        return Draft(events=encode([event]), fence=new_fence)

    try:
        tracked.commit(view, decide)
    except LogSealed as error:
        raise NotFound(f"{tracked.log.location} was dropped meanwhile: nothing was done") from error
    return decision


def _adopted(tree: NameTree, target: LogTarget[TableState], request: VacuumRequest) -> list[Vacuumed]:
    """Delete files that the table has adopted, and that no version has.

    If another owner has a file, that is no failure of the vacuum: the file stays, and the answer has the
    reason.
    """
    table_log = target.tracked
    # Most tables have adopted nothing. The known state is new enough to see that, and costs nothing.
    if table_log.at_least(target.view.version).state.adopted is None:
        return []
    view = table_log.current() if request.dry_run else table_log.settled()
    adoption = view.state.adopted
    if adoption is None:
        return []  # purged since
    kind, where = "adopted-files", adoption.source.url
    try:
        unused_files = unreached(tree, table_log, view, request.progress, settle=not request.dry_run)
        if unused_files is None:
            return []
        if not request.dry_run:
            delete_adopted(tree, table_log, view, unused_files)
    except InvalidInput as error:
        return [Vacuumed(kind=kind, name=target.name, location=where, error=str(error))]
    return [_of_adopted(kind, target.name, unused_files, request)]


def _of_adopted(kind: str, name: str, going: UnusedAdoptedFiles, request: VacuumRequest) -> Vacuumed:
    content = PurgedContent(files=going.files, foreign=going.held)
    return _answer(kind, name, going.adopted.source.url, content, request)


# Namespaces


def _dropped(
    tree: NameTree, namespace: LogTarget[NamespaceState], request: VacuumRequest, now_us: int
) -> list[Vacuumed]:
    """Purge the objects of a namespace that were dropped longer ago than their retention."""
    results: list[Vacuumed] = []
    purged_ids: list[str] = []
    cuts = NeededVersions(tree)
    until = until_us(now_us, request.dropped_age_us)
    for id, (kind, name, entry) in purge.due(namespace.view.state, until).items():
        title = quoted((*(namespace.path or ()), name))
        link = NameLink(namespace=namespace.tracked.location, name=name)
        try:
            plan = purge.plan_purge(tree, kind, title, entry, link=link, only_look=request.dry_run)
            if plan is not None and not plan.view.purged and plan.view.time_us > until:
                continue  # restored since the namespace was read, and perhaps dropped again
            if plan is None:
                purged_ids.append(id)
                results.append(
                    _answer(f"dropped-{kind}", title, tree.logs.url(entry.location), PurgedContent(), request)
                )
                continue
            is_needed = purge.is_needed(plan, cuts)
            clones = purge.clones_of(tree, plan)
            if not request.dry_run and not is_needed and not clones:
                request.progress(f"purging {title}")
                if purge.do(tree, plan):
                    purged_ids.append(id)
                else:
                    is_needed = True
        except LakelogError as error:
            # An object may need files elsewhere, such as adopted files. The others are purged nevertheless.
            if isinstance(error, LinkedElsewhere) and id not in namespace.tracked.current().state.dropped:
                continue  # restored elsewhere since
            location = tree.logs.url(entry.location)
            results.append(Vacuumed(kind=f"dropped-{kind}", name=title, location=location, error=str(error)))
            continue
        results += _of_purges("dropped", plan, request, is_needed, clones)
    for drop in purge.due_definitions(namespace.view.state, until):
        purged_ids.append(drop.entry.id)
        title = quoted((*(namespace.path or ()), drop.name))
        shown_kind = f"dropped-{drop.entry.kind}"
        results.append(_answer(shown_kind, title, namespace.tracked.log.location, PurgedContent(), request))
    if not request.dry_run and purged_ids:
        purge.take_off_the_list(namespace, purged_ids)
    return results


def _of_purges(
    why: str, planned_purge: purge.LogPurge, request: VacuumRequest, kept: bool, clones: Sequence[str] = ()
) -> list[Vacuumed]:
    results = [_of_purge(why, log, request, kept, clones) for log in planned_purge.all()]
    if not kept and not clones:
        results += [
            _of_adopted("adopted-files", log.name, log.adopted, request)
            for log in planned_purge.all()
            if log.adopted is not None
        ]
    return results + [
        Vacuumed(kind=f"{why}-{log.kind}", name=log.name, location=log.location, error=log.error)
        for plan in planned_purge.all()
        for log in plan.refused
    ]


def _of_purge(
    why: str, each_purge: purge.LogPurge, request: VacuumRequest, kept: bool, clones: Sequence[str]
) -> Vacuumed:
    content = PurgedContent(foreign=each_purge.content.foreign) if kept or clones else each_purge.content
    return _answer(
        f"{why}-{each_purge.kind}",
        each_purge.name,
        each_purge.tracked.log.location,
        content,
        request,
        kept_for_cuts=kept,
        kept_for_clones=tuple(clones),
    )


def _unlinked(
    tree: NameTree,
    namespace: LogTarget[NamespaceState],
    known: Collection[str],
    request: VacuumRequest,
    now_us: int,
) -> list[Vacuumed]:
    """Purge logs and folders of unfinished creations."""
    made_until, dropped_until = (
        until_us(now_us, request.write_age_us),
        until_us(now_us, request.dropped_age_us),
    )
    findings = orphans.find(tree, namespace, known, made_until, dropped_until)
    results: list[Vacuumed] = []
    if not request.dry_run:
        orphans.note(namespace, findings)
    for orphan in findings.logs:
        if request.dry_run or orphans.remove(tree, orphan):
            results += _of_purges("unlinked", orphan.purge, request, False)
    for location, content in findings.folders.items():
        if not request.dry_run:
            purge.delete(tree.logs.table(location), content, request.progress)
        results.append(
            _answer("unlinked-table", tree.logs.url(location), tree.logs.url(location), content, request)
        )
    for location, files in findings.begun.items():
        url = tree.logs.url(location)
        results.append(Vacuumed(kind="unlinked-table", name=url, location=url, waiting=files))
    results += [
        Vacuumed(kind=f"unlinked-{log.kind}", name=log.name, location=log.location, error=log.error)
        for log in findings.unreadable
    ]
    return results


def _leftovers(namespace: LogTarget[NamespaceState], request: VacuumRequest) -> list[Vacuumed]:
    """Delete objects that a namespace's own log no longer needs. It has no data files, so it needs no fence."""
    namespace_log = namespace.tracked
    view = namespace_log.current() if request.dry_run else namespace_log.settled()
    objects = unreferenced(namespace_log.log, view, last_base_from(namespace_log.log, view))
    objects |= namespace_log.store.list_leftovers(f"{namespace_log.log.keys.log}/")
    objects |= namespace_log.store.list_leftovers(f"{purge.folder(namespace_log)}_txn/")
    objects |= namespace_log.store.list_leftovers(folder_of_cuts(namespace_log))
    content = PurgedContent(objects=objects)
    if not request.dry_run:
        purge.delete(namespace_log, content, request.progress)
    return [_answer("namespace", namespace.name, namespace_log.log.location, content, request)]

"""Deleting unreachable objects: data files of no retained version and of no write under way, and leftovers of logs.

A file never counts as abandoned because of its age. Its name says from which version its write started. So a commit
with a fence at some version comes first: from then on the log itself refuses every write that started before it. A
file that no retained version has, and that is named by a version older than the fence, can then never be reached
again, whenever it was listed and whatever its writer still does. The age decides only where the fence is put. It must
be long enough for writes under way: one that started before fails with a clear error, and only loses its work.

Commits made during a vacuum are seen by the fence's commit: it is judged on all that passed before it.
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
from lakelog.catalog.core.logs import NameTree, Progress, Scope, Target, TrackedLog, in_turn, no_progress
from lakelog.catalog.core.schema import kind_of
from lakelog.catalog.core.state import FilesVacuumed, Link, NamespaceState, TableState, encode
from lakelog.catalog.errors import DoneInPart, LinkedElsewhere
from lakelog.catalog.formats.iceberg import unneeded
from lakelog.catalog.keeping.maintenance import orphans, purge
from lakelog.catalog.keeping.maintenance.adopted import Going, unreached
from lakelog.catalog.keeping.maintenance.adopted import delete as delete_adopted
from lakelog.catalog.keeping.maintenance.ages import age_us, judging_us, until_us
from lakelog.catalog.keeping.maintenance.engine import MANY_OBJECTS, OBJECTS_AT_ONCE, Engine, burying
from lakelog.catalog.keeping.maintenance.expire import LOGS_AT_ONCE
from lakelog.catalog.keeping.maintenance.found_files import FoundFiles, own_files
from lakelog.catalog.keeping.maintenance.listing import bounds_of, listed
from lakelog.catalog.keeping.maintenance.promises import end_promises, release_origins
from lakelog.catalog.keeping.maintenance.purge import Content, folder
from lakelog.catalog.keeping.maintenance.reachable import DATA, added, all_named, among, paths, unreachable
from lakelog.catalog.names import quoted
from lakelog.catalog.retention import DROPPED_RETENTION_DAYS
from lakelog.log import Commit, Draft, View, expiry
from lakelog.log.burial import is_buried
from lakelog.log.errors import InvalidInput, LakelogError, LogSealed, NotFound
from lakelog.log.leftovers import last_base_from, unreferenced

PAGE = 50_000
"""Data files that are compared with those of the table at once."""

VACUUM_DEFAULT_AGE = dt.timedelta(days=3)
VACUUM_DEFAULT_DROPPED_AGE = dt.timedelta(days=DROPPED_RETENTION_DAYS)


class Vacuumed(msgspec.Struct, frozen=True, kw_only=True):
    """What is deleted, or would be, at one place, and why.

    `kind`: table, namespace (its log's leftovers); dropped-table, dropped-namespace (dropped longer ago than its
    retention: purged with all that is below); unlinked-table, unlinked-namespace (an unfinished creation);
    adopted-files (in the folder of a table's former source). `files` are data files, `objects` all others except
    commits. `fence` is the first version whose writes go on, None where none was needed. `waiting` files are in no
    version, but their writes may still be under way. `foreign` files are not lakelog's, or are another table's too:
    they stay. What was dropped may be `kept_for_clones` of these names. `error` is why a place was skipped. `keys`
    names every object, where that was requested.
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
        """Whether what was dropped stays as it is."""
        return self.kept_for_cuts or bool(self.kept_for_clones)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The arguments of a vacuum: the ages in microseconds."""

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
) -> Wish:
    """Return the arguments of a vacuum. InvalidInput for negative ages and other types.

    An `engine` deletes a table's objects where there are many, after the commit that keeps writers from them. With
    `marks`, the fence of a table moves on also where there is nothing to delete, so that the log says up to which
    version it was looked for.
    """
    return Wish(
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


def vacuum_logs(tree: NameTree, scope: Scope, asked: Wish) -> list[Vacuumed]:
    """Delete the unreachable objects in `scope`, or report what would be deleted. One failure does not stop the rest.
    ClockNotTrusted (see `ages`).

    Costs, for each table, four to six LISTs (more for more than 1000 files, see `listing`) and a few GETs; where a
    file is met that the current version does not have, one GET for each retained version since its write began; a PUT
    for the fence, and a request for every 1000 deletions. For each namespace a LIST of its folders, and one GET for
    each folder that no name leads to.
    """

    def goes(now_us: int) -> set[str]:
        looked = _each(tree, scope, replace(asked, dry_run=True, keys=True, progress=no_progress), now_us)
        return {gone for each in looked for gone in (*each.keys, _purged(each)) if gone}

    now_us = judging_us(tree, scope, goes, only_look=asked.dry_run, trust_clock=asked.trust_clock)
    return _each(tree, scope, asked, now_us)


def _purged(each: Vacuumed) -> str:
    """Return what can no longer be restored then, though it may have no objects."""
    return f"{each.kind} {each.name}" if each.kind.startswith("dropped") and not each.is_kept else ""


def _each(tree: NameTree, scope: Scope, asked: Wish, now_us: int) -> list[Vacuumed]:
    done = [
        Vacuumed(kind=each.kind, name=each.name, location=each.location, error=each.error)
        for each in scope.unreadable
    ]
    known = orphans.known_places(scope)
    for namespace in scope.namespaces:
        asked.progress(f"{namespace.name}: dropped and unlinked objects")
        try:
            done += _dropped(tree, namespace, asked, now_us)
            done += _unlinked(tree, namespace, known, asked, now_us)
            done += _leftovers(namespace, asked)
        except LakelogError as error:
            done.append(_failed("namespace", namespace, error))
    together = replace(asked, progress=in_turn(asked.progress))

    def table(target: Target[TableState]) -> list[Vacuumed]:
        found: list[Vacuumed] = []
        try:
            found.append(_table(tree, target, together, now_us))
            found += _adopted(tree, target, together)
        except LakelogError as error:
            if scope.is_one_table:
                raise
            found.append(_failed("table", target, error))
        return found

    # Most tables have little to list and less to delete: what takes long is the round trips of one after the other.
    for begin in range(0, len(scope.tables), LOGS_AT_ONCE):
        some = scope.tables[begin : begin + LOGS_AT_ONCE]
        asked.progress(f"{begin + 1:,} of {len(scope.tables):,}: {some[0].name}")
        for found in tree.logs.in_parallel(table, some):
            done += found
    return done


def _failed(kind: str, target: Target[Any], error: LakelogError) -> Vacuumed:
    return Vacuumed(kind=kind, name=target.name, location=target.tracked.log.location, error=str(error))


def _answer(kind: str, name: str, location: str, content: Content, asked: Wish, **more: Any) -> Vacuumed:
    keys = tuple(sorted(content.files.keys() | content.objects.keys())) if asked.keys else ()
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


def _table(tree: NameTree, target: Target[TableState], asked: Wish, now_us: int) -> Vacuumed:
    tracked = target.tracked
    # Waiting for another client's transaction may abort it: a dry run only reads.
    view = tracked.current() if asked.dry_run else tracked.settled()
    if view.sealed:
        raise NotFound(f"{target.name} was dropped meanwhile: nothing was done")
    if not asked.dry_run:
        view = end_promises(tree.logs, tracked, release_origins(tree.logs, tracked, view))
    prefix = folder(tracked)
    base = last_base_from(tracked.log, view)
    objects = unreferenced(tracked.log, view, base)
    for place in (tracked.log.keys.log, f"{prefix}_txn", f"{prefix}{DATA}".rstrip("/")):
        objects |= tracked.store.list_leftovers(f"{place}/")
    objects |= unneeded(tracked.store, prefix, tree.logs.url(tracked.location))
    unreached, foreign = _unreached(tracked, view, prefix, asked.progress)
    if not unreached.count and not asked.marks:
        fence = 0  # none is needed
    elif asked.write_age_us:
        fence = max(_fence(tracked, view, until_us(now_us, asked.write_age_us)), view.fence)
    else:
        fence = view.version + 1
    going = unreached.before(fence)
    waiting = unreached.count - going.count
    if asked.dry_run:
        fenced = fence if going.count else None
    elif going.count or (waiting and fence == view.version) or (asked.marks and fence > view.fence):
        # Where nothing was committed for long, this commit allows the next run to move the fence on.
        fence, going = _fenced(tracked, view, fence if asked.write_age_us else None, unreached)
        waiting = unreached.count - going.count
        fenced = fence
    else:
        fenced = None
    del unreached
    if not asked.dry_run:
        try:
            if going.count or objects or base is not None:
                _end_expiry(target, view, asked)
            _delete(tracked, going, prefix, objects, asked)
        except LakelogError as error:
            raise DoneInPart(
                f"of {target.name}, some files are left that can go: {error}. Run vacuum again, which deletes them"
            ) from error
    keys = tuple(sorted([*going.keys(prefix), *objects])) if asked.keys else ()
    return Vacuumed(
        kind="table",
        name=target.name,
        location=tracked.log.location,
        fence=fenced,
        files=going.count,
        size_bytes=going.size_bytes,
        objects=len(objects),
        object_bytes=sum(objects.values()),
        waiting=waiting,
        foreign=foreign,
        keys=keys,
    )


def _end_expiry(target: Target[TableState], view: View[TableState], asked: Wish) -> None:
    """See that what versions need that are not retained can no longer be read, where an expiry was stopped, or is
    under way. Not before something is to be deleted: by then another process may have done it."""
    log = target.tracked.log
    base = last_base_from(log, view)
    if base is not None and not is_buried(log.replay, base):
        expiry.clean_up(log, base, bury=burying(asked.engine, target.name, base.root.version))


def _delete(
    tracked: TrackedLog[TableState], files: FoundFiles, prefix: str, objects: Collection[str], asked: Wish
) -> None:
    keys = chain(files.keys(prefix), objects)
    count = files.count + len(objects)
    if asked.engine is None or count <= MANY_OBJECTS:
        purge.delete_keys(tracked, keys, count, asked.progress)
        return
    done = 0
    while some := [f"{tracked.store.url}/{key}" for key in islice(keys, OBJECTS_AT_ONCE)]:
        asked.engine.delete(some)
        done += len(some)
        asked.progress(f"{tracked.log.location}: {done:,} of {count:,} objects deleted")


def _fence(tracked: TrackedLog[TableState], view: View[TableState], until_us: int) -> int:
    """Return the version that was current at that time: a write from an earlier version is older still. 0: none."""
    if view.time_us <= until_us:
        return view.version
    try:
        return min(tracked.log.version_at_time(until_us), view.version)
    except NotFound:
        return 0


def _unreached(
    tracked: TrackedLog[TableState], view: View[TableState], prefix: str, progress: Progress
) -> tuple[FoundFiles, int]:
    """Return the data files that no readable version up to that of `view` has, and the number of foreign ones.

    Of all that are there, it holds a page at once.
    """
    live = tracked.read(view, lambda view: all_named(tracked, view))
    found = listed(tracked.store, f"{prefix}{DATA}", bounds_of(prefix, live, view.version))
    left = FoundFiles()
    foreign = seen = 0
    while page := list(islice(found, PAGE)):
        seen += len(page)
        files, others = own_files(page, prefix)
        foreign += others
        for chunk in live:
            files = without(files, among(chunk, files))
        left.add(files)
        progress(f"{tracked.log.location}: {seen:,} objects listed")
    # A file is named by the version that its write started from, and no version before that has it.
    kept = unreachable(tracked, view.version, left.tables, left.oldest, progress)
    return FoundFiles(kept), foreign


def _fenced(
    tracked: TrackedLog[TableState], view: View[TableState], fence: int | None, unreached: FoundFiles
) -> tuple[int, FoundFiles]:
    """Commit the fence, and return it with those of `unreached` that can be deleted behind it.

    Without a given fence it is the commit's own version: no write that has begun by then can commit.
    """
    decided: tuple[int, FoundFiles] = (0, FoundFiles())

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        nonlocal decided
        now = max(view.version + 1 if fence is None else fence, view.fence)
        brought = {path for commit in passed for table in added(tracked, commit) for path in paths(table)}
        going = unreached.before(now, brought)
        decided = now, going
        event = FilesVacuumed(files=going.count, size_bytes=going.size_bytes)
        return Draft(events=encode([event]), fence=now)

    try:
        tracked.commit(view, decide)
    except LogSealed as error:
        raise NotFound(f"{tracked.log.location} was dropped meanwhile: nothing was done") from error
    return decided


def _adopted(tree: NameTree, target: Target[TableState], asked: Wish) -> list[Vacuumed]:
    """Delete files that the table has adopted, and that no version has. An owner that they have beside it is no failure
    of the vacuum: they stay, and the answer says why."""
    tracked = target.tracked
    # Most tables have adopted nothing: what is known of them is new enough to see that, and costs nothing.
    if tracked.at_least(target.view.version).state.adopted is None:
        return []
    view = tracked.current() if asked.dry_run else tracked.settled()
    adopted = view.state.adopted
    if adopted is None:
        return []  # purged meanwhile
    kind, where = "adopted-files", adopted.source.url
    try:
        going = unreached(tree, tracked, view, asked.progress, settle=not asked.dry_run)
        if going is None:
            return []
        if not asked.dry_run:
            delete_adopted(tree, tracked, view, going)
    except InvalidInput as error:
        return [Vacuumed(kind=kind, name=target.name, location=where, error=str(error))]
    return [_of_adopted(kind, target.name, going, asked)]


def _of_adopted(kind: str, name: str, going: Going, asked: Wish) -> Vacuumed:
    content = Content(files=going.files, foreign=going.held)
    return _answer(kind, name, going.adopted.source.url, content, asked)


# Namespaces


def _dropped(tree: NameTree, namespace: Target[NamespaceState], asked: Wish, now_us: int) -> list[Vacuumed]:
    """Purge the objects of a namespace that were dropped longer ago than their retention."""
    done: list[Vacuumed] = []
    finished: list[str] = []
    cuts = NeededVersions(tree)
    until = until_us(now_us, asked.dropped_age_us)
    for id, (kind, name, entry) in purge.due(namespace.view.state, until).items():
        title = quoted((*(namespace.path or ()), name))
        link = Link(namespace=namespace.tracked.location, name=name)
        try:
            found = purge.plan_purge(tree, kind, title, entry, link=link, only_look=asked.dry_run)
            if found is not None and not found.view.purged and found.view.time_us > until:
                continue  # restored since the namespace was read, and perhaps dropped again
            if found is None:
                finished.append(id)
                done.append(
                    _answer(f"dropped-{kind}", title, tree.logs.url(entry.location), Content(), asked)
                )
                continue
            kept = purge.is_needed(found, cuts)
            clones = purge.clones_of(tree, found)
            if not asked.dry_run and not kept and not clones:
                asked.progress(f"purging {title}")
                if purge.do(tree, found):
                    finished.append(id)
                else:
                    kept = True
        except LakelogError as error:
            # What one needs may be elsewhere, as adopted files are: the others are purged all the same.
            if isinstance(error, LinkedElsewhere) and id not in namespace.tracked.current().state.dropped:
                continue  # restored elsewhere meanwhile
            location = tree.logs.url(entry.location)
            done.append(Vacuumed(kind=f"dropped-{kind}", name=title, location=location, error=str(error)))
            continue
        done += _of_purges("dropped", found, asked, kept, clones)
    for id, dropped in purge.due_definitions(namespace.view.state, until).items():
        finished.append(id)
        title = quoted((*(namespace.path or ()), dropped.name))
        what = f"dropped-{kind_of(dropped.definition)}"
        done.append(_answer(what, title, namespace.tracked.log.location, Content(), asked))
    if not asked.dry_run and finished:
        purge.take_off_the_list(namespace, finished)
    return done


def _of_purges(
    why: str, planned: purge.Purge, asked: Wish, kept: bool, clones: Sequence[str] = ()
) -> list[Vacuumed]:
    done = [_of_purge(why, each, asked, kept, clones) for each in planned.all()]
    if not kept and not clones:
        done += [
            _of_adopted("adopted-files", each.name, each.adopted, asked)
            for each in planned.all()
            if each.adopted is not None
        ]
    return done + [
        Vacuumed(kind=f"{why}-{each.kind}", name=each.name, location=each.location, error=each.error)
        for purged in planned.all()
        for each in purged.refused
    ]


def _of_purge(why: str, each: purge.Purge, asked: Wish, kept: bool, clones: Sequence[str]) -> Vacuumed:
    content = Content(foreign=each.content.foreign) if kept or clones else each.content
    return _answer(
        f"{why}-{each.kind}",
        each.name,
        each.tracked.log.location,
        content,
        asked,
        kept_for_cuts=kept,
        kept_for_clones=tuple(clones),
    )


def _unlinked(
    tree: NameTree, namespace: Target[NamespaceState], known: Collection[str], asked: Wish, now_us: int
) -> list[Vacuumed]:
    """Purge logs and folders of unfinished creations."""
    made, dropped = until_us(now_us, asked.write_age_us), until_us(now_us, asked.dropped_age_us)
    found = orphans.find(tree, namespace, known, made, dropped)
    done: list[Vacuumed] = []
    if not asked.dry_run:
        orphans.note(namespace, found)
    for orphan in found.logs:
        if asked.dry_run or orphans.remove(tree, orphan):
            done += _of_purges("unlinked", orphan.purge, asked, False)
    for location, content in found.folders.items():
        if not asked.dry_run:
            purge.delete(tree.logs.table(location), content, asked.progress)
        done.append(
            _answer("unlinked-table", tree.logs.url(location), tree.logs.url(location), content, asked)
        )
    for location, files in found.begun.items():
        url = tree.logs.url(location)
        done.append(Vacuumed(kind="unlinked-table", name=url, location=url, waiting=files))
    done += [
        Vacuumed(kind=f"unlinked-{each.kind}", name=each.name, location=each.location, error=each.error)
        for each in found.unreadable
    ]
    return done


def _leftovers(namespace: Target[NamespaceState], asked: Wish) -> list[Vacuumed]:
    """Delete objects that a namespace's own log no longer needs. It has no data files, so it needs no fence."""
    tracked = namespace.tracked
    view = tracked.current() if asked.dry_run else tracked.settled()
    objects = unreferenced(tracked.log, view, last_base_from(tracked.log, view))
    objects |= tracked.store.list_leftovers(f"{tracked.log.keys.log}/")
    objects |= tracked.store.list_leftovers(f"{purge.folder(tracked)}_txn/")
    objects |= tracked.store.list_leftovers(folder_of_cuts(tracked))
    content = Content(objects=objects)
    if not asked.dry_run:
        purge.delete(tracked, content, asked.progress)
    return [_answer("namespace", namespace.name, tracked.log.location, content, asked)]

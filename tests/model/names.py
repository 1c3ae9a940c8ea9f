"""Names: create and link, forget, rename and move, drop, restore, purge, reopen. Namespaces are logs, ids are log ids.

A log's id is its place, or place#2 for the second log at a place: `place_of` returns the place.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.model.machine import Program, Report
from tests.model.reading import cold
from tests.model.rules import Rule, on
from tests.model.together import together
from tests.model.world import Request, View, slim
from tests.model.writing import commit, put_one, report


def place_of(log_id: str) -> str:
    return log_id.split("#")[0]


def create(me: str, cid: str, namespace: View, name: str, log_id: str) -> Program:
    """Write the first commit of a log under an id that nothing leads to, then link it: that is its creation."""
    answer = yield ("put", ("file", place_of(log_id), "first", 0), "data")
    if answer != "ok":
        return
    opening_request = Request(
        cid + "-open",
        place_of(log_id),
        log_id,
        (("moved", namespace.place, name), ("add", "first", 0)),
        flag="creates",
    )
    done = yield from put_one(me, View(place_of(log_id)), opening_request, 0, None, 9)
    if done.how not in ("placed", "found"):
        return
    link = Request(cid, namespace.place, namespace.log_id, (("link", name, log_id),))
    done = yield from put_one(me, namespace, link, 0, None, 9)
    yield from report(cid, (namespace.place,), done)


def reopen(me: str, cid: str, namespace: View, name: str, log_id: str) -> Program:
    """Create a log at a place where another was dropped."""
    view = yield from cold(place_of(log_id))
    answer = yield ("put", ("file", place_of(log_id), "second", view.version), "data")
    if answer != "ok":
        return
    events = (("moved", namespace.place, name), ("add", "second", view.version))
    opening_request = Request(
        cid + "-open", place_of(log_id), log_id, events, flag="reopens", write=view.version
    )
    done = yield from put_one(me, slim(view), opening_request, 0, None, 9)
    if done.how != "placed":
        return
    link = Request(cid, namespace.place, namespace.log_id, (("link", name, log_id),))
    done = yield from put_one(me, namespace, link, 0, None, 9)
    yield from report(cid, (namespace.place,), done)


def forget(me: str, namespace: str, log_id: str) -> Program:
    """A cleaner removes what a create that died has left."""
    seen = yield from cold(place_of(log_id))
    if seen.log_id != log_id or seen.status != "open" or seen.state.parent != namespace:
        return
    unchanged_pair = ("unchanged", seen.version)
    view = yield from cold(namespace)
    if on(Rule.FORGET_FIRST):
        request = Request("forget-" + me, namespace, view.log_id, (("forget", log_id),))
        done = yield from put_one(me, slim(view), request, 0, None, 9)
        if done.how != "placed":
            return
    elif log_id in {linked for _, linked in view.state.entries}:
        return
    view = yield from cold(place_of(log_id))
    seal = Request("seal-" + me, place_of(log_id), log_id, (), flag="seals", needs=(unchanged_pair,))
    done = yield from put_one(me, slim(view), seal, 0, None, 9)
    if done.how == "placed":
        yield from purge(me, "purge-" + me, log_id)


def drop(
    me: str, cid: str, namespace: View, name: str, target: View, *needs: Any, rounds: int = 1
) -> Program:
    """Unlink and seal, in one transaction."""
    unlink = Request(cid, namespace.place, namespace.log_id, (("unlink", name, target.log_id),))
    seal = Request(cid, target.place, target.log_id, (), flag="seals", needs=needs)
    if on(Rule.DROP_SEALS):
        yield from together(me, (namespace, target), (unlink, seal), rounds=rounds)
    else:
        done = yield from put_one(me, namespace, unlink, 0, None, 9)
        if done.how == "placed":
            done = yield from put_one(me, target, seal, 0, None, 9)


def drop_what_is_there(me: str, cid: str, namespace: str, name: str, log_id: str) -> Program:
    """Drop a table or an empty namespace, of which nothing is known before but its name and id."""
    views = yield from both(namespace, place_of(log_id))
    if views[1].log_id == log_id and views[1].status == "open" and not views[1].state.entries:
        yield from drop(me, cid, views[0], name, views[1], ("empty",))


def drop_all(me: str, cid: str, above: View, namespace: View, tables: tuple[View, ...]) -> Program:
    """Drop a namespace with all that is in it, in one transaction: nothing else may be in it then."""
    unlink = Request(cid, above.place, above.log_id, (("unlink", namespace.place, namespace.log_id),))
    needs: tuple[Any, ...] = ("entries", namespace.state.entries) if on(Rule.EMPTY_IS_PRECONDITION) else ()
    inside = Request(
        cid, namespace.place, namespace.log_id, (), flag="seals", needs=(needs,) if needs else ()
    )
    seals = tuple(Request(cid, table.place, table.log_id, (), flag="seals") for table in tables)
    yield from together(me, (above, namespace, *tables), (unlink, inside, *seals))


def restore_all(me: str, cid: str, above: str, namespace: str, table: str) -> Program:
    """Restore a namespace and the table that was dropped with it."""
    views = yield from both(above, namespace)
    third = yield from cold(table)
    link = Request(cid, above, above, (("link", namespace, namespace),))
    inside = Request(cid, namespace, namespace, (), flag="restores")
    name = dict((log_id, name) for name, log_id in views[1].state.entries)[table]
    below = Request(cid, table, table, (("moved", namespace, name),), flag="restores")
    yield from together(me, (*views, slim(third)), (link, inside, below))


def purge_all(me: str, cid: str, namespace: str) -> Program:
    """Purge a dropped namespace, and then what was in it when it was looked at, whether that is sealed or not."""
    seen = yield from cold(namespace)
    below = tuple(sorted(log_id for _, log_id in seen.state.entries))
    if seen.status != "sealed":
        return
    needs = (("unchanged", seen.version),) if on(Rule.PURGE_UNCHANGED) else ()
    view = yield from cold(namespace)
    request = Request(cid, namespace, namespace, (), flag="purges", needs=needs)
    done = yield from put_one(me, slim(view), request, 0, None, 9)
    if done.how != "placed":
        return
    while below:
        view = yield from cold(below[0])
        if view.status == "open":
            seal = Request("seal-" + me, below[0], below[0], (), flag="seals")
            yield from put_one(me, slim(view), seal, 0, None, 9)
        yield from purge(me, cid + "-below", below[0])
        below = below[1:]


def purge_together(me: str, cid: str, namespace: str, log_id: str) -> Program:
    """As `purge`, with a commit in the namespace in the same transaction."""
    views = yield from both(namespace, place_of(log_id))
    fence = views[1].version + 1
    noted_request = Request(cid, namespace, namespace, ())
    purges = Request(cid, place_of(log_id), log_id, (), flag="purges")
    done = yield from together(me, views, (noted_request, purges), fence=fence)
    if done.how != "placed":
        return
    files = yield ("list", "file", place_of(log_id))
    while files:
        if files[0][3] < fence or not on(Rule.PURGE_FENCES):
            yield ("delete", files[0])
        files = files[1:]


def drop_head(me: str, cid: str, namespace: View, name: str) -> Program:
    """Drop an empty namespace, of which nothing is known before."""
    target = yield from cold(name)
    yield from drop(me, cid, namespace, name, slim(target), ("empty",), rounds=2)


def restore(me: str, cid: str, namespace: str, name: str, log_id: str) -> Program:
    """Link again and go on behind the seal, in one transaction."""
    views = yield from both(namespace, place_of(log_id))
    link = Request(cid, namespace, namespace, (("link", name, log_id),))
    restores = Request(cid, place_of(log_id), log_id, (("moved", namespace, name),), flag="restores")
    yield from together(me, views, (link, restores))


def both(one: str, other: str) -> Program:
    first = yield from cold(one)
    second = yield from cold(other)
    return (slim(first), slim(second))


def purge(me: str, cid: str, log_id: str) -> Program:
    """Commit that nothing can be restored any more, then delete the files."""
    view = yield from cold(place_of(log_id))
    fence = view.version + 1 if on(Rule.PURGE_FENCES) else 0
    if on(Rule.PURGE_COMMITTED):
        request = Request(cid, place_of(log_id), log_id, (), flag="purges")
        done = yield from put_one(me, slim(view), request, 0, None, 9, fence)
        yield from report(cid, (place_of(log_id),), done)
        if done.how != "placed":
            return
    elif view.status != "sealed":
        return
    files = yield ("list", "file", place_of(log_id))
    while files:
        if files[0][3] < fence or not on(Rule.PURGE_FENCES):
            yield ("delete", files[0])
        files = files[1:]


def rename(
    me: str, cid: str, source: View, old: str, target: View, new: str, moved: View, rounds: int = 1
) -> Program:
    """Rename a table, within a namespace or to another one; it is written into the table's log, too."""
    unlink, link = ("unlink", old, moved.log_id), ("link", new, moved.log_id)
    if source.place == target.place:
        views: tuple[View, ...] = (source,)
        requests: tuple[Request, ...] = (Request(cid, source.place, source.log_id, (unlink, link)),)
    else:
        views = (source, target)
        requests = (
            Request(cid, source.place, source.log_id, (unlink,)),
            Request(cid, target.place, target.log_id, (link,)),
        )
    note = Request(cid, moved.place, moved.log_id, (("moved", target.place, new),))
    if on(Rule.MOVED_LOG_WRITTEN) and on(Rule.RENAME_IS_ONE):
        views, requests = (*views, moved), (*requests, note)
    done = yield from together(me, views, requests, rounds=rounds)
    if on(Rule.MOVED_LOG_WRITTEN) and not on(Rule.RENAME_IS_ONE) and done.how == "placed":
        yield from put_one(me, moved, note, 0, None, 9)


def rename_there(me: str, cid: str, namespace: str, old: str, other: str, new: str, log_id: str) -> Program:
    """Move a table of which nothing is known before but its name and id."""
    views = yield from both(namespace, other)
    moved = yield from cold(place_of(log_id))
    if moved.status == "open" and moved.log_id == log_id:
        yield from rename(me, cid, views[0], old, views[1], new, slim(moved))


def write_by_name(me: str, cid: str, namespace: str, name: str, target: View) -> Program:
    """Write into the table that a name led to when it was loaded, unless its own log has another name for it by now.

    Nothing but the table's log is looked at.
    """
    events = (("applied", cid), ("by-name", namespace, name))
    yield from commit(me, target, Request(cid, target.place, target.log_id, events))


def load_and_write(me: str, cid: str, namespace: str, name: str) -> Program:
    """Load what a name leads to, report it, and write into that."""
    looks = 3
    while True:
        above = yield from cold(namespace)
        log_id = dict(above.state.entries).get(name)
        if log_id is None:
            yield Report("failed", (cid,))
            return
        target = yield from cold(place_of(log_id))
        is_open = target.status == "open" and target.log_id == log_id
        has_name = (target.state.parent, target.state.name) == (namespace, name)
        if is_open and (has_name or not on(Rule.NAME_IS_COMPARED)):
            break
        looks -= 1
        if looks == 0:
            yield Report("failed", (cid,))
            return
    target = slim(target)
    yield Report("loaded", (target, namespace, name))
    yield from write_by_name(me, cid, namespace, name, target)


def move_namespace(
    me: str, cid: str, source: View, target: View, moved: View, catalog: View, path: tuple[str, ...]
) -> Program:
    """Move a namespace below another one. `path`: the target's ancestors as they were seen before."""
    if moved.place in path:
        return
    name = moved.place
    views: tuple[View, ...] = (source, target, moved)
    requests: tuple[Request, ...] = (
        Request(cid, source.place, source.log_id, (("unlink", name, name),)),
        Request(cid, target.place, target.log_id, (("link", name, name),)),
        Request(cid, moved.place, moved.log_id, (("moved", target.place),)),
    )
    if on(Rule.ROOT_TAKES_PART) and catalog.place not in (source.place, target.place):
        views = (catalog, *views)
        requests = (Request(cid, catalog.place, catalog.log_id, ()), *requests)
    check = partial(is_not_above, moved.place, target.place) if on(Rule.ANCESTRY_RECHECKED) else None
    yield from together(me, views, requests, validate=check)


def is_not_above(moved: str, target: str) -> Program:
    """Whether `moved` is neither `target` nor one of its ancestors, by their logs as they are now."""
    while target:
        if target == moved:
            return False
        view = yield from cold(target)
        target = view.state.parent
    return True

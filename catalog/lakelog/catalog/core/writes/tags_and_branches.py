"""Creating and dropping tags and branches, and fast-forwarding one line of contents to another.

Each is decided on metadata alone, and anew after a lost race. A commit has the contents of a tag or branch as the
difference to an existing line, so that readers of the log do not need older versions for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.catalog.core.files import UNCOMMITTED
from lakelog.catalog.core.logs import (
    NothingToDo,
    TableHead,
    Token,
    Written,
    check_conflicts,
    no_files,
    seen_on,
)
from lakelog.catalog.core.state import (
    BRANCH,
    MAIN,
    TAG,
    FastForwarded,
    Operation,
    RefDropped,
    RefSet,
    TableEvent,
    TableState,
    check_ref_name,
    encode,
    line_of,
)
from lakelog.catalog.core.writes.file_changes import moved_files
from lakelog.catalog.core.writes.files_since import HistoryGone, LineMoves, keeping, moves_of, only_moved
from lakelog.catalog.core.writes.rollback import check_fits
from lakelog.catalog.errors import CommitConflict, NoSuchRef, RefExists
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import InvalidInput, NotFound
from lakelog.log.placing import Decide


def set_ref(
    head: TableHead,
    kind: str,
    name: str,
    version: TableHead | None,
    *,
    replace: bool = False,
    if_not_exists: bool = False,
    is_known: bool = False,
    is_past: bool,
    token: Token | None,
) -> TableHead:
    """Create a tag or branch, and return the newest version of the table itself. `is_past`: `head` is a handle of a
    past version.

    It has the contents of `version`; without that, of `head`, or in a transaction, the contents of that line at the
    commit. RefExists, unless it may exist or be replaced, NoSuchRef with `is_known` if it does not exist, or if the
    line was dropped or re-created, NotFound where `version` expires meanwhile, and InvalidInput where its rows do not
    fit the table's present columns, which branches share. In a transaction, CommitConflict where it would replace
    another one than the transaction has seen.
    """
    tracked, title, line_id = head.whole.tracked, head.name, head.ref_id
    then: View[TableState] | None = head.view if version is None else version.view
    if version is None and tracked.transaction.is_open and not is_past:
        # It includes the transaction's own changes, as they will be committed.
        head.note_rows_read(None)
        then = None
    line, id = head.ref if not head.is_tag else MAIN, head.logs.new_id()
    check_ref_name(name, kind)
    if replace and if_not_exists:
        raise InvalidInput(f"the {kind} {name} cannot be both replaced and left as it is: choose one of both")
    check_same = _SameRefs(title)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        check_conflicts(Operation.SET_REF, view, passed, Written(head.version, None, no_files), title)
        known = view.state.refs.get(name)
        if known is not None and if_not_exists and known.kind == kind:
            raise NothingToDo(f"there is a {kind} {name}")
        if is_known:
            _check_known(view, kind, name, title)
        if known is not None and (not replace or known.kind != kind):
            what = "drop it, or choose another name" if known.kind != kind else "replace it, or drop it"
            raise RefExists(f"{title} has a {known.kind} {name} already: {what}")
        if tracked.transaction.is_open:
            check_same(view, name)
        origin = line if then is None else _origin(view.state, then.state)
        of = MAIN if origin is None else origin
        now = seen_on(view, of, line_id if then is None else None)
        source = now if then is None else _as_it_will_be(view, then)
        metadata, before = view.state.current, source.state.current
        if then is not None and view.state.expired > then.version:
            raise NotFound(
                f"a {kind} of version {then.version} of {title} cannot be created: the version has expired"
            )
        added, removed = head.at(source).files_only_here(now), head.at(now).files_only_here(source)
        if kind == BRANCH:
            check_fits(metadata, before, added, source.version, title)
        changed, blobs = moved_files(Operation.SET_REF, added, removed, metadata)
        differs = bool(added.num_rows or removed.num_rows)
        event = RefSet(
            **{field: getattr(changed, field) for field in changed.__struct_fields__},
            name=name,
            kind=kind,
            id=id,
            of=of,
            version=None if then is None else _version_of(source),
            ahead=differs,
            apart=differs and origin is None,
            metadata=before if kind == TAG and before != metadata else None,
        )
        return Draft(events=encode([event]), blobs=blobs)

    return _commit(head, decide, is_past, token)


def _commit(head: TableHead, decide: Decide[TableState], is_past: bool, token: Token | None) -> TableHead:
    """Commit a change of tags and branches, which any handle may request, and return the table itself."""
    head.logs.check_writable()
    # The change cannot conflict with commits since a version of the past, and does not need to read them.
    table = head.whole.at_least(head.version) if is_past else head.whole
    return table.commit_or_refresh(decide, token)


def _origin(state: TableState, then: TableState) -> str | None:
    """Return the name of the line that once had the contents of `then`, None where it was dropped or is not known.

    For a line, it is the line itself; for a tag, the one that it was created from.
    """
    ref = then.refs.get(then.line)
    id = MAIN if ref is None else ref.line.origin if ref.kind == TAG else ref.id
    return next((name for name in (MAIN, *state.branches) if line_of(state, name)[0] == id), None)


def _as_it_will_be(view: View[TableState], then: View[TableState]) -> View[TableState]:
    """Return `then` as it will be at the commit: a tag that the transaction itself has created may have changed.

    NoSuchRef where such a tag was dropped.
    """
    name, ref = then.state.line, then.state.refs.get(then.state.line)
    if ref is None or ref.kind != TAG or ref.version != UNCOMMITTED:
        return then
    return seen_on(view, name, ref.id)


def _version_of(source: View[TableState]) -> int | None:
    """Return the version of these contents: for a tag, the one that it names; None for that of the commit."""
    ref = source.state.refs.get(source.state.line)
    if ref is None or ref.kind != TAG:
        return source.version
    return None if ref.version == UNCOMMITTED else ref.version


def drop_ref(
    head: TableHead, kind: str, name: str, *, if_exists: bool, is_past: bool, token: Token | None
) -> TableHead:
    """Drop a tag or branch, and return the newest version of the table itself. NoSuchRef, unless `if_exists`.

    CommitConflict where it was dropped or re-created since this was decided first.
    """
    title = head.name
    check_same = _SameRefs(title)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        check_conflicts(Operation.SET_REF, view, passed, Written(head.version, None, no_files), title)
        known = view.state.refs.get(name)
        if known is None and if_exists:
            raise NothingToDo(f"there is no {kind} {name}")
        if name == MAIN:
            raise InvalidInput(f"{MAIN} is the table itself: use DROP TABLE to drop it")
        _check_known(view, kind, name, title)
        check_same(view, name)
        return Draft(events=encode([RefDropped(name=name, kind=kind)]))

    return _commit(head, decide, is_past, token)


class _SameRefs:
    """Checks that names of tags and branches mean the same ones as at the first call.

    A decision is made anew after a lost race, and at the end of a transaction, which has seen the earlier ones.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._ids: dict[str, str | None] = {}

    def __call__(self, view: View[TableState], *names: str) -> None:
        for name in names:
            ref = view.state.refs.get(name)
            id = None if ref is None else ref.id
            if self._ids.setdefault(name, id) != id:
                raise CommitConflict(
                    f"{name} of {self._title} was created, dropped or replaced by another client since this change "
                    "began. Nothing was changed: run the statement again",
                    version=view.version,
                )


def _check_known(view: View[TableState], kind: str, name: str, title: str) -> None:
    known = view.state.refs.get(name)
    if known is None or known.kind != kind:
        other = "" if known is None else f", but a {known.kind} of that name"
        raise NoSuchRef(f"{title} has no {kind} {name}{other}")


def fast_forward(head: TableHead, branch: str, to: str, *, is_past: bool, token: Token | None) -> TableHead:
    """Give `branch` the contents of the branch `to`, and return the newest version of the table itself; either may be
    main. Files to which maintenance has moved rows of `branch` stay, where `to` still has the old ones as they were.

    InvalidInput where `branch` has a change that `to` does not have, CommitConflict where one of the two was dropped or
    re-created since this was decided first.
    """
    title = head.name
    check_same = _SameRefs(title)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        check_conflicts(Operation.FAST_FORWARD, view, passed, Written(head.version, None, no_files), title)
        for name in (branch, to):
            if name != MAIN and (known := seen_on(view, name).state.refs[name]).kind != BRANCH:
                raise InvalidInput(
                    f"{name} is a {known.kind} of {title}, which stays as it is: name a branch"
                )
        check_same(view, branch, to)
        (id, line), (other_id, other) = line_of(view.state, branch), line_of(view.state, to)
        if branch == to or line.has_all_of(other_id, other):
            raise NothingToDo(f"{branch} has all that {to} has")
        moves = _moves_since(head.whole.at(view), branch, to, title)
        here, there = seen_on(view, branch), seen_on(view, to)
        added, removed = head.at(there).files_only_here(here), head.at(here).files_only_here(there)
        if moves is not None:
            added, removed = keeping(head.whole, branch, id, moves, added, removed)
        if only_moved(passed, head.version, (branch, to)):
            head.whole.tracked.transaction.note_moved()
        events: list[TableEvent] = []
        blobs: tuple[bytes, ...] = ()
        if added.num_rows or removed.num_rows:
            changed, blobs = moved_files(Operation.FAST_FORWARD, added, removed, view.state.current)
            events.append(changed)
        events = [*events, FastForwarded(branch=branch, to=to)]
        encoded = encode(events)
        if branch != MAIN:
            encoded = tuple(
                {**event, "event": "branch-files-changed", "branch": branch}
                if event["event"] == "files-changed"
                else event
                for event in encoded
            )
        return Draft(events=encoded, blobs=blobs)

    return _commit(head, decide, is_past, token)


def _moves_since(head: TableHead, branch: str, to: str, title: str) -> LineMoves | None:
    """Return how rows of `branch` have moved since `to` had all of it; None where it has all. InvalidInput where the
    branch was changed, or where that is not known."""
    (id, line), (_, other) = line_of(head.state, branch), line_of(head.state, to)
    if other.has_all_of(id, line):
        return None
    why = f"it is not known that {to} ever had all of it"
    if id in other.contains:
        why = f"it was changed since {to} had all of it"
        try:
            moves = moves_of(head, branch, line.changes - other.contains[id])
            if moves is not None:
                return moves
        except HistoryGone:
            why += ", and the versions that would show whether its rows only moved have expired"
    instead = (
        f"write the rows that only {to} has to {MAIN}"
        if branch == MAIN
        else f"write the rows that only {to} has to {branch}, or replace the branch {branch} by one created from {to}"
    )
    raise InvalidInput(
        f"{branch} of {title} cannot be fast-forwarded to {to}: {why}, so that rows could be lost. Instead, {instead}"
    )

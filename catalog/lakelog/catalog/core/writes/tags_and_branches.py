"""Creating and dropping tags and branches, and fast-forwarding a line of contents to another.

Each is decided on metadata alone, and again after a lost race. A commit has the contents of a tag or branch as
the difference to an existing line, so that readers of the log do not need older versions for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.catalog.core.files.row_ids import UNCOMMITTED
from lakelog.catalog.core.logs.branch_log import seen_on
from lakelog.catalog.core.logs.commits import NothingToDo, OperationFacts, Token, check_conflicts, no_files
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.events import FastForwarded, RefDropped, RefSet, TableEvent, encode
from lakelog.catalog.core.state.refs import BRANCH, MAIN, TAG, check_ref_name
from lakelog.catalog.core.state.table_state import TableState, line_of
from lakelog.catalog.core.writes.file_changes import moved_files
from lakelog.catalog.core.writes.files_since import HistoryGone, LineMoves, keeping, moves_of, only_moved
from lakelog.catalog.core.writes.rollback import check_fits
from lakelog.catalog.errors import CommitConflict, NoSuchRef, RefExists
from lakelog.catalog.next_step import start_over
from lakelog.log import Commit, Draft, LogView
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
    """Create a tag or branch, and return the newest version of the table itself.

    With `is_past`, `head` is a handle of a past version. The tag or branch has the contents of `version`.
    Without it, it has those of `head`, or in a transaction the contents of that line at the commit.

    Raises RefExists, unless it may exist or be replaced. Raises NoSuchRef with `is_known` if it does not
    exist, or if the line was dropped or re-created. Raises NotFound if `version` expires before the commit,
    and InvalidInput if its rows do not fit the table's present columns, which branches share. In a
    transaction, raises CommitConflict if it would replace another tag or branch than the transaction has
    seen.
    """
    log, title, line_id = head.whole.tracked, head.name, head.ref_id
    fixed_view: LogView[TableState] | None = head.view if version is None else version.view
    if version is None and log.transaction.is_open and not is_past:
        # It includes the transaction's own changes, as they will be committed.
        head.note_rows_read(None)
        fixed_view = None
    line, id = head.ref if not head.is_tag else MAIN, head.logs.new_id()
    check_ref_name(name, kind)
    if replace and if_not_exists:
        raise InvalidInput(f"the {kind} {name} cannot be both replaced and left as it is: choose one of both")
    check_same = _SameRefs(title)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        check_conflicts(
            OperationKind.SET_REF, view, passed_commits, OperationFacts(head.version, None, no_files), title
        )
        existing_ref = view.state.refs.get(name)
        if existing_ref is not None and if_not_exists and existing_ref.kind == kind:
            raise NothingToDo(f"there is a {kind} {name}")
        if is_known:
            _check_known(view, kind, name, title)
        if existing_ref is not None and (not replace or existing_ref.kind != kind):
            advice = (
                "drop it, or choose another name" if existing_ref.kind != kind else "replace it, or drop it"
            )
            raise RefExists(f"{title} has a {existing_ref.kind} {name} already: {advice}")
        if log.transaction.is_open:
            check_same(view, name)
        origin = line if fixed_view is None else _origin(view.state, fixed_view.state)
        of = MAIN if origin is None else origin
        line_view = seen_on(view, of, line_id if fixed_view is None else None)
        source = line_view if fixed_view is None else _as_it_will_be(view, fixed_view)
        metadata, source_metadata = view.state.current, source.state.current
        if fixed_view is not None and view.state.expired > fixed_view.version:
            raise NotFound(
                f"a {kind} of version {fixed_view.version} of {title} cannot be created: the version has expired"
            )
        files_to_add, files_to_remove = (
            head.at(source).files_only_here(line_view),
            head.at(line_view).files_only_here(source),
        )
        if kind == BRANCH:
            check_fits(metadata, source_metadata, files_to_add, source.version, title)
        file_event, blobs = moved_files(OperationKind.SET_REF, files_to_add, files_to_remove, metadata)
        differs = bool(files_to_add.num_rows or files_to_remove.num_rows)
        event = RefSet(
            **{field: getattr(file_event, field) for field in file_event.__struct_fields__},
            name=name,
            kind=kind,
            id=id,
            of=of,
            version=None if fixed_view is None else _version_of(source),
            ahead=differs,
            apart=differs and origin is None,
            metadata=source_metadata if kind == TAG and source_metadata != metadata else None,
        )
        return Draft(events=encode([event]), blobs=blobs)

    return _commit(head, decide, is_past, token)


def _commit(head: TableHead, decide: Decide[TableState], is_past: bool, token: Token | None) -> TableHead:
    """Commit a change of tags and branches, which any handle may request, and return the table itself."""
    head.logs.check_writable()
    # The change cannot conflict with commits since a past version, and does not need to read them.
    table = head.whole.at_least(head.version) if is_past else head.whole
    return table.commit_or_refresh(decide, token)


def _origin(state: TableState, past_state: TableState) -> str | None:
    """Return the line that once had the contents of `past_state`, or None if it was dropped or is not known.

    For a line, it is the line itself. For a tag, it is the line from which the tag was created.
    """
    ref = past_state.refs.get(past_state.line)
    id = MAIN if ref is None else ref.line.origin if ref.kind == TAG else ref.id
    return next((name for name in (MAIN, *state.branches) if line_of(state, name)[0] == id), None)


def _as_it_will_be(view: LogView[TableState], past_view: LogView[TableState]) -> LogView[TableState]:
    """Return `past_view` as it will be at the commit. A tag that the transaction itself has created may have
    changed.

    Raises NoSuchRef if such a tag was dropped.
    """
    name, ref = past_view.state.line, past_view.state.refs.get(past_view.state.line)
    if ref is None or ref.kind != TAG or ref.version != UNCOMMITTED:
        return past_view
    return seen_on(view, name, ref.id)


def _version_of(source: LogView[TableState]) -> int | None:
    """Return the version of these contents. For a tag, it is the tag's version. None means the commit's
    version."""
    ref = source.state.refs.get(source.state.line)
    if ref is None or ref.kind != TAG:
        return source.version
    return None if ref.version == UNCOMMITTED else ref.version


def drop_ref(
    head: TableHead, kind: str, name: str, *, if_exists: bool, is_past: bool, token: Token | None
) -> TableHead:
    """Drop a tag or branch, and return the newest version of the table itself.

    Raises NoSuchRef if it does not exist, unless `if_exists`. Raises CommitConflict if it was dropped or
    re-created since the first decision.
    """
    title = head.name
    check_same = _SameRefs(title)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        check_conflicts(
            OperationKind.SET_REF, view, passed_commits, OperationFacts(head.version, None, no_files), title
        )
        ref = view.state.refs.get(name)
        if ref is None and if_exists:
            raise NothingToDo(f"there is no {kind} {name}")
        if name == MAIN:
            raise InvalidInput(f"{MAIN} is the table itself: use DROP TABLE to drop it")
        _check_known(view, kind, name, title)
        check_same(view, name)
        return Draft(events=encode([RefDropped(name=name, kind=kind)]))

    return _commit(head, decide, is_past, token)


class _SameRefs:
    """A check that names of tags and branches have the same meaning as at the first call.

    A decision is made again after a lost race, and at the end of a transaction, which has seen the earlier
    tags and branches.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._ids: dict[str, str | None] = {}

    def __call__(self, view: LogView[TableState], *names: str) -> None:
        for name in names:
            ref = view.state.refs.get(name)
            id = None if ref is None else ref.id
            if self._ids.setdefault(name, id) != id:
                raise CommitConflict(
                    f"{name} of {self._title} was created, dropped or replaced by another client since this change "
                    f"began. Nothing was changed: {start_over()}",
                    version=view.version,
                )


def _check_known(view: LogView[TableState], kind: str, name: str, title: str) -> None:
    ref = view.state.refs.get(name)
    if ref is None or ref.kind != kind:
        hint = "" if ref is None else f", but a {ref.kind} of that name"
        raise NoSuchRef(f"{title} has no {kind} {name}{hint}")


def fast_forward(head: TableHead, branch: str, to: str, *, is_past: bool, token: Token | None) -> TableHead:
    """Give `branch` the contents of the branch `to`, and return the newest version of the table itself.

    Either may be main. If maintenance has moved rows of `branch` to other files, these stay if `to` still has
    the old files unchanged. Raises InvalidInput if `branch` has a change that `to` does not have. Raises
    CommitConflict if either was dropped or re-created since the first decision.
    """
    title = head.name
    check_same = _SameRefs(title)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        check_conflicts(
            OperationKind.FAST_FORWARD,
            view,
            passed_commits,
            OperationFacts(head.version, None, no_files),
            title,
        )
        for name in (branch, to):
            if name != MAIN and (ref := seen_on(view, name).state.refs[name]).kind != BRANCH:
                raise InvalidInput(f"{name} is a {ref.kind} of {title}, which stays as it is: name a branch")
        check_same(view, branch, to)
        (id, line), (other_id, target_line) = line_of(view.state, branch), line_of(view.state, to)
        if branch == to or line.has_all_of(other_id, target_line):
            raise NothingToDo(f"{branch} has all that {to} has")
        moves = _moves_since(head.whole.at(view), branch, to, title)
        branch_view, target_view = seen_on(view, branch), seen_on(view, to)
        files_to_add, files_to_remove = (
            head.at(target_view).files_only_here(branch_view),
            head.at(branch_view).files_only_here(target_view),
        )
        if moves is not None:
            files_to_add, files_to_remove = keeping(
                head.whole, branch, id, moves, files_to_add, files_to_remove
            )
        if only_moved(passed_commits, head.version, (branch, to)):
            head.whole.tracked.transaction.note_moved()
        events: list[TableEvent] = []
        blobs: tuple[bytes, ...] = ()
        if files_to_add.num_rows or files_to_remove.num_rows:
            file_event, blobs = moved_files(
                OperationKind.FAST_FORWARD, files_to_add, files_to_remove, view.state.current
            )
            events.append(file_event)
        events = [*events, FastForwarded(branch=branch, to=to)]
        event_objects = encode(events)
        if branch != MAIN:
            event_objects = tuple(
                {**event, "event": "branch-files-changed", "branch": branch}
                if event["event"] == "files-changed"
                else event
                for event in event_objects
            )
        return Draft(events=event_objects, blobs=blobs)

    return _commit(head, decide, is_past, token)


def _moves_since(head: TableHead, branch: str, to: str, title: str) -> LineMoves | None:
    """Return the moves of `branch` since `to` had all of it, or None if `to` has all.

    Raises InvalidInput if the branch was changed otherwise, or if that is not known.
    """
    (id, line), (_, target_line) = line_of(head.state, branch), line_of(head.state, to)
    if target_line.has_all_of(id, line):
        return None
    why = f"it is not known that {to} ever had all of it"
    if id in target_line.contains:
        why = f"it was changed since {to} had all of it"
        try:
            moves = moves_of(head, branch, line.changes - target_line.contains[id])
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

"""The steps of a transaction in a log: the draft of each, folded over a view, merged into a single commit.

A step is decided when it is made, and again when the transaction commits, on the state of the log by then.
Later steps of the transaction were built on its first result. So if the second result would differ, it
conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from lakelog.catalog.core.files.data_file import RemovedFile, decode_removed
from lakelog.catalog.core.state.refs import BRANCH, MAIN
from lakelog.catalog.errors import CommitConflict
from lakelog.log import Commit, Draft, Json, Log, LogView
from lakelog.log.format import FORMAT
from lakelog.log.placing import Decide

S = TypeVar("S")

_SIDECAR_INDEXES = ("added_sidecar", "removed_sidecar", "files_sidecar")
_OF_FILES = ("files-changed", "branch-files-changed")
_OF_METADATA = (
    "schema-changed", "partitioning-changed", "sort-order-changed", "clustering-changed", "constraint-added",
    "constraint-dropped", "rolled-back",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TransactionStep(Generic[S]):
    """A change: its decision, its draft when it was made, its writer, and its id for a retry."""

    decide: Decide[S]
    draft: Draft
    facts: Mapping[str, Json]
    commit_id: str | None


def commit_of(view: LogView[Any], draft: Draft) -> Commit:
    """Return the commit that `draft` would be, with the version of `view`: it is not committed."""
    return Commit(
        format=FORMAT,
        log_id=view.log_id,
        version=view.version,
        commit_id="",
        attempt_id="",
        base=view.version,
        prev=view.hash,
        time_us=view.time_us,
        write=draft.write,
        events=msgspec.json.decode(msgspec.json.encode(draft.events), type=tuple[dict[str, Any], ...]),
    )


def folded(log: Log[S], view: LogView[S], draft: Draft) -> LogView[S]:
    """Return the view with the effect of `draft`, a step later at the same version.

    Nothing is committed.
    """
    state = log.projection.apply(view.state, commit_of(view, draft), draft.blobs)
    is_sealed_after = draft.seals or (view.sealed and not draft.restores)
    return replace(view, state=state, sealed=is_sealed_after, steps=view.steps + 1)


def check_same(
    step: TransactionStep[Any],
    again: Draft,
    *,
    alone: bool,
    moved: bool,
    went_back: bool,
    title: str,
    version: int,
    by: str,
) -> None:
    """Raise CommitConflict if a step's second result differs from its first.

    It must remove exactly the files that the transaction saw. Unless it is `alone`, it must also give the
    same columns, because files and filters of later steps use the ids that this step gave to columns and
    partitions. If others have `moved` its rows, each of them was looked for, and the files may differ.

    A step also conflicts if another writer has committed its batch of a stream. If another writer `went_back`
    to an older version in the meantime, the same files may hold other rows.
    """
    first_files, second_files = _removed(step.draft), _removed(again)
    if moved:
        second_files = first_files
    elif _deletes_rows(step.draft) or _deletes_rows(again):
        # It was checked row by row against other writers' deletes in the same files.
        first_files, second_files = (
            {(path, 0) for path, _ in first_files},
            {(path, 0) for path, _ in second_files},
        )
    if second_files != first_files or (went_back and first_files):
        reason = "rows that it deletes were changed, or more rows that match were added"
    elif _batches(again) != _batches(step.draft):
        reason = "a batch of a stream that it writes has been committed by another writer"
    elif not alone and _metadata(again) != _metadata(step.draft):
        reason = "it changes columns, partitioning, order or constraints, which another writer changed too"
    else:
        return
    raise CommitConflict(
        f"the transaction's changes of {title} conflict with versions up to {version}, committed since it began, the "
        f"last by {by or 'an unknown writer'}: {reason}. Nothing was changed: run the transaction again",
        version=version,
        by=by,
    )


def goes_back(passed_commits: Sequence[Commit]) -> bool:
    """Return whether any of these commits took a table back to an older version, or moved a branch."""
    return any(
        event.get("event") in ("rolled-back", "fast-forwarded")
        or event.get("operation") == "set-current-version"
        for commit in passed_commits
        for event in commit.events
    )


def _removed(draft: Draft) -> set[tuple[str, int]]:
    """Return the paths that a draft removes, with the number of live rows in each."""
    file_rows: set[tuple[str, int]] = set()
    for event in _files_changed(draft):
        files = msgspec.convert(event.get("removed", []), list[RemovedFile])
        index = event.get("removed_sidecar")
        if index is not None:
            files += decode_removed(draft.blobs[index])
        file_rows |= {(f"{event.get('branch', '')}:{file.path}", file.rows) for file in files}
    return file_rows


def _deletes_rows(draft: Draft) -> bool:
    return any(event.get("changed_files") for event in _files_changed(draft))


def _files_changed(draft: Draft) -> Iterator[Mapping[str, Any]]:
    return (event for event in draft.events if event.get("event") in _OF_FILES)


def _batches(draft: Draft) -> list[Json]:
    return [event for event in draft.events if event.get("event") == "stream-committed"]


def _metadata(draft: Draft) -> list[Json]:
    metadata_events = [event for event in draft.events if event.get("event") in _OF_METADATA]
    return [msgspec.json.decode(msgspec.json.encode(event)) for event in metadata_events]


def met_by_joined(passed_commits: Sequence[Commit], draft: Draft) -> Sequence[Commit]:
    """Return other clients' commits as they are seen by the steps after a step that was decided on them.

    A branch that the step makes, or fast-forwards, includes other clients' changes of the line that it comes
    from. Later steps have read the branch without these changes, so they have to see them as changes of the
    branch, too.
    """
    pairs = [pair for event in draft.events if (pair := _joined(event)) is not None]
    for source, target in pairs:
        passed_commits = [
            msgspec.structs.replace(
                commit,
                events=tuple(
                    seen_event for event in commit.events for seen_event in _on_both(event, source, target)
                ),
            )
            for commit in passed_commits
        ]
    return passed_commits


def _joined(event: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return two lines: a line whose contents at the commit another line gets, and that other line."""
    if event.get("event") == "ref-set" and event["kind"] == BRANCH and event.get("version") is None:
        return event["of"], event["name"]
    if event.get("event") == "fast-forwarded":
        return event["to"], event["branch"]
    return None


def _on_both(event: dict[str, Any], source: str, target: str) -> Iterator[dict[str, Any]]:
    """Yield an event and, if it changes the files of `source`, the same change of `target`."""
    yield event
    if event.get("event") in _OF_FILES and event.get("branch", MAIN) == source:
        change = {key: value for key, value in event.items() if key not in ("event", "branch")}
        if target == MAIN:
            yield {"event": "files-changed", **change}
        else:
            yield {"event": "branch-files-changed", "branch": target, **change}


def merged_drafts(drafts: Sequence[Draft]) -> Draft:
    """Return a single draft with the effect of all of them, one after the other."""
    if len(drafts) == 1:
        return drafts[0]
    events: list[dict[str, Any]] = []
    blobs: list[bytes] = []
    for draft in drafts:
        events.extend(_with_sidecars_after(event, len(blobs)) for event in draft.events)
        blobs.extend(draft.blobs)
    writes = [draft.write for draft in drafts if draft.write is not None]
    return Draft(
        events=tuple(events),
        blobs=tuple(blobs),
        write=min(writes, key=lambda write: write.version, default=None),
        fence=max((draft.fence for draft in drafts), default=0),
        seals=any(draft.seals for draft in drafts),
        restores=any(draft.restores for draft in drafts),
        carries=tuple(carry for draft in drafts for carry in draft.carries),
    )


def _with_sidecars_after(event: dict[str, Any], blobs: int) -> dict[str, Any]:
    """Return the event for a commit that has `blobs` other sidecars before the event's own."""
    indexes = {key: event[key] + blobs for key in _SIDECAR_INDEXES if event.get(key) is not None}
    return {**event, **indexes}

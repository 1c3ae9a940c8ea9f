"""The commit of a client of Iceberg to a table, in a transaction of lakelog.

Requirements and updates are checked against the export of a version. The changes are committed on exactly that version.
If another commit was first, `VersionMoved` is raised. The caller then decides again, on the newer version. So a
requirement never holds by a state that is gone. This module must not know names: a table
is a handle of the transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from lakelog.catalog.core.files import removed_file, with_ids
from lakelog.catalog.core.logs import TableHead, files_event
from lakelog.catalog.core.parquet import check_rows, required
from lakelog.catalog.core.state import (
    ICEBERG,
    MAIN,
    IcebergCommit,
    OperationKind,
    TableState,
    encode,
    events_of,
    iceberg_commit,
)
from lakelog.catalog.core.writes import drop_ref, go_back, set_ref
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.formats.iceberg import line_number_of
from lakelog.catalog.formats.iceberg_commits.contents import SnapshotReader, with_vectors
from lakelog.catalog.formats.iceberg_commits.definitions import altered_definition
from lakelog.catalog.formats.iceberg_commits.requirements import check_requirements
from lakelog.catalog.formats.iceberg_commits.updates import UpdatedMetadata, updated
from lakelog.log import Commit, Draft, Json, LogView
from lakelog.log.errors import CommitUnknown, ConflictError, InvalidInput, NotFound, Unsupported

Document = Mapping[str, Any]


class VersionMoved(ConflictError):
    """Another commit was first, so the request is decided anew. No caller outside of the catalog sees it."""

    kind = "version-moved"


@dataclass(frozen=True, slots=True)
class ClientCommit:
    """A client's commit to a table: its requirements and updates, in the JSON of Iceberg's REST protocol."""

    requirements: Sequence[Document]
    updates: Sequence[Document]

    @property
    def snapshot_ids(self) -> list[int]:
        """The ids of the snapshots that it adds."""
        snapshots = [
            update.get("snapshot") for update in self.updates if update.get("action") == "add-snapshot"
        ]
        ids = [snapshot.get("snapshot-id") for snapshot in snapshots if isinstance(snapshot, dict)]
        return [id for id in ids if type(id) is int]

    @property
    def digest(self) -> str:
        """The SHA-256 of the updates. The order of members in their objects is no matter."""
        return hashlib.sha256(msgspec.json.encode(self.updates, order="deterministic")).hexdigest()


def was_committed(head: TableHead, commit: ClientCommit, document: Document) -> bool:
    """Return whether a table has the snapshots of a commit, so that the client has sent it again.

    Of several snapshots, only the last of each tag or branch was kept. Ids of snapshots are chosen at random, so no
    other commit has the same. Raises CommitUnknown if another has it all the same. Makes a GET to see that.
    """
    versions = [
        snapshot["sequence-number"]
        for snapshot in document["snapshots"]
        if snapshot["snapshot-id"] in commit.snapshot_ids
    ]
    if versions:
        check_same_request(head, commit, versions[0])
    return bool(versions)


class OtherRequestCommitted(CommitUnknown):
    """Another request had the snapshot or the uuid. It does not help to send this request again."""


def check_same_request(head: TableHead, commit: ClientCommit, version: int) -> None:
    """Raise OtherRequestCommitted if a version was made by a commit with other updates. Makes a GET.

    A client that hears of a failure deletes its files, which that version may need. If the outcome is unknown, it keeps
    them. Nothing is checked if the version has expired, or was made by an older lakelog.
    """
    made_by: Commit | None = None
    with suppress(NotFound):
        made_by = next(head.tracked.log.commits(first=version, last=version), None)
    digest = iceberg_commit(made_by).updates
    if digest is not None and digest != commit.digest:
        raise OtherRequestCommitted(
            f"version {version} of {head.name} has a snapshot or the uuid of this request, and was made by a request "
            "with other updates. Nothing was changed now: load the table, and look for the updates of both",
            commit_id="" if made_by is None else made_by.commit_id,
            location=head.url,
        )


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """A commit that was checked against the metadata `base` of a table's version.

    `fact` is the fact of the commit in the log.
    """

    base: Document
    version: int
    log_id: str
    target: UpdatedMetadata
    line: str | None
    fact: Mapping[str, Json]


def planned(commit: ClientCommit, base: Document, name: str, version: int, log_id: str) -> PlannedCommit:
    """Return a plan of a commit to an existing table. Makes no request.

    Raises CommitConflict if a requirement does not hold, and InvalidInput or Unsupported for its updates.
    """
    check_requirements(commit.requirements, base, name, version)
    target = updated(base, commit.updates)
    line = _line(target, base)
    _check_all_used(target)
    if line is not None:
        _check_base(commit, target, base, line, name, version)
    fact = _fact(target, line, commit)
    return PlannedCommit(base, version, log_id, target, line, {} if fact is None else {ICEBERG: fact})


def _line(target: UpdatedMetadata, base: Document) -> str | None:
    """Return the tag or branch that gets new contents. Raises Unsupported for several."""
    refs = target.document["refs"]
    lines = [name for name in sorted(target.touched_refs) if name in refs and _is_new(target, refs[name])]
    if MAIN in target.touched_refs and MAIN not in refs and MAIN in base["refs"]:
        lines.append(MAIN)  # the table is emptied
    if len(lines) > 1:
        raise Unsupported(
            f"the commit adds snapshots to {' and '.join(lines)}: write to one tag or branch in each commit"
        )
    return lines[0] if lines else None


def _is_new(target: UpdatedMetadata, ref: Document) -> bool:
    return ref["snapshot-id"] in target.new_snapshots


def _check_all_used(target: UpdatedMetadata) -> None:
    """Raise Unsupported for a snapshot that no tag or branch leads to."""
    used_ids: set[int] = set()
    for ref in target.document["refs"].values():
        id = ref["snapshot-id"]
        while id in target.new_snapshots and id not in used_ids:
            used_ids.add(id)
            id = target.new_snapshots[id].get("parent-snapshot-id")
    unused_ids = sorted(target.new_snapshots.keys() - used_ids)
    if unused_ids:
        raise Unsupported(
            f"no tag or branch leads to the snapshot {unused_ids[0]}, which lakelog would not keep: write to a branch "
            "instead"
        )


def _check_base(
    commit: ClientCommit, target: UpdatedMetadata, base: Document, line: str, name: str, version: int
) -> None:
    """Raise CommitConflict unless the client knew the line's present snapshot, which it replaces."""
    required_refs = {
        requirement.get("ref")
        for requirement in commit.requirements
        if requirement.get("type") == "assert-ref-snapshot-id"
    }
    if line in required_refs or _replaces_all(commit, line):
        return
    present = base["refs"].get(line)
    ref = target.document["refs"].get(line)
    id = None if ref is None else ref["snapshot-id"]
    while id in target.new_snapshots:
        id = target.new_snapshots[id].get("parent-snapshot-id")
    if (None if present is None else present["snapshot-id"]) != id:
        raise CommitConflict(
            f"the commit continues {line} of {name} from the snapshot {id}, and version {version} of the table has "
            f"{None if present is None else present['snapshot-id']}. Nothing was changed: load the table, and commit "
            "again",
            version=version,
        )


def _replaces_all(commit: ClientCommit, line: str) -> bool:
    """Return whether a client removes a line's contents, whatever they are, from a table that it knows by its uuid."""
    removes = any(
        update.get("action") == "remove-snapshot-ref" and update.get("ref-name") == line
        for update in commit.updates
    )
    return removes and any(
        requirement.get("type") == "assert-table-uuid" for requirement in commit.requirements
    )


def _fact(target: UpdatedMetadata, line: str | None, commit: ClientCommit | None) -> Json | None:
    """Return the fact of the commit for exports. None if it has none."""
    ref = None if line is None else target.document["refs"].get(line)
    snapshot = None if ref is None else target.new_snapshots[ref["snapshot-id"]]
    refs = {
        name: str(other_ref["snapshot-id"])
        for name, other_ref in target.document["refs"].items()
        if name in target.touched_refs and name != line
    }
    if snapshot is None and not refs:
        return None
    summary: dict[str, str] = {}
    if snapshot is not None:
        summary = {
            key: value
            for key, value in (snapshot.get("summary") or {}).items()
            if not key.startswith("lakelog.")
        }
        if len(target.new_snapshots) > 1:
            summary.pop("operation", None)  # it is of the last of several steps
    fact: Json = msgspec.to_builtins(
        IcebergCommit(
            line=None if snapshot is None else line,
            snapshot=None if snapshot is None else str(snapshot["snapshot-id"]),
            summary=summary,
            refs=refs,
            updates=None if commit is None else commit.digest,
        )
    )
    return fact


def apply_planned(head: TableHead, plan: PlannedCommit) -> bool:
    """Change the table `head` of a transaction as planned. The transaction commits it on the plan's version only.

    Returns False if the table is as the client wants it already. Reads the client's manifests and footers. Raises
    VersionMoved if the table has another version already.
    """
    if (head.version, head.id) != (plan.version, plan.log_id):
        raise _moved(head.name, head.version)
    application = _Application(head.whole, plan)
    application.definition().contents().refs()
    return application.has_changes


def fill_created(head: TableHead, target: UpdatedMetadata) -> None:
    """Change the files, tags and branches of a table that the same transaction has created, as the client wants."""
    base = {**target.document, "refs": {}, "snapshots": [], "snapshot-log": []}
    _check_all_used(target)
    plan = PlannedCommit(base, head.version, head.id, target, _line(target, base), {})
    _Application(head.whole, plan).contents().refs()


def fact_of_creation(target: UpdatedMetadata, commit: ClientCommit | None) -> Mapping[str, Json]:
    """Return the fact of the commit that creates a table. `commit` is the client's, if it has staged the table."""
    fact = _fact(target, _line(target, {"refs": {}}), commit)
    if fact is None and commit is not None:
        fact = {"updates": commit.digest}
    return {} if fact is None else {ICEBERG: fact}


def _moved(name: str, version: int) -> VersionMoved:
    return VersionMoved(
        f"{name} was changed while a commit was decided, by version {version}. Nothing was changed: commit again",
        version=version,
    )


class _Application:
    """Changes of a table in a transaction, made in order."""

    def __init__(self, head: TableHead, plan: PlannedCommit) -> None:
        self._head = head
        self._head_before = head  # the listed snapshots have these contents, whatever this commit changes
        self._plan = plan
        self.has_changes = False
        self._must_be_emptied = False

    def _commit(self, head: TableHead, draft: Draft) -> TableHead:
        """Commit a draft, on this version only, and return the table itself."""
        steps, version, name = self._head.tracked.current().steps, self._plan.version, head.name

        def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
            # More steps than the transaction's own would be changes of others in the same version.
            if (view.version, view.steps) != (version, steps):
                raise _moved(name, view.version)
            return draft

        head.commit(decide, None)
        return self._head.at(self._head.tracked.current())

    def definition(self) -> _Application:
        """Change columns, partitioning, order and properties. Without a change, only the version is checked."""
        metadata = self._head.metadata
        has_rows = self._has_rows()
        definition = altered_definition(metadata, self._plan.base, self._plan.target, has_rows=has_rows)
        self._must_be_emptied = not has_rows
        events = events_of(metadata, definition)
        check_rows(self._head, None, required(metadata, definition))
        self._head = self._commit(self._head, Draft(events=encode(events)))
        self.has_changes = bool(events)
        return self

    def _has_rows(self) -> bool:
        """Return whether rows from before may stay: not if the client replaces all contents of an unbranched table."""
        if self._head.state.refs:
            return True
        target, id = self._plan.target, None
        if self._plan.line == MAIN:
            ref = target.document["refs"].get(MAIN)
            id = None if ref is None else ref["snapshot-id"]
            while id in target.new_snapshots:
                id = target.new_snapshots[id].get("parent-snapshot-id")
            if id is None:
                return False
        return bool(self._head.all_files().num_rows)

    def contents(self) -> _Application:
        """Change the files of the tag or branch that gets a new snapshot."""
        plan, line = self._plan, self._plan.line
        if line is None:
            return self
        self.has_changes = True
        old_ref, new_ref = plan.base["refs"].get(line), plan.target.document["refs"].get(line)
        if line != MAIN and old_ref is None:
            raise Unsupported(f"the branch {line} does not exist: create it from a snapshot first")
        if new_ref is not None and new_ref["type"] == "tag":
            raise Unsupported(f"the tag {line} stays as it is: write to a branch")
        snapshots_by_id = {snapshot["snapshot-id"]: snapshot for snapshot in plan.base["snapshots"]}
        old = None if old_ref is None else snapshots_by_id[old_ref["snapshot-id"]]
        new = None if new_ref is None else plan.target.new_snapshots[new_ref["snapshot-id"]]
        head = self._head.on(line)
        files = SnapshotReader(head, plan.target.document).change(old, new)
        write = self._head.begin_write()
        new_files, removed_paths, changed_files = with_vectors(head, write, files)
        new_files = [msgspec.structs.replace(file, write_id=write.id) for file in new_files]
        removed_files = [removed_file(file) for file in head.entries(removed_paths).values()]
        if self._must_be_emptied and head.all_files().num_rows > len(removed_files):
            raise Unsupported(
                "a snapshot without a parent has files from before: give it the parent that it has"
            )
        event, blobs = files_event(
            _operation(bool(new_files), bool(removed_files), bool(changed_files)),
            with_ids(new_files, self._head.state.next_row),
            removed_files,
            head.metadata,
            changed=changed_files,
        )
        self._head = self._commit(head, Draft(events=encode([event]), blobs=blobs, write=write))
        return self

    def refs(self) -> TableHead:
        """Create, move and drop tags and branches, and return the table."""
        refs, old_refs = self._plan.target.document["refs"], self._plan.base["refs"]
        for name in sorted(self._plan.target.touched_refs):
            if name == self._plan.line:
                continue
            ref, old_ref = refs.get(name), old_refs.get(name)
            if ref == old_ref:
                continue
            self.has_changes = True
            # A tag does not become a branch. It is another line of the same name.
            if old_ref is not None and (ref is None or ref["type"] != old_ref["type"]):
                self._head = drop_ref(
                    self._head, old_ref["type"], name, if_exists=False, is_past=False, token=None
                )
                old_ref = None
            if ref is not None:
                self._set(name, ref, replace=old_ref is not None)
        return self._head

    def _set(self, name: str, ref: Document, *, replace: bool) -> None:
        source = self._contents_of(ref["snapshot-id"])
        if name == MAIN:
            self._head = go_back(self._head, OperationKind.SET_CURRENT, source.view, None)
        else:
            self._head = set_ref(
                self._head, ref["type"], name, source, replace=replace, is_past=False, token=None
            )

    def _contents_of(self, id: int) -> TableHead:
        """Return the version and line whose contents a listed snapshot has. Raises Unsupported if it is not known."""
        base, head = self._plan.base, self._head_before
        snapshot = next((item for item in base["snapshots"] if item["snapshot-id"] == id), None)
        if snapshot is None:
            raise InvalidInput(f"the table lists no snapshot {id}")
        for name, ref in sorted(base["refs"].items()):
            if ref["snapshot-id"] == id:
                return head.on(name)
        version: int = snapshot["sequence-number"]
        try:
            past_head = head if version == head.version else head.at_version(version)
            return past_head.on(_line_of_snapshot(past_head, id))
        except NotFound as error:
            raise Unsupported(
                f"the contents of the snapshot {id} are not known any more ({error.message}): name a newer snapshot"
            ) from error


def _line_of_snapshot(head: TableHead, id: int) -> str:
    """Return the tag or branch whose contents a snapshot of the version of `head` has.

    Raises NotFound if the version's commit has expired.
    """
    commit = next(head.tracked.log.commits(first=head.version, last=head.version), None)
    fact = iceberg_commit(commit)
    if fact.line is not None and fact.snapshot_id == id:
        return fact.line
    number, lines = line_number_of(id, head.version), [MAIN, *sorted(head.state.refs)]
    if number is None or number >= len(lines):
        raise NotFound(f"version {head.version} of {head.name} has no snapshot {id}")
    return lines[number]


def _operation(adds: bool, removes: bool, changes: bool) -> OperationKind:
    """Return the operation for the log. If a client moves rows to other files, they get new ids."""
    if not removes and not changes:
        return OperationKind.APPEND
    return OperationKind.OVERWRITE if adds else OperationKind.DELETE_ROWS

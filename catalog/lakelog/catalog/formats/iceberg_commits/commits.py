"""The commit of a client of Iceberg to a table, in a transaction of lakelog.

The commit's requirements and updates are checked against the export of one version, and what follows from them is
committed on exactly that version. If another commit was first, `VersionMoved` is raised, and the caller decides anew
on the newer version. So a requirement never holds by a state that is gone. This module must not know names: a table
is a handle of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
)
from lakelog.catalog.core.writes import drop_ref, go_back, set_ref
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.formats.iceberg_commits.contents import SnapshotReader, with_vectors
from lakelog.catalog.formats.iceberg_commits.definitions import altered_definition
from lakelog.catalog.formats.iceberg_commits.requirements import check_requirements
from lakelog.catalog.formats.iceberg_commits.updates import UpdatedMetadata, updated
from lakelog.log import Commit, Draft, Json, LogView
from lakelog.log.errors import ConflictError, InvalidInput, Unsupported

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
        snapshots = [each.get("snapshot") for each in self.updates if each.get("action") == "add-snapshot"]
        return [each["snapshot-id"] for each in snapshots if isinstance(each, dict) and "snapshot-id" in each]


def was_committed(commit: ClientCommit, document: Document) -> bool:
    """Return whether a table has the snapshots of a commit, so that the client has sent it again.

    Of several snapshots, only the last of each tag or branch was kept. Ids of snapshots are chosen at random, so no
    other commit has the same.
    """
    listed = {snapshot["snapshot-id"] for snapshot in document["snapshots"]}
    return any(id in listed for id in commit.snapshot_ids)


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """A commit that was checked against the metadata `base` of a table's version.

    `fact` is the fact of the commit in the log.
    """

    base: Document
    version: int
    log_id: str
    wanted: UpdatedMetadata
    line: str | None
    fact: Mapping[str, Json]


def planned(commit: ClientCommit, base: Document, name: str, version: int, log_id: str) -> PlannedCommit:
    """Return a plan of a commit to an existing table. Makes no request.

    Raises CommitConflict if a requirement does not hold, and InvalidInput or Unsupported for its updates.
    """
    check_requirements(commit.requirements, base, name, version)
    wanted = updated(base, commit.updates)
    line = _line(wanted, base)
    _check_all_used(wanted)
    if line is not None:
        _check_base(commit, wanted, base, line, name, version)
    fact = _fact(wanted, line)
    return PlannedCommit(base, version, log_id, wanted, line, {} if fact is None else {ICEBERG: fact})


def _line(wanted: UpdatedMetadata, base: Document) -> str | None:
    """Return the tag or branch that gets new contents. Raises Unsupported for several."""
    refs = wanted.document["refs"]
    lines = [name for name in sorted(wanted.touched) if name in refs and _is_new(wanted, refs[name])]
    if MAIN in wanted.touched and MAIN not in refs and MAIN in base["refs"]:
        lines.append(MAIN)  # the table is emptied
    if len(lines) > 1:
        raise Unsupported(
            f"the commit adds snapshots to {' and '.join(lines)}: write to one tag or branch in each commit"
        )
    return lines[0] if lines else None


def _is_new(wanted: UpdatedMetadata, ref: Document) -> bool:
    return ref["snapshot-id"] in wanted.added


def _check_all_used(wanted: UpdatedMetadata) -> None:
    """Raise Unsupported for a snapshot that no tag or branch leads to."""
    used: set[int] = set()
    for ref in wanted.document["refs"].values():
        id = ref["snapshot-id"]
        while id in wanted.added and id not in used:
            used.add(id)
            id = wanted.added[id].get("parent-snapshot-id")
    unused = sorted(wanted.added.keys() - used)
    if unused:
        raise Unsupported(
            f"no tag or branch leads to the snapshot {unused[0]}, which lakelog would not keep: write to a branch "
            "instead"
        )


def _check_base(
    commit: ClientCommit, wanted: UpdatedMetadata, base: Document, line: str, name: str, version: int
) -> None:
    """Raise CommitConflict unless the client knew the line's present snapshot, which it replaces."""
    required_refs = {
        requirement.get("ref")
        for requirement in commit.requirements
        if requirement.get("type") == "assert-ref-snapshot-id"
    }
    if line in required_refs:
        return
    present = base["refs"].get(line)
    ref = wanted.document["refs"].get(line)
    id = None if ref is None else ref["snapshot-id"]
    while id in wanted.added:
        id = wanted.added[id].get("parent-snapshot-id")
    if (None if present is None else present["snapshot-id"]) != id:
        raise CommitConflict(
            f"the commit continues {line} of {name} from the snapshot {id}, and version {version} of the table has "
            f"{None if present is None else present['snapshot-id']}. Nothing was changed: load the table, and commit "
            "again",
            version=version,
        )


def _fact(wanted: UpdatedMetadata, line: str | None) -> Json | None:
    """Return the fact of the commit for exports. None if it has none."""
    ref = None if line is None else wanted.document["refs"].get(line)
    snapshot = None if ref is None else wanted.added[ref["snapshot-id"]]
    refs = {
        name: str(other["snapshot-id"])
        for name, other in wanted.document["refs"].items()
        if name in wanted.touched and name != line
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
        if len(wanted.added) > 1:
            summary.pop("operation", None)  # it is of the last of several steps
    fact: Json = msgspec.to_builtins(
        IcebergCommit(
            line=None if snapshot is None else line,
            snapshot=None if snapshot is None else str(snapshot["snapshot-id"]),
            summary=summary,
            refs=refs,
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


def fill_created(head: TableHead, wanted: UpdatedMetadata) -> None:
    """Change the files, tags and branches of a table that the same transaction has created, as the client wants."""
    base = {**wanted.document, "refs": {}, "snapshots": [], "snapshot-log": []}
    _check_all_used(wanted)
    plan = PlannedCommit(base, head.version, head.id, wanted, _line(wanted, base), {})
    _Application(head.whole, plan).contents().refs()


def fact_of_creation(wanted: UpdatedMetadata) -> Mapping[str, Json]:
    """Return the fact of the commit that creates a table."""
    fact = _fact(wanted, _line(wanted, {"refs": {}}))
    return {} if fact is None else {ICEBERG: fact}


def _moved(name: str, version: int) -> VersionMoved:
    return VersionMoved(
        f"{name} was changed while a commit was decided, by version {version}. Nothing was changed: commit again",
        version=version,
    )


class _Application:
    """Changes of a table in a transaction, one after another."""

    def __init__(self, head: TableHead, plan: PlannedCommit) -> None:
        self._head = head
        self._plan = plan
        self.has_changes = False

    def _commit(self, head: TableHead, draft: Draft) -> TableHead:
        """Commit a draft, on this version only, and return the table itself."""
        version, name = self._plan.version, head.name

        def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
            if view.version != version:
                raise _moved(name, view.version)
            return draft

        head.commit(decide, None)
        return self._head.at(self._head.tracked.current())

    def definition(self) -> _Application:
        """Change columns, partitioning, order and properties. Without a change, only the version is checked."""
        metadata = self._head.metadata
        after = altered_definition(metadata, self._plan.base, self._plan.wanted)
        events = events_of(metadata, after)
        check_rows(self._head, None, required(metadata, after))
        self._head = self._commit(self._head, Draft(events=encode(events)))
        self.has_changes = bool(events)
        return self

    def contents(self) -> _Application:
        """Change the files of the tag or branch that gets a new snapshot."""
        plan, line = self._plan, self._plan.line
        if line is None:
            return self
        self.has_changes = True
        old_ref, new_ref = plan.base["refs"].get(line), plan.wanted.document["refs"].get(line)
        if line != MAIN and old_ref is None:
            raise Unsupported(f"the branch {line} does not exist: create it from a snapshot first")
        if new_ref is not None and new_ref["type"] == "tag":
            raise Unsupported(f"the tag {line} stays as it is: write to a branch")
        listed = {snapshot["snapshot-id"]: snapshot for snapshot in plan.base["snapshots"]}
        old = None if old_ref is None else listed[old_ref["snapshot-id"]]
        new = None if new_ref is None else plan.wanted.added[new_ref["snapshot-id"]]
        head = self._head.on(line)
        files = SnapshotReader(head, plan.wanted.document).change(old, new)
        write = self._head.begin_write()
        added, removed_paths, changed = with_vectors(head, write, files)
        added = [msgspec.structs.replace(file, write_id=write.id) for file in added]
        removed = [removed_file(file) for file in head.entries(removed_paths).values()]
        event, blobs = files_event(
            _operation(bool(added), bool(removed), bool(changed)),
            with_ids(added, self._head.state.next_row),
            removed,
            head.metadata,
            changed=changed,
        )
        self._head = self._commit(head, Draft(events=encode([event]), blobs=blobs, write=write))
        return self

    def refs(self) -> TableHead:
        """Create, move and drop tags and branches, and return the table."""
        refs, old_refs = self._plan.wanted.document["refs"], self._plan.base["refs"]
        for name in sorted(self._plan.wanted.touched):
            if name == self._plan.line:
                continue
            if name not in refs:
                self.has_changes = True
                self._head = drop_ref(
                    self._head, old_refs[name]["type"], name, if_exists=False, is_past=False, token=None
                )
                continue
            id, kind = refs[name]["snapshot-id"], refs[name]["type"]
            if old_refs.get(name, {}).get("snapshot-id") == id:
                continue
            self.has_changes = True
            source = self._contents_of(id)
            if name == MAIN:
                self._head = go_back(self._head, OperationKind.SET_CURRENT, source.view, None)
            else:
                self._head = set_ref(
                    self._head, kind, name, source, replace=name in old_refs, is_past=False, token=None
                )
        return self._head

    def _contents_of(self, id: int) -> TableHead:
        """Return the version whose contents a listed snapshot has. Raises Unsupported if it is not known."""
        base = self._plan.base
        snapshot = next((each for each in base["snapshots"] if each["snapshot-id"] == id), None)
        if snapshot is None:
            raise InvalidInput(f"the table lists no snapshot {id}")
        if any(entry["snapshot-id"] == id for entry in base["snapshot-log"]):
            return self._head.at_version(snapshot["sequence-number"])
        for name, ref in sorted(base["refs"].items()):
            if ref["snapshot-id"] == id:
                return self._head.on(name)
        raise Unsupported(
            f"the snapshot {id} was of a branch, and is not its newest any more: name a snapshot of {MAIN}, or the "
            "newest of a tag or branch"
        )


def _operation(adds: bool, removes: bool, changes: bool) -> OperationKind:
    """Return the operation for the log. What a client calls a replacement gives the moved rows new ids."""
    if not removes and not changes:
        return OperationKind.APPEND
    return OperationKind.OVERWRITE if adds else OperationKind.DELETE_ROWS

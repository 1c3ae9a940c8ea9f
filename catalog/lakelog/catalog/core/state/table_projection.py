"""How a table's log is folded, dumped and loaded: the form of its state in snapshots. Pure.

A member of the state that snapshots lack would be lost with the next one: `_Root` has each that is not derived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lakelog.catalog.core.files import (
    Entries,
    Fetch,
    FileSet,
    Kept,
    Manifests,
    StoredList,
    TableEstimates,
    decode_bounds,
    decode_directories,
    encode_bounds,
    encode_directories,
)
from lakelog.catalog.core.schema import (
    Metadata,
    check_metadata,
    leave_out_empty,
    order_within_files,
    ready,
    state_of,
)
from lakelog.catalog.core.state import table_state
from lakelog.catalog.core.state.adopted import Adopted, StoredAdopted
from lakelog.catalog.core.state.clones import (
    Ancestor,
    Origin,
    StoredPromise,
    loaded_promises,
    stored_promises,
)
from lakelog.catalog.core.state.decoded_events import (
    table_events,
)
from lakelog.catalog.core.state.imported_source import ImportedSource
from lakelog.catalog.core.state.link import Link
from lakelog.catalog.core.state.refs import Line, Ref
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import Commit, Dump, Json
from lakelog.log.grammar import Id, Int32, Int64, Name, Number, Word


class _StoredRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    kind: Word
    id: Id
    version: Number
    files: Any
    metadata: Metadata | None = None
    line: Line = msgspec.field(default_factory=Line)


class _Root(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    metadata: Metadata
    files: Any
    link: Link | None = None
    expired: Number = 0
    estimates: TableEstimates | None = None
    streams: dict[str, Number] = {}
    next_row: Number = 0
    identities: dict[Int32, Int64] = {}
    refs: dict[Name, _StoredRef] = {}
    main: Line | None = None
    source: ImportedSource | None = None
    adopted: StoredAdopted | None = None
    clones: dict[Id, StoredPromise] = {}
    origins: tuple[Origin, ...] = ()
    ancestors: tuple[Ancestor, ...] = ()
    erased: Number = 0
    erasing: Id | None = None
    bounds: str | None = None
    parts: str | None = None


ready(_StoredRef, _Root)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableDump(Dump):
    files: Sequence[tuple[FileSet, Manifests]]


class TableProjection:
    """How the log folds, dumps and loads a table (see `lakelog.log.Projection`).

    `fetch` reads manifests by name, so that a dump can merge small ones that are not in memory. What states have read
    of packs is in `kept`.
    """

    def __init__(self, fetch: Fetch | None = None, kept: Kept | None = None) -> None:
        self._fetch = fetch
        self._kept = Kept() if kept is None else kept

    def initial(self) -> TableState:
        return TableState()

    def apply(self, state: TableState, commit: Commit, blobs: Sequence[bytes]) -> TableState:
        known = state.metadata
        for event in table_events(commit):
            state = table_state.apply(state, event, commit.version, blobs, uncommitted=not commit.commit_id)
            if state.metadata is not known and state.metadata is not None:
                check_metadata(state.metadata)
                known = state.metadata
        return state

    def dump(self, state: TableState, version: int, for_base: bool = False) -> Dump:
        kept = order_within_files(state.current.clustering, state.current.sort_order)
        order = [field.source_id for field in kept.fields]
        blobs: dict[str, bytes] = {}
        sets: list[tuple[FileSet, Any]] = []

        def dumped(files: FileSet, order: Sequence[int] = order) -> Any:
            # Manifests are named by their content: the common part of lines is stored once.
            # What overlaps is sorted anew for main alone: what a tag has goes with the tag.
            sorts_anew = files is state.files and not for_base
            named, more, manifests = files.dump(
                version, self._fetch, order, self._kept, state.erased, sorts_anew=sorts_anew
            )
            sets.append((files, manifests))
            blobs.update(more)
            return named

        files = dumped(state.files)
        refs = {
            name: _StoredRef(
                kind=ref.kind,
                id=ref.id,
                version=ref.version,
                files=dumped(ref.files),
                metadata=ref.metadata,
                line=ref.line,
            )
            for name, ref in sorted(state.refs.items())
        }
        clones = stored_promises(state.clones, dumped)
        adopted = None
        if state.adopted is not None:
            adopted = StoredAdopted(source=state.adopted.source, files=dumped(state.adopted.files, ()))
        bounds = {name: each for _, own in sets for name, each in own.bounds().items()}
        stored = _Root(
            metadata=state.current,
            files=files,
            link=state.link,
            expired=state.expired,
            estimates=state.estimates,
            streams=dict(state.streams),
            next_row=state.next_row,
            identities=dict(state.identities),
            refs=refs,
            main=state.main,
            source=state.source,
            adopted=adopted,
            clones=clones,
            origins=state.origins,
            ancestors=state.ancestors,
            erased=state.erased,
            erasing=state.erasing,
            bounds=encode_bounds(list(bounds.values())),
            parts=encode_directories(
                list(dict.fromkeys(each for _, own in sets for each in own.directories()))
            ),
        )
        root = msgspec.to_builtins(stored)
        if not state.current.constraints:
            del root["metadata"]["constraints"]  # as most tables have none
        for each in (root, *root.get("clones", {}).values()):
            leave_out_empty(each["metadata"])
        for each in root.get("refs", {}).values():
            if each.get("metadata") and not each["metadata"]["ranks"]:
                del each["metadata"]["ranks"]
        lists = [files, *(ref.files for ref in refs.values()), *(each.files for each in clones.values())]
        lists += [adopted.files] if adopted else []
        return _TableDump(
            root=root,
            blobs=blobs,
            uses=list(
                dict.fromkeys(
                    stored["name"]
                    for each in lists
                    for part in ("manifests", "removed")
                    for stored in each[part]
                )
            ),
            files=sets,
        )

    def stored(self, dump: Dump) -> None:
        """Note in the set of files that its new manifests are durable, so that the next snapshot names them again."""
        if isinstance(dump, _TableDump):
            for files, manifests in dump.files:
                files.stored(manifests)

    def load(self, root: Json) -> TableState:
        stored = state_of(root, _Root, "table", "namespace")
        tags = [ref.metadata for ref in stored.refs.values()]
        for metadata in (stored.metadata, *tags, *(each.metadata for each in stored.clones.values())):
            if metadata is not None:
                check_metadata(metadata)
        known: dict[StoredList, Entries] = {}
        bounds, directories = decode_bounds(stored.bounds), decode_directories(stored.parts)

        def loaded(files: Any) -> FileSet:
            return FileSet.load(files, known, bounds, directories, self._kept)

        return TableState(
            metadata=stored.metadata,
            files=loaded(stored.files),
            link=stored.link,
            expired=stored.expired,
            estimates=stored.estimates,
            streams=stored.streams,
            next_row=stored.next_row,
            identities=stored.identities,
            refs={
                name: Ref(
                    kind=ref.kind,
                    id=ref.id,
                    version=ref.version,
                    files=loaded(ref.files),
                    metadata=ref.metadata,
                    line=ref.line,
                )
                for name, ref in stored.refs.items()
            },
            main=stored.main,
            source=stored.source,
            adopted=None
            if stored.adopted is None
            else Adopted(stored.adopted.source, loaded(stored.adopted.files)),
            clones=loaded_promises(stored.clones, loaded),
            origins=stored.origins,
            ancestors=stored.ancestors,
            erased=stored.erased,
            erasing=stored.erasing,
        )

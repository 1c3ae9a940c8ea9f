"""The fold, dump and load of a table's log: the form of its state in snapshots. Pure.

A member of the state that snapshots lack would be lost with the next snapshot. So `_Root` has every member
that is not derived. Its `hints` only make plans quicker: names that are not known here are ignored, and the
next snapshot does not have them. Its `writers` belong to features of writers that are not known here. So this
client only reads the log, and never drops them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lakelog.catalog.core.files.column_statistics import TableEstimates
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.leaves import Fetch
from lakelog.catalog.core.files.manifest_bounds import decode_bounds, encode_bounds
from lakelog.catalog.core.files.manifest_parts import PartCache, StoredPack
from lakelog.catalog.core.files.manifests import Entries, ManifestSet
from lakelog.catalog.core.files.stored_list import StoredList
from lakelog.catalog.core.files.stored_sets import PackLeaves, PackNumbers, StoredFileSet
from lakelog.catalog.core.schema.curve import order_within_files
from lakelog.catalog.core.schema.metadata import Metadata, check_metadata
from lakelog.catalog.core.schema.stored_types import ready, state_of
from lakelog.catalog.core.state import features, table_state
from lakelog.catalog.core.state.adopted import AdoptedFiles, StoredAdopted
from lakelog.catalog.core.state.clones import (
    CloneOrigin,
    StoredPromise,
    TableAncestor,
    loaded_promises,
    stored_promises,
)
from lakelog.catalog.core.state.decoded_events import (
    table_events,
)
from lakelog.catalog.core.state.imported_source import ImportedSource
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.refs import ContentLine, Ref, RefKind
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import Commit, FeatureNames, Json, StateDump
from lakelog.log.grammar import BlobName, Id, Int32, Int64, Name, Number

BOUNDS = "bounds"
"""The hint that describes the contents of manifests (see `manifest_bounds`)."""


class _StoredRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    kind: RefKind
    id: Id
    version: Number
    files: StoredFileSet
    metadata: Metadata | None = None
    line: ContentLine


class _Root(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    metadata: Metadata
    files: StoredFileSet
    link: NameLink | None = None
    expired: Number = 0
    estimates: TableEstimates | None = None
    streams: dict[str, Number] = {}
    next_row: Number = 0
    identities: dict[Int32, Int64] = {}
    refs: dict[Name, _StoredRef] = {}
    main: ContentLine | None = None
    source: ImportedSource | None = None
    adopted: StoredAdopted | None = None
    clones: dict[Id, StoredPromise] = {}
    origins: tuple[CloneOrigin, ...] = ()
    ancestors: tuple[TableAncestor, ...] = ()
    erased: Number = 0
    erasing: Id | None = None
    hints: dict[str, Any] = {}
    writers: dict[str, Any] = {}
    packs: dict[BlobName, StoredPack] = {}


ready(_StoredRef, _Root)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableDump(StateDump):
    files: Sequence[tuple[FileSet, ManifestSet]]


class TableProjection:
    """Folds, dumps and loads a table for the log (see `lakelog.log.StateProjection`).

    `fetch` reads manifests by name, so that a dump can merge small manifests that are not in memory. `kept`
    holds the parts of packs that states have read.
    """

    known_features = features.KNOWN

    def __init__(self, fetch: Fetch | None = None, kept: PartCache | None = None) -> None:
        self._fetch = fetch
        self._kept = PartCache() if kept is None else kept

    def uses(self, commit: Commit, blobs: Sequence[bytes]) -> FeatureNames:
        return features.used_by(commit, blobs)

    def initial(self) -> TableState:
        return TableState()

    def apply(self, state: TableState, commit: Commit, blobs: Sequence[bytes]) -> TableState:
        checked_metadata = state.metadata
        for event in table_events(commit):
            state = table_state.apply(state, event, commit.version, blobs, uncommitted=not commit.commit_id)
            if state.metadata is not checked_metadata and state.metadata is not None:
                check_metadata(state.metadata)
                checked_metadata = state.metadata
        return state

    def dump(self, state: TableState, version: int, for_base: bool = False) -> StateDump:
        row_order = order_within_files(state.current.clustering, state.current.sort_order)
        order = [field.source_id for field in row_order.fields]
        blobs: dict[str, bytes] = {}
        sets: list[tuple[FileSet, ManifestSet]] = []
        pack_numbers = PackNumbers()

        def dumped(files: FileSet, order: Sequence[int] = order) -> StoredFileSet:
            # Manifests are named by their content, so the common part of lines is stored once. Overlapping
            # files are sorted again for main alone. A tag's files go with the tag.
            sorts_anew = files is state.files and not for_base
            file_root, more, manifests = files.dump(
                version, self._fetch, order, self._kept, state.erased, sorts_anew=sorts_anew
            )
            sets.append((files, manifests))
            blobs.update(more)
            return pack_numbers.stored(file_root, manifests)

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
        stored_adopted = None
        if state.adopted is not None:
            stored_adopted = StoredAdopted(source=state.adopted.source, files=dumped(state.adopted.files, ()))
        bounds = {name: each for _, own in sets for name, each in own.bounds().items()}
        hint = encode_bounds(list(bounds.values()))
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
            adopted=stored_adopted,
            clones=clones,
            origins=state.origins,
            ancestors=state.ancestors,
            erased=state.erased,
            erasing=state.erasing,
            hints={} if hint is None else {BOUNDS: hint},
            packs=pack_numbers.packs(),
        )
        root = msgspec.to_builtins(stored)
        lists = [files, *(ref.files for ref in refs.values()), *(each.files for each in clones.values())]
        lists += [stored_adopted.files] if stored_adopted else []
        return _TableDump(
            root=root,
            blobs=blobs,
            uses=list(dict.fromkeys(name for each in lists for name in each.objects)),
            features=(features.PACKS,) if stored.packs else (),
            files=sets,
        )

    def stored(self, dump: StateDump) -> None:
        """Record in the file sets that their new manifests are durable, so that the next snapshot refers to
        them."""
        if isinstance(dump, _TableDump):
            for files, manifests in dump.files:
                files.stored(manifests)

    def load(self, root: Json) -> TableState:
        root_struct = state_of(root, _Root, "table", "namespace")
        tags = [ref.metadata for ref in root_struct.refs.values()]
        for metadata in (
            root_struct.metadata,
            *tags,
            *(promise.metadata for promise in root_struct.clones.values()),
        ):
            if metadata is not None:
                check_metadata(metadata)
        entries_by_list: dict[StoredList, Entries] = {}
        bounds = decode_bounds(root_struct.hints.get(BOUNDS))
        packs = PackLeaves(root_struct.packs)
        directories = packs.directories

        def loaded(files: StoredFileSet) -> FileSet:
            return FileSet.load(packs.root_of(files), entries_by_list, bounds, directories, self._kept)

        return TableState(
            metadata=root_struct.metadata,
            files=loaded(root_struct.files),
            link=root_struct.link,
            expired=root_struct.expired,
            estimates=root_struct.estimates,
            streams=root_struct.streams,
            next_row=root_struct.next_row,
            identities=root_struct.identities,
            refs={
                name: Ref(
                    kind=ref.kind,
                    id=ref.id,
                    version=ref.version,
                    files=loaded(ref.files),
                    metadata=ref.metadata,
                    line=ref.line,
                )
                for name, ref in root_struct.refs.items()
            },
            main=root_struct.main,
            source=root_struct.source,
            adopted=None
            if root_struct.adopted is None
            else AdoptedFiles(root_struct.adopted.source, loaded(root_struct.adopted.files)),
            clones=loaded_promises(root_struct.clones, loaded),
            origins=root_struct.origins,
            ancestors=root_struct.ancestors,
            erased=root_struct.erased,
            erasing=root_struct.erasing,
        )

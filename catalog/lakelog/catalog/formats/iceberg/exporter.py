"""The export of a table: Iceberg's metadata beside lakelog's own, made from the log and the previous export.

Rule: an export is a function of the version, of the export that it continues, and of the table's place. So
all exporters agree, and the first to create `v<number>.metadata.json` has made the export. Lakelog's own
readers never read it. This module must not know names: a table is at a place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lakelog.catalog.core.files import FileSet
from lakelog.catalog.core.logs import Progress, TableHead, commits_with_sidecars, naming, no_progress
from lakelog.catalog.core.schema import ICEBERG, ICEBERG_OFF, check_exportable, obstacles
from lakelog.catalog.core.state import (
    FOREIGN_FILES,
    MAIN,
    TAG,
    IcebergCommit,
    TableProjection,
    TableState,
    iceberg_commit,
    operations_of,
)
from lakelog.catalog.formats.iceberg import metadata_json
from lakelog.catalog.formats.iceberg.leftovers import FOLDER, HINT, metadata_path, newest_number
from lakelog.catalog.formats.iceberg.manifests import ExportMismatch
from lakelog.catalog.formats.iceberg.metadata_json import LOG_ID, VERSION, Document
from lakelog.catalog.formats.iceberg.schemas import exported_specs
from lakelog.catalog.formats.iceberg.snapshots import (
    ExportedVersion,
    ExportTree,
    LineContents,
    difference,
    is_as_named,
    snapshot_id_of,
    snapshot_of,
    with_early_files_apart,
)
from lakelog.log import Commit, LogView
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, Unsupported
from lakelog.log.settling import create

LISTED = 100
"""How many snapshots an export lists, in addition to the snapshots of tags and branches."""
_AUTHOR = ("user", "engine", "client", "application", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export: the URL of its metadata, its number, its version, and how many objects it has written."""

    url: str
    number: int
    version: int
    objects: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Base:
    number: int
    data: bytes
    document: Document


def export_anew(head: TableHead) -> Exported:
    """Export as `export` does, but refer to no objects of older exports. A vacuum then deletes them all."""
    exporter = _Exporter(head, None, LISTED)
    exporter.anew = True
    while (result := exporter.attempt()) is None:
        pass
    return result[0]


def export(head: TableHead, to: str | None = None, listed: int = LISTED) -> Exported:
    """Export the version of `head`, unless this version or a newer version was exported.

    The metadata is written into `metadata/` beside the table's log, or into the folder or URL `to`. Data
    files stay in place. Makes 3 GET requests if nothing is new. Otherwise it also reads the log's new
    commits, and makes a PUT request for each new object.

    Raises Unsupported, with the reasons, for a table that readers of Iceberg would read wrongly.
    """
    return export_with_metadata(head, to, listed)[0]


def export_with_metadata(
    head: TableHead, to: str | None = None, listed: int = LISTED, progress: Progress = no_progress
) -> tuple[Exported, bytes]:
    """Export as `export` does, and return the bytes of the metadata too."""
    if ICEBERG.of(head.metadata.properties) == ICEBERG_OFF:
        raise Unsupported(
            f"the property {ICEBERG.name} of {head.name} is {ICEBERG_OFF}: set it to on-demand, or to on"
        )
    exporter = _Exporter(head, to, listed, progress)
    while (result := exporter.attempt()) is None:
        pass
    return result


def newest_metadata(head: TableHead) -> tuple[str, bytes] | None:
    """Return the URL and the bytes of the newest export beside the log of a table. None if it has no export."""
    exporter = _Exporter(head, None, LISTED)
    base = exporter.newest()
    if not exporter.is_of_this_table(base):
        return None
    return f"{exporter.location}/{metadata_path(base.number)}", base.data


class _Exporter:
    def __init__(
        self, head: TableHead, to: str | None, listed: int, progress: Progress = no_progress
    ) -> None:
        self.head = head
        self.progress = progress
        self.listed = listed
        places = head.logs.places
        place = head.tracked.location if to is None else places.location(to)
        self.location = places.url(place)
        self.store, prefix = places.open(place)
        self.prefix = f"{prefix}/" if prefix else ""
        self._hinted = 0
        self.anew = False
        self._tables: dict[int, tuple[FileSet, pa.Table]] = {}

    def attempt(self) -> tuple[Exported, bytes] | None:
        """Export once. Returns None if another exporter was first; the caller retries then."""
        base = self.newest()
        self._check_no_others(base)
        if self.is_of_this_table(base) and not self.anew:
            if int(base.document["properties"][VERSION]) >= self.head.version:
                self._hint(base.number)
                return self._exported(base, {})
            try:
                return self._export(base, base.document)
            except (ExportMismatch, NotFound, FormatError):
                pass  # objects of the older export have expired, or were altered: begin anew
        return self._export(base, None)

    def _export(self, base: _Base, continued_document: Document | None) -> tuple[Exported, bytes] | None:
        tree = ExportTree(
            location=self.head.url,
            folder=f"{self.location}/{FOLDER}",
            version=self.head.version,
            read=self._read,
        )
        document = self._document(tree, continued_document)
        if continued_document is not None and _version_of(document) == _version_of(continued_document):
            # The versions since then are transactions that were aborted.
            self._hint(base.number)
            return self._exported(base, {})
        if base.number:
            log = (
                []
                if continued_document is None
                else [*continued_document["metadata-log"], self._logged(base)]
            )
            document |= {"metadata-log": log[-self.listed :]}
        for path, data in tree.made.items():
            self.store.put(self._key(path), data)
        number = base.number + 1
        data = metadata_json.encode_signed(document)
        # Another run of the same version may have written the same bytes. Then the export is there, too.
        if not create(
            self.store, f"{self.prefix}{metadata_path(number)}", data, self.head.tracked.log.options
        ):
            return None
        self._hint(number)
        objects = {**tree.made, "": data}
        return self._exported(_Base(number, data, document), objects)

    def _exported(self, base: _Base, new_data: dict[str, bytes]) -> tuple[Exported, bytes]:
        result = Exported(
            url=f"{self.location}/{metadata_path(base.number)}",
            number=base.number,
            version=int(base.document["properties"][VERSION]),
            objects=len(new_data),
            size_bytes=sum(map(len, new_data.values())),
        )
        return result, base.data

    def _logged(self, base: _Base) -> Document:
        return {
            "timestamp-ms": base.document["last-updated-ms"],
            "metadata-file": f"{self.location}/{metadata_path(base.number)}",
        }

    # Earlier exports

    def newest(self) -> _Base:
        """Return the newest export: the hint's export, or a later export.

        Makes 3 GET requests, and a LIST request too if the hint is wrong.
        """
        number = self._hinted = self._read_hint()
        data = self._metadata(number) if number else None
        if data is None:
            # The hint is lost or wrong. The first number need not be v1 because a vacuum deletes older
            # exports.
            self._hinted, number = 0, newest_number(self.store, self.prefix)
            data = self._metadata(number) if number else None
        while (next_data := self._metadata(number + 1)) is not None:
            number, data = number + 1, next_data
        try:
            return _Base(number, data or b"", metadata_json.decoded_document(data or b"{}"))
        except LakelogError:
            return _Base(number, b"", {})

    def _read_hint(self) -> int:
        hint = self.store.get(f"{self.prefix}{HINT}") or b"0"
        return int(hint[:18]) if hint[:18].isdigit() else 0

    def _metadata(self, number: int) -> bytes | None:
        return self.store.get(f"{self.prefix}{metadata_path(number)}")

    def is_of_this_table(self, base: _Base) -> bool:
        """Return whether an export belongs to this table, as lakelog wrote it.

        A writer of Iceberg that takes over the folder keeps the properties, and adds snapshots that no log
        has.
        """
        properties = base.document.get("properties")
        return (
            metadata_json.is_as_signed(base.document, base.data)
            and isinstance(properties, dict)
            and properties.get(LOG_ID) == self.head.id
            and base.document.get("location") == self.location
        )

    def _check_no_others(self, base: _Base) -> None:
        """Raise InvalidInput if a folder that the user gave has another table's metadata.

        The table's own folder may have the metadata of a former table at this place.
        """
        table_uuid = base.document.get("table-uuid")
        if self.location != self.head.url and table_uuid not in (
            None,
            metadata_json.table_uuid(self.head.id),
        ):
            raise InvalidInput(
                f"{self.location} has the Iceberg metadata of another table, {table_uuid}, whose readers would find "
                f"{self.head.name} instead: choose an empty folder"
            )

    def _hint(self, number: int) -> None:
        """Raise the hint to at least `number`. Other exporters may raise it further at the same time."""
        if self._hinted >= number:
            return
        stored_number = self._read_hint()
        if stored_number >= number and self._metadata(stored_number) is not None:
            return
        self.store.put(f"{self.prefix}{HINT}", str(number).encode())
        self._hinted = number
        # If another exporter wrote a higher hint between the two requests, this request has lowered it.
        if self._metadata(number + 1) is not None:
            self._hint(number + 1)

    # Contents of an export

    def _document(self, tree: ExportTree, continued_document: Document | None) -> Document:
        first = (
            self._first() if continued_document is None else int(continued_document["properties"][VERSION])
        )
        previous: _At | None = None
        if continued_document is not None:
            previous = self._at(first, self.head.tracked.view_at(first))
            if metadata_json.is_partitioned_by_others(continued_document, self.head.metadata.schema):
                raise ExportMismatch("a column was dropped that older files are partitioned by")
        document = continued_document or metadata_json.empty_document(self.location, self.head.id)
        heads: dict[str, Document] = {} if continued_document is None else _heads(continued_document)
        snapshots: list[Document] = []
        main_log: list[Document] = []
        for version_state in self._versions(first, previous):
            try:
                document, new_snapshots, new_heads = self._step(
                    tree, document, previous, version_state, heads, snapshots
                )
            except Unsupported:
                if version_state.version == self.head.version:
                    raise
                # Iceberg cannot have this version. The listed snapshots begin after it.
                document = {**document, "snapshots": [], "snapshot-log": [], "refs": {}}
                snapshots, main_log, heads, previous = [], [], {}, None
                continue
            snapshots += new_snapshots
            main = new_heads.get(MAIN)
            if main is not None and main is not heads.get(MAIN):
                time_ms = version_state.time_us // 1000
                main_log.append({"snapshot-id": main["snapshot-id"], "timestamp-ms": time_ms})
            heads = new_heads
            previous = version_state
        assert previous is not None
        refs = {
            name: {
                "snapshot-id": snapshot["snapshot-id"],
                "type": "tag" if name != MAIN and previous.state.refs[name].kind == TAG else "branch",
            }
            for name, snapshot in heads.items()
        }
        document = metadata_json.with_metadata(
            document, previous.state.current, self.head.id, previous.version, previous.time_us
        )
        return metadata_json.with_snapshots(
            document, snapshots, main_log, refs, previous.state.next_row, self.listed, previous.state.expired
        )

    def _first(self) -> int:
        """Return the first version that a first export lists."""
        return max(1, self.head.version - self.listed + 1, min(self.head.state.expired, self.head.version))

    def _versions(self, first: int, base: _At | None) -> Iterator[_At]:
        """Yield the newest `listed` versions from `first` on, or after `base` if it is given."""
        table_log = self.head.tracked
        if base is None:
            try:
                base = self._at(first, table_log.view_at(first))
            except NotFound:
                # Versions between this version and the head cannot be read one by one.
                base = self._at(self.head.version, self.head.view)
            base = replace(base, iceberg=self._fact_of(base.version))
            yield base
        state, last_version = base.state, base.version
        listed_from = self.head.version - self.listed + 1
        if base.version < self.head.version:
            for entry, blobs in commits_with_sidecars(table_log, base.version + 1, self.head.version):
                state = TableProjection().apply(state, entry, blobs)
                self.progress(f"version {entry.version:,} of {self.head.version:,} of {self.head.name}")
                if entry.version >= listed_from:
                    # A version that follows unlisted versions has their changes too, and has no single
                    # commit.
                    own = entry if last_version == entry.version - 1 else None
                    last_version = entry.version
                    yield _At(entry.version, entry.time_us, state, own, iceberg_commit(entry))

    def _at(self, version: int, view: LogView[TableState]) -> _At:
        return _At(version, view.time_us, view.state, None, IcebergCommit())

    def _fact_of(self, version: int) -> IcebergCommit:
        """Return the fact of an Iceberg client's commit of a version. It is empty if the commit has expired.

        Makes no request if no client of Iceberg ever wrote files for the table.
        """
        if FOREIGN_FILES not in self.head.view.features:
            return IcebergCommit()
        try:
            return iceberg_commit(next(self.head.tracked.log.commits(first=version, last=version), None))
        except NotFound:
            return IcebergCommit()

    def _step(
        self,
        tree: ExportTree,
        document: Document,
        before: _At | None,
        now: _At,
        heads: dict[str, Document],
        new_before: list[Document],
    ) -> tuple[Document, list[Document], dict[str, Document]]:
        """Return the document with the columns of a version, its snapshots, and the snapshot of each line.

        `made` are the snapshots of the steps before, which the document does not list.
        """
        moment = now.moment(0 if before is None else before.state.next_row)
        lines = [MAIN, *sorted(now.state.refs)]
        new_snapshots: list[Document] = []
        new_heads: dict[str, Document] = {}
        contents: dict[str, LineContents] = {}
        for number, name in enumerate(lines):
            line_state = now.state.on(name)
            if name != MAIN and any(
                obstacle.effect == "blocks" for obstacle in obstacles(line_state.current.schema)
            ):
                continue  # Iceberg could not have the table at the time of this tag
            check_exportable(line_state.current.schema, f"{self.head.name} is to be exported")
            old = None if before is None else _same_line(before.state, now.state, name)
            client_id = now.iceberg.snapshot_id if now.iceberg.line == name else None
            if name in now.iceberg.refs:
                ref_id = int(now.iceberg.refs[name])
                named_snapshots = [
                    listed_snapshot
                    for listed_snapshot in (*document["snapshots"], *new_before)
                    if listed_snapshot["snapshot-id"] == ref_id
                ]
                if named_snapshots:
                    new_heads[name] = named_snapshots[0]
                    continue
            if (
                client_id is None
                and old is not None
                and old.files is line_state.files
                and old.current == line_state.current
                and name in heads
            ):
                new_heads[name] = heads[name]
                continue
            document, schema = metadata_json.with_schema(document, line_state.current)
            line_contents = contents[name] = self._contents(line_state, schema)
            document = metadata_json.with_specs(document, line_contents.specs)
            parent, parent_contents = self._origin(
                document, name, old, heads, new_heads, contents, line_state
            )
            file_changes = difference(parent_contents, line_contents)
            is_same = file_changes.is_empty and client_id is None
            if parent is not None and is_same and self._is_as(parent, schema, name):
                new_heads[name] = parent
                continue
            if parent is None and client_id is None and not line_contents.table.num_rows:
                continue
            new_id = snapshot_id_of(moment.version, number) if client_id is None else client_id
            summary = {} if client_id is None else now.iceberg.summary
            try:
                snapshot = snapshot_of(
                    tree, moment, new_id, parent, parent_contents, line_contents, file_changes, summary
                )
            except Unsupported:
                if name == MAIN:
                    raise
                continue  # a tag or branch with files that Iceberg cannot have
            new_snapshots.append(snapshot)
            new_heads[name] = snapshot
        used_keys = {id(now.state.on(name).files) for name in lines}
        self._tables = {key: table for key, table in self._tables.items() if key in used_keys}
        return document, new_snapshots, new_heads

    def _origin(
        self,
        document: Document,
        name: str,
        old: TableState | None,
        heads: dict[str, Document],
        documents_after: dict[str, Document],
        contents: dict[str, LineContents],
        seen: TableState,
    ) -> tuple[Document | None, LineContents | None]:
        """Return the parent of a line's new snapshot, and the parent's files. A new line begins from main."""
        if old is not None and name in heads:
            _, schema = metadata_json.with_schema(document, old.current)
            return heads[name], self._contents(old, schema)
        if name != MAIN and MAIN in documents_after:
            if MAIN not in contents:
                main = seen.on(MAIN)
                contents[MAIN] = self._contents(main, metadata_json.with_schema(document, main.current)[1])
            return documents_after[MAIN], contents[MAIN]
        return None, None

    def _contents(self, state: TableState, schema: Document) -> LineContents:
        columns = self.head.metadata.schema
        all_specs = exported_specs(state.current, columns)
        table, specs = with_early_files_apart(self._table(state), all_specs, columns)
        return LineContents(table=table, metadata=state.current, schema=schema, specs=specs)

    def _is_as(self, parent: Document, schema: Document, name: str) -> bool:
        """Return whether a line needs no snapshot of its own. Main has the table's columns in any case."""
        return name == MAIN or parent["schema-id"] == schema["schema-id"]

    def _table(self, state: TableState) -> pa.Table:
        """Return the files of a line as a table. A table of the previous step is reused."""
        key = id(state.files)
        if key not in self._tables:
            with naming(self.head.tracked.log.location):
                self._tables[key] = state.files, state.files.table(self.head.tracked.log.read_blobs)
        return self._tables[key][1]

    # Objects

    def _key(self, path: str) -> str:
        return f"{self.prefix}{path.removeprefix(self.location + '/')}"

    def _read(self, path: str) -> bytes:
        data = self.store.get(self._key(path)) if path.startswith(f"{self.location}/{FOLDER}/") else None
        if data is None:
            raise ExportMismatch(f"{path} is missing")
        if not is_as_named(path, data):
            raise ExportMismatch(f"{path} was altered")
        return data


@dataclass(frozen=True, slots=True)
class _At:
    version: int
    time_us: int
    state: TableState
    commit: Commit | None
    iceberg: IcebergCommit

    def moment(self, first_row: int) -> ExportedVersion:
        commit = self.commit
        operations = [] if commit is None else operations_of(commit)
        return ExportedVersion(
            version=self.version,
            time_ms=self.time_us // 1000,
            operation=", ".join(operations),
            author={} if commit is None else {k: v for k in _AUTHOR if (v := commit.writer.get(k))},
            first_row=first_row,
            next_row=self.state.next_row,
        )


def _version_of(document: Document) -> str:
    return str(document["properties"][VERSION])


def _same_line(state_before: TableState, current_state: TableState, name: str) -> TableState | None:
    """Return the previous state of a line, if it is the same line."""
    if name == MAIN:
        return state_before
    old = state_before.refs.get(name)
    return state_before.on(name) if old is not None and old.id == current_state.refs[name].id else None


def _heads(document: Document) -> dict[str, Document]:
    snapshots_by_id = {snapshot["snapshot-id"]: snapshot for snapshot in document["snapshots"]}
    try:
        return {name: snapshots_by_id[ref["snapshot-id"]] for name, ref in document["refs"].items()}
    except (KeyError, TypeError) as error:
        raise ExportMismatch("the exported metadata has a tag or branch without a snapshot") from error

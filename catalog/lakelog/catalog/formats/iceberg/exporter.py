"""The export of a table: Iceberg's metadata beside lakelog's own, made from the log and from the export before.

Rule: what an export writes is a function of the version, of the export that it continues, and of the table's place. So
any number of exporters agree, and the first one to create `v<number>.metadata.json` has made it. No reader of lakelog's
own reads anything of it. It must not know names: a table is at a place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.core.files import FileSet
from lakelog.catalog.core.logs import Progress, TableHead, commits_with_sidecars, naming, no_progress
from lakelog.catalog.core.schema import ICEBERG, ICEBERG_OFF, check_exportable, obstacles, value_of
from lakelog.catalog.core.state import MAIN, TAG, TableProjection, TableState, operations_of
from lakelog.catalog.formats.iceberg import metadata_json
from lakelog.catalog.formats.iceberg.leftovers import FOLDER, HINT, metadata_path, newest_number
from lakelog.catalog.formats.iceberg.manifests import Misfit
from lakelog.catalog.formats.iceberg.metadata_json import LOG_ID, VERSION, Document
from lakelog.catalog.formats.iceberg.schemas import exported_specs
from lakelog.catalog.formats.iceberg.snapshots import (
    Contents,
    Moment,
    Tree,
    difference,
    is_as_named,
    snapshot_of,
    with_early_files_apart,
)
from lakelog.log import Commit, View
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, Unsupported
from lakelog.log.settling import create

LISTED = 100
"""How many snapshots an export lists, beside those of tags and branches."""
_AUTHOR = ("user", "engine", "client", "application", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export: the URL of its metadata, its number, the version that it has, and how many objects it has put."""

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
    """Export as `export` does, but nothing of an older export is named any more: a vacuum then deletes all of these."""
    exporter = _Exporter(head, None, LISTED)
    exporter.anew = True
    while (done := exporter.attempt()) is None:
        pass
    return done[0]


def export(head: TableHead, to: str | None = None, listed: int = LISTED) -> Exported:
    """Export the version that `head` is of, unless that or a newer one was exported.

    The metadata comes into `metadata/` beside the table's log, or in the folder or URL `to`; data files stay where they
    are. Costs 3 GETs where nothing is new; else also what the log has since, and a PUT for each new object.

    Unsupported, with the reasons, for a table that readers of Iceberg would read wrongly.
    """
    return export_with_metadata(head, to, listed)[0]


def export_with_metadata(
    head: TableHead, to: str | None = None, listed: int = LISTED, progress: Progress = no_progress
) -> tuple[Exported, bytes]:
    """Export as `export` does, and return the bytes of the metadata too."""
    if value_of(head.metadata.properties, ICEBERG) == ICEBERG_OFF:
        raise Unsupported(
            f"the property {ICEBERG.name} of {head.name} is {ICEBERG_OFF}: set it to on-demand, or to on"
        )
    exporter = _Exporter(head, to, listed, progress)
    while (done := exporter.attempt()) is None:
        pass
    return done


def newest_metadata(head: TableHead) -> tuple[str, bytes] | None:
    """Return the URL and the bytes of the newest export beside the log of a table; None where it has no export."""
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
        """Export once; None where another exporter was first, and this is to be tried again."""
        base = self.newest()
        self._check_no_others(base)
        if self.is_of_this_table(base) and not self.anew:
            if int(base.document["properties"][VERSION]) >= self.head.version:
                self._hint(base.number)
                return self._exported(base, {})
            try:
                return self._export(base, base.document)
            except (Misfit, NotFound, FormatError):
                pass  # what the older export stands on has expired, or was altered: begin anew
        return self._export(base, None)

    def _export(self, base: _Base, continued: Document | None) -> tuple[Exported, bytes] | None:
        tree = Tree(
            location=self.head.url,
            folder=f"{self.location}/{FOLDER}",
            version=self.head.version,
            read=self._read,
        )
        document = self._document(tree, continued)
        if base.number:
            log = [] if continued is None else [*continued["metadata-log"], self._logged(base)]
            document |= {"metadata-log": log[-self.listed :]}
        for path, data in tree.made.items():
            self.store.put(self._key(path), data)
        number = base.number + 1
        data = metadata_json.encode_signed(document)
        # Of another run, which has the same version, it may be byte for byte the same: then that is exported.
        if not create(
            self.store, f"{self.prefix}{metadata_path(number)}", data, self.head.tracked.log.options
        ):
            return None
        self._hint(number)
        made = {**tree.made, "": data}
        return self._exported(_Base(number, data, document), made)

    def _exported(self, base: _Base, made: dict[str, bytes]) -> tuple[Exported, bytes]:
        done = Exported(
            url=f"{self.location}/{metadata_path(base.number)}",
            number=base.number,
            version=int(base.document["properties"][VERSION]),
            objects=len(made),
            size_bytes=sum(map(len, made.values())),
        )
        return done, base.data

    def _logged(self, base: _Base) -> Document:
        return {
            "timestamp-ms": base.document["last-updated-ms"],
            "metadata-file": f"{self.location}/{metadata_path(base.number)}",
        }

    # What was exported before

    def newest(self) -> _Base:
        """Return the newest export: the hint's, or one after it. Costs 3 GETs; a LIST too where the hint is wrong."""
        number = self._hinted = self._read_hint()
        data = self._metadata(number) if number else None
        if data is None:
            # The hint is lost or wrong. What it was of need not be v1: a vacuum deletes older exports.
            self._hinted, number = 0, newest_number(self.store, self.prefix)
            data = self._metadata(number) if number else None
        while (after := self._metadata(number + 1)) is not None:
            number, data = number + 1, after
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
        """Return whether an export is of this table, as lakelog wrote it.

        A writer of Iceberg that takes the folder for its own keeps the properties, and adds snapshots that no log has.
        """
        properties = base.document.get("properties")
        return (
            metadata_json.is_as_signed(base.document, base.data)
            and isinstance(properties, dict)
            and properties.get(LOG_ID) == self.head.id
            and base.document.get("location") == self.location
        )

    def _check_no_others(self, base: _Base) -> None:
        """Raise InvalidInput where a folder that was asked for has another table's metadata. The table's own may have
        that of a table which was at its place before."""
        other = base.document.get("table-uuid")
        if self.location != self.head.url and other not in (None, metadata_json.table_uuid(self.head.id)):
            raise InvalidInput(
                f"{self.location} has the Iceberg metadata of another table, {other}, whose readers would find "
                f"{self.head.name} instead: choose an empty folder"
            )

    def _hint(self, number: int) -> None:
        """Let the hint be at least `number`: other exporters may have gone on meanwhile."""
        if self._hinted >= number:
            return
        there = self._read_hint()
        if there >= number and self._metadata(there) is not None:
            return
        self.store.put(f"{self.prefix}{HINT}", str(number).encode())
        self._hinted = number
        # Where another exporter has written a higher one between the two requests, it is lower again.
        if self._metadata(number + 1) is not None:
            self._hint(number + 1)

    # What is exported

    def _document(self, tree: Tree, continued: Document | None) -> Document:
        first = self._first() if continued is None else int(continued["properties"][VERSION])
        before: _At | None = None
        if continued is not None:
            before = self._at(first, self.head.tracked.view_at(first))
            if metadata_json.is_partitioned_by_others(continued, self.head.metadata.schema):
                raise Misfit("a column was dropped that older files are partitioned by")
        document = continued or metadata_json.empty_document(self.location, self.head.id)
        heads: dict[str, Document] = {} if continued is None else _heads(continued)
        snapshots: list[Document] = []
        for now in self._versions(first, before):
            try:
                document, made, heads = self._step(tree, document, before, now, heads)
            except Unsupported:
                if now.version == self.head.version:
                    raise
                # A version that Iceberg cannot have: what is listed begins after it.
                document = {**document, "snapshots": [], "snapshot-log": [], "refs": {}}
                snapshots, heads, before = [], {}, None
                continue
            snapshots += made
            before = now
        assert before is not None
        refs = {
            name: {
                "snapshot-id": snapshot["snapshot-id"],
                "type": "tag" if name != MAIN and before.state.refs[name].kind == TAG else "branch",
            }
            for name, snapshot in heads.items()
        }
        document = metadata_json.with_metadata(
            document, before.state.current, self.head.id, before.version, before.time_us
        )
        return metadata_json.with_snapshots(
            document, snapshots, refs, before.state.next_row, self.listed, before.state.expired
        )

    def _first(self) -> int:
        """Return the first version that a first export lists."""
        return max(1, self.head.version - self.listed + 1, min(self.head.state.expired, self.head.version))

    def _versions(self, first: int, before: _At | None) -> Iterator[_At]:
        """Yield the versions from `first` on, or those after it where it is `before`: the newest `listed`."""
        tracked = self.head.tracked
        if before is None:
            try:
                before = self._at(first, tracked.view_at(first))
            except NotFound:
                # Nothing between this and the head can be read one by one.
                before = self._at(self.head.version, self.head.view)
            yield before
        state, yielded = before.state, before.version
        listed_from = self.head.version - self.listed + 1
        if before.version < self.head.version:
            for entry, blobs in commits_with_sidecars(tracked, before.version + 1, self.head.version):
                state = TableProjection().apply(state, entry, blobs)
                self.progress(f"version {entry.version:,} of {self.head.version:,} of {self.head.name}")
                if entry.version >= listed_from:
                    # One that follows others which are not listed has their changes too, and is of no one commit.
                    own = entry if yielded == entry.version - 1 else None
                    yielded = entry.version
                    yield _At(entry.version, entry.time_us, state, own)

    def _at(self, version: int, view: View[TableState]) -> _At:
        return _At(version, view.time_us, view.state, None)

    def _step(
        self, tree: Tree, document: Document, before: _At | None, now: _At, heads: dict[str, Document]
    ) -> tuple[Document, list[Document], dict[str, Document]]:
        """Return the document with the columns of one version, its snapshots, and the snapshot of each line."""
        moment = now.moment(0 if before is None else before.state.next_row)
        lines = [MAIN, *sorted(now.state.refs)]
        made: list[Document] = []
        after: dict[str, Document] = {}
        contents: dict[str, Contents] = {}
        for number, name in enumerate(lines):
            seen = now.state.on(name)
            if name != MAIN and any(each.effect == "blocks" for each in obstacles(seen.current.schema)):
                continue  # a tag of a time when Iceberg could not have the table
            check_exportable(seen.current.schema, f"{self.head.name} is to be exported")
            old = None if before is None else _same_line(before.state, now.state, name)
            if old is not None and old.files is seen.files and old.current == seen.current and name in heads:
                after[name] = heads[name]
                continue
            document, schema = metadata_json.with_schema(document, seen.current)
            here = contents[name] = self._contents(seen, schema)
            document = metadata_json.with_specs(document, here.specs)
            parent, was = self._origin(document, name, old, heads, after, contents, seen)
            changed = difference(was, here)
            if parent is not None and changed.is_empty and self._is_as(parent, schema, name):
                after[name] = parent
                continue
            if parent is None and not here.table.num_rows:
                continue
            try:
                snapshot = snapshot_of(tree, moment, number, parent, was, here, changed)
            except Unsupported:
                if name == MAIN:
                    raise
                continue  # a tag or branch with files that Iceberg cannot have
            made.append(snapshot)
            after[name] = snapshot
        wanted = {id(now.state.on(name).files) for name in lines}
        self._tables = {key: known for key, known in self._tables.items() if key in wanted}
        return document, made, after

    def _origin(
        self,
        document: Document,
        name: str,
        old: TableState | None,
        heads: dict[str, Document],
        after: dict[str, Document],
        contents: dict[str, Contents],
        seen: TableState,
    ) -> tuple[Document | None, Contents | None]:
        """Return the snapshot that a line's new one follows, and the files of that: its own; main's for a new line."""
        if old is not None and name in heads:
            _, schema = metadata_json.with_schema(document, old.current)
            return heads[name], self._contents(old, schema)
        if name != MAIN and MAIN in after:
            if MAIN not in contents:
                main = seen.on(MAIN)
                contents[MAIN] = self._contents(main, metadata_json.with_schema(document, main.current)[1])
            return after[MAIN], contents[MAIN]
        return None, None

    def _contents(self, state: TableState, schema: Document) -> Contents:
        columns = self.head.metadata.schema
        exported = exported_specs(state.current, columns)
        table, specs = with_early_files_apart(self._table(state), exported, columns)
        return Contents(table=table, metadata=state.current, schema=schema, specs=specs)

    def _is_as(self, parent: Document, schema: Document, name: str) -> bool:
        """Return whether a line needs no snapshot of its own: main has the table's columns in any case."""
        return name == MAIN or parent["schema-id"] == schema["schema-id"]

    def _table(self, state: TableState) -> pa.Table:
        """Return the files of a line, as one table; what the step before has made is made once."""
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
            raise Misfit(f"{path} is missing")
        if not is_as_named(path, data):
            raise Misfit(f"{path} was altered")
        return data


@dataclass(frozen=True, slots=True)
class _At:
    version: int
    time_us: int
    state: TableState
    commit: Commit | None

    def moment(self, first_row: int) -> Moment:
        commit = self.commit
        operations = [] if commit is None else operations_of(commit)
        return Moment(
            version=self.version,
            time_ms=self.time_us // 1000,
            operation=", ".join(operations),
            author={} if commit is None else {k: v for k in _AUTHOR if (v := commit.writer.get(k))},
            first_row=first_row,
            next_row=self.state.next_row,
        )


def _same_line(before: TableState, now: TableState, name: str) -> TableState | None:
    """Return a line as it was before, where it is the same one."""
    if name == MAIN:
        return before
    old = before.refs.get(name)
    return before.on(name) if old is not None and old.id == now.refs[name].id else None


def _heads(document: Document) -> dict[str, Document]:
    known = {each["snapshot-id"]: each for each in document["snapshots"]}
    try:
        return {name: known[ref["snapshot-id"]] for name, ref in document["refs"].items()}
    except (KeyError, TypeError) as error:
        raise Misfit("the exported metadata has a tag or branch without a snapshot") from error

"""Makes the golden warehouse of a table that was imported, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.imports_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from pyroaring import BitMap
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, ColumnStats, engine
from lakelog.catalog.core.files import inline_deletes
from lakelog.catalog.core.files.data_file import RemovedFile
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.schema import (
    AtomicType,
    Field,
    PartitionField,
    PartitionSpec,
    Schema,
    Transform,
)
from lakelog.catalog.core.schema.types import TypedValue
from lakelog.catalog.core.state import AdoptedDeleted, FilesAdopted, RefDropped, TableEvent, encode
from lakelog.catalog.engine import DataFile
from lakelog.catalog.formats.imports.catching_up import catch_up
from lakelog.catalog.formats.imports.claims import FolderWatch
from lakelog.catalog.formats.imports.first_import import ImportRequest, create_table
from lakelog.catalog.formats.imports.source import SourceVersion
from lakelog.log import Draft

SCHEMA = Schema(
    fields=(
        Field(id=1, name="id", type=AtomicType("long"), nullable=False),
        Field(id=2, name="day", type=AtomicType("date")),
    ),
    last_id=2,
)
SPEC = PartitionSpec(
    id=0,
    fields=(
        PartitionField(
            id=1000, source_id=2, name="day", transform=Transform("identity"), result=AtomicType("date")
        ),
    ),
)


def file(name: str, first: int, *deleted: int) -> DataFile:
    """Return a file of ten rows, the ids of which begin with `first`."""
    return DataFile(
        path=f"/lake/source/data/day=2026-01-01/{name}.parquet",
        size_bytes=1_000,
        rows=10 - len(deleted),
        spec_id=0,
        partition={1000: 20454},
        stats={1: ColumnStats(nulls=0, min=first, max=first + 9)},
        footer_crc=first,
        names={1: "id"},
        constants={2: TypedValue(type="date", value=20454)},
        deletes=inline_deletes(BitMap(deleted)) if deleted else None,
        first_row=first,
    )


@dataclass
class Source:
    format: str = "iceberg"
    notes: tuple[str, ...] = ()
    url: str = "/lake/source"
    metadata: str | None = "/lake/source/metadata"
    identity: str = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    properties: Mapping[str, str] = field(default_factory=lambda: {"comment": "from elsewhere"})
    now: SourceVersion = field(
        default_factory=lambda: SourceVersion(
            id="3051729675574597004",
            time_us=1_767_225_600_000_000,
            operation="append",
            schema=SCHEMA,
            spec=SPEC,
            specs=(SPEC,),
            added=(file("a", 0), file("b", 10)),
        )
    )

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        yield self.now
        changed_file = file("a", 0, 3)
        self.now = replace(
            self.now,
            id="3055729675574597004",
            time_us=1_767_229_200_000_000,
            operation="delete",
            added=(changed_file,),
            removed=(changed_file.path,),
        )
        yield self.now

    def live(self, known: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        return replace(
            self.now,
            id="3059729675574597004",
            operation=None,
            added=(file("a", 0, 3, 4), file("c", 20)),
            removed=(),
        )


def create(catalog: Catalog, source: Source, name: str) -> TableHead:
    tree = catalog._tree
    watch = FolderWatch(tree.logs.places.open_url, source.url)
    return create_table(
        ImportRequest(
            tree=tree,
            source=source,
            watch=watch,
            identifier=(name,),
            versions=100,
            progress=lambda text: None,
        )
    )


def fill(catalog: Catalog) -> None:
    source = Source()
    create(catalog, source, "t")
    table = catalog.load_table("t")
    write = engine.begin_write(table)
    own = DataFile(
        path=f"data/{write.version:020d}-{write.id}-0.parquet", size_bytes=9, rows=1, partition={1000: None}
    )
    table = engine.commit_write(table, write, "append", (own,))
    head = catch_up(table.table_head, source, source.live({}, None))
    # A file of which rows were deleted here goes, and is not to come back.
    path = next(path for path in head.all_files()["path"].to_pylist() if path.endswith("/c.parquet"))
    table = table.refresh()
    deletes = [{"path": path, "positions": b64encode(BitMap([2]).serialize()).decode()}]
    head = engine.commit_rows(table, engine.begin_write(table), "delete", deletes=deletes).table_head
    later = replace(source.now, id="3061729675574597004", added=(file("a", 0, 3, 4),), removed=())
    head = catch_up(head, source, later)
    head.tracked.log.snapshot(head.view)
    adopted(catalog)


def adopted(catalog: Catalog) -> None:
    """Make a table whose source is gone, and whose files it has adopted and deleted in part."""
    head = create(catalog, Source(), "a")
    source = head.state.source
    assert source is not None
    paths = sorted(head.all_files()["path"].to_pylist())
    files = tuple(RemovedFile(path=path, rows=0, size_bytes=1_000) for path in paths)
    view = head.view
    steps: list[list[TableEvent]] = [
        [FilesAdopted(source=source, files=files), RefDropped(name="imported", kind="tag")],
        [AdoptedDeleted(files=files[:1])],
    ]
    for events in steps:
        draft = Draft(events=encode(events))
        view = head.tracked.commit(view, partial(_only, draft)).view
    head.tracked.log.snapshot(view)


def _only(draft: Draft, view: object, passed: object) -> Draft:
    return draft


if __name__ == "__main__":
    write_objects(build(fill))

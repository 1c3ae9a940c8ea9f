"""The format of imports: what a release wrote is read for ever, and today's code writes the same bytes."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.imports_v1 import fill
from tests.format.catalog.warehouse_v1 import build, released

from lakelog.catalog import Catalog

GOLDEN = Path(__file__).parent / "imports_v1"


def test_today_writes_what_the_release_wrote() -> None:
    golden = released(GOLDEN)
    assert build(fill) == golden


def test_the_source_of_every_version_is_read() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")
    snapshots = {}
    for version in range(1, 7):
        source = table.at(version=version).table_head.view.state.source
        assert source is not None
        snapshots[version] = source.snapshot
        assert (source.ref is None) == (version == 1)
    assert list(snapshots.values()) == [
        "3051729675574597004",
        *["3055729675574597004"] * 2,
        *["3059729675574597004"] * 2,
        "3061729675574597004",
    ]
    state = table.table_head.view.state
    assert state.refs["imported"].id == (state.source and state.source.ref)
    assert state.source is not None and state.source.gone == {
        "/lake/source/data/day=2026-01-01/c.parquet": 20
    }
    assert [entry.operation for entry in table.history()] == [
        "import, create tag",
        "delete",
        "import, create tag",
        "append",
        "import, create tag",
        "create, import",
    ]


def test_adopted_files_are_read_from_a_snapshot_as_from_the_log() -> None:
    table = Catalog(str(GOLDEN)).load_table("a")
    state, tracked_log = table.table_head.view.state, table.table_head.tracked
    assert state.source is None and state.adopted is not None and not state.refs
    assert state.adopted.files.table(tracked_log.log.read_blobs)["path"].to_pylist() == [
        "/lake/source/data/day=2026-01-01/b.parquet"
    ]
    assert [entry.operation for entry in table.history()][:2] == [
        "delete adopted files",
        "adopt files, drop tag",
    ]

"""The format of tags and branches that are of lines which are gone: written and read as the release did."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.refs_v2 import fill
from tests.format.catalog.warehouse_v1 import check_says_the_same

from lakelog.catalog import Catalog
from lakelog.log.checks.findings import Severity

GOLDEN = Path(__file__).parent / "refs_v2"


def test_today_writes_what_the_release_wrote() -> None:
    check_says_the_same(GOLDEN, fill)


def test_lines_know_what_they_are_of() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")
    lines = {name: ref.line for name, ref in table.refs.items()}
    ids = {name: ref.id for name, ref in table.refs.items()}
    assert {name: line.origin for name, line in lines.items() if name.startswith("of_")} == {
        "of_main": "main",
        "of_none": None,
    }
    main = table.table_head.view.state.main
    assert main is not None
    assert main.contains == {ids["w"]: 0}
    assert {name: table.at(ref=name).row_count for name in ("main", "w", "y", "z")} == {
        "main": 11 + 14,
        "w": 11,
        "y": 11 + 12,
        "z": 11 + 12,
    }
    assert {finding.kind for finding in Catalog(str(GOLDEN)).fsck().of(Severity.DAMAGE)} == {
        "data-file-missing"
    }

"""The format of tags and branches: what a release wrote is read for ever, and today's code writes the same."""

from __future__ import annotations

from pathlib import Path

from tests.format.catalog.refs_v1 import fill
from tests.format.catalog.warehouse_v1 import check_says_the_same

from lakelog.catalog import Catalog
from lakelog.log.checks.findings import Severity

GOLDEN = Path(__file__).parent / "refs_v1"


def test_today_writes_what_the_release_wrote() -> None:
    check_says_the_same(GOLDEN, fill)


def test_the_lines_of_every_version_are_read() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")
    versions = {}
    for version in range(1, table.version + 1):
        past_table = table.at(version=version)
        versions[version] = {
            name: past_table.at(ref=name).row_count for name in ("main", *sorted(past_table.refs))
        }
    assert versions == {
        1: {"main": 0},
        2: {"main": 20},
        3: {"main": 20, "b": 20},
        4: {"main": 20, "b": 20, "first": 20},
        5: {"main": 20, "b": 18, "first": 20},
        6: {"main": 20, "b": 31, "first": 20},
        7: {"main": 20, "b": 31, "first": 20},
        8: {"main": 20, "b": 31, "first": 20, "second": 20},
        9: {"main": 31, "b": 31, "first": 20, "second": 20},
        10: {"main": 45, "b": 31, "first": 20, "second": 20},
        11: {"main": 45, "b": 31, "first": 20, "old": 20, "second": 20},
        12: {"main": 45, "b": 31, "old": 20, "second": 20},
        13: {"main": 61, "b": 31, "loaded": 61, "old": 35, "second": 20},
        14: {"main": 61, "b": 61, "loaded": 61, "old": 35, "second": 20},
    }


def test_tags_have_the_columns_of_their_time() -> None:
    table = Catalog(str(GOLDEN)).load_table("t")
    assert [field.name for field in table.at(version=8, ref="first").schema.fields] == ["id", "name"]
    assert [field.name for field in table.at(ref="second").schema.fields] == ["id", "called"]
    assert [field.name for field in table.at(ref="old").schema.fields] == ["id", "called"]


def test_a_snapshot_says_what_the_log_does() -> None:
    # There are no data files here.
    kinds = {finding.kind for finding in Catalog(str(GOLDEN)).fsck().of(Severity.DAMAGE)}
    assert kinds == {"data-file-missing"}
    state = Catalog(str(GOLDEN)).load_table("t").table_head.view.state
    assert state.next_row == 20 + 13 + 14 + 15 + 16
    assert {name: (ref.kind, ref.version) for name, ref in state.refs.items()} == {
        "b": ("branch", 13),
        "loaded": ("tag", 13),
        "old": ("branch", 2),
        "second": ("tag", 7),
    }

"""Changes and the lanes that they are drawn in, from an audit's entries."""

from __future__ import annotations

from typing import Any

from tests.unit.catalog.pictures.pictures import change, picture

from lakelog.catalog.looking.audit import AuditEntry
from lakelog.catalog.looking.pictures.graph import graph_lines
from lakelog.catalog.looking.pictures.model import ChangePicture, LanePicture, RefPicture
from lakelog.catalog.looking.pictures.timeline import LOG_COLUMNS, timeline_of, with_aborted
from lakelog.catalog.times import moment_of


def entry(version: int, operation: str, *, log: str = "/t", **said: Any) -> AuditEntry:
    return AuditEntry(
        what="commit",
        committed_at=moment_of(version),
        kind="table",
        name=("shop", log.strip("/")),
        dropped=False,
        location=log,
        version=version,
        operations=tuple(operation.split(", ")),
        base=said.pop("base", version - 1),
        **said,
    )


def drawn(*oldest_first: AuditEntry, of_table: bool = True) -> Any:
    places: dict[str, int] = {}
    return timeline_of(
        oldest_first[::-1],
        lambda each: places.setdefault(each.location, len(places)),
        lambda each: (None, None),
        of_table=of_table,
    )


def test_a_branch_has_a_lane_from_its_first_change_to_its_drop() -> None:
    picture = drawn(
        entry(1, "create"),
        entry(2, "create branch", details={"name": "b", "kind": "branch", "version": 1}),
        entry(3, "append", details={"branch": "b", "added_rows": 2}),
        entry(4, "append", details={"added_rows": 1}),
        entry(5, "fast-forward", details={"branch": "main", "to": "b"}),
        entry(6, "drop branch", details={"name": "b", "kind": "branch"}),
        entry(7, "create branch", details={"name": "c", "kind": "branch"}),
    )
    assert picture.lanes == [
        LanePicture(name="main", kind="main", column=0),
        LanePicture(name="b", kind="branch", column=1, of=0, of_version=1, begun=2, ended=6),
        LanePicture(name="c", kind="branch", column=1, of=0, begun=7),
    ]
    assert [change.lane for change in picture.changes] == [2, 1, 0, 0, 1, 1, 0]
    assert [change.joins for change in picture.changes if change.version == 5] == [1]


def test_a_branch_from_before_the_picture_has_a_lane_without_a_beginning() -> None:
    picture = drawn(entry(8, "append", details={"branch": "old"}))
    assert (
        picture.lanes[1] == LanePicture(name="old", kind="branch", column=1) and picture.changes[0].lane == 1
    )


def test_a_change_says_its_base_only_where_it_was_rebased_and_whose_it_was() -> None:
    who = {"user": "ada", "engine": "spark"}
    picture = drawn(
        entry(5, "append", details={"added_rows": 3, "added_bytes": 10}, **who),
        entry(6, "append", base=3, details={"added_rows": 4, "added_bytes": 1}, **who),
        entry(7, "append", user="joan"),
    )
    assert [change.base for change in picture.changes] == [None, 3, None]
    assert [
        (writer.user, writer.changes, writer.added_rows, writer.added_bytes) for writer in picture.writers
    ] == [
        ("joan", 1, 0, 0),
        ("ada", 2, 7, 11),
    ]


def test_versions_that_no_change_has_are_what_aborted_transactions_left() -> None:
    pictures = with_aborted(
        [change(9), change(8), change(5), ChangePicture(kind="damage", version=3), change(1)]
    )
    assert [(picture.kind, picture.version, picture.first_version) for picture in pictures] == [
        ("commit", 9, None),
        ("commit", 8, None),
        ("aborted", 7, 6),
        ("commit", 5, None),
        ("damage", 3, None),
        ("commit", 1, None),
    ]
    assert len(with_aborted([change(2), change(2), change(1)])) == 3  # two that share a version


def test_counts_of_a_faulty_client_are_none() -> None:
    picture = drawn(
        entry(
            1,
            "append",
            details={"added_rows": "many", "added_files": [1], "removed_rows": -(10**9), "branch": ["b"]},
        )
    )
    change = picture.changes[0]
    assert change.added_rows == change.added_files == change.removed_rows == 0


def test_the_busiest_logs_have_columns_of_their_own() -> None:
    entries = [
        entry(version, "append", log=f"/{log}")
        for log in range(LOG_COLUMNS + 5)
        for version in range(1, log + 2)
    ]
    picture = drawn(*entries, of_table=False)
    assert len(picture.lanes) == LOG_COLUMNS + 1 and picture.lanes[-1].kind == "others"
    assert picture.lanes[0].name == f"shop.{LOG_COLUMNS + 4}"
    assert {change.lane for change in picture.changes} == set(range(LOG_COLUMNS + 1))


def test_the_graph_draws_lanes_joints_and_names() -> None:
    found_picture = drawn(
        entry(1, "create"),
        entry(2, "create branch", details={"name": "b", "kind": "branch"}),
        entry(3, "append", details={"branch": "b"}),
        entry(4, "append", transaction="x"),
        entry(5, "fast-forward", details={"branch": "main", "to": "b"}),
        entry(6, "append", base=4),
    )
    shown_picture = picture(
        found_picture.changes,
        lanes=tuple(found_picture.lanes),
        refs=(
            RefPicture(name="main", kind="branch", version=6),
            RefPicture(name="b", kind="branch", version=2),
            RefPicture(name="v", kind="tag", version=1),
        ),
    )
    assert [(line, picture.version, names) for line, picture, names in graph_lines(shown_picture)] == [
        ("◆ │", 6, "main"),
        ("● ╯", 5, ""),
        ("■ │", 4, ""),
        ("│ ●", 3, "b"),
        ("╰ ●", 2, ""),
        ("●  ", 1, "tag v"),
    ]


def test_a_graph_of_many_lanes_stays_narrow() -> None:
    lanes = (
        LanePicture(name="main", kind="main", column=0),
        *(LanePicture(name=f"b{at}", kind="branch", column=at) for at in range(1, 50)),
    )
    lines = list(graph_lines(picture([change(1, lane=49)], lanes=lanes)))
    assert len(lines[0][0]) < 30 and lines[0][0].endswith("●")

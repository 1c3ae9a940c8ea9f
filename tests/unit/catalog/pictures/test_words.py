"""One line for each commit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog.core.schema.arrow_types import schema_from_arrow
from lakelog.catalog.core.state.history import HistoryEntry
from lakelog.catalog.looking.pictures import words
from lakelog.catalog.names import quoted_where_needed
from lakelog.catalog.times import moment_of


def entry(operation: str, *, version: int = 5, base: int = 4, **details: Any) -> HistoryEntry:
    return HistoryEntry(
        version=version,
        committed_at=moment_of(0),
        operation=operation,
        details=details,
        writer={},
        commit_id="c",
        write_id=None,
        base=base,
    )


def test_an_append_shows_rows_and_files() -> None:
    assert words.what(entry("append", added_files=1, added_rows=1234)) == "append: +1,234 rows in 1 file"


def test_an_overwrite_shows_both_sides_and_its_condition() -> None:
    text = words.what(
        entry("overwrite", added_files=2, added_rows=5, removed_files=1, removed_rows=3, filter="(a = 1)")
    )
    assert text == "overwrite: +5 rows in 2 files, −3 rows in 1 file, where (a = 1)"


def test_rows_that_are_marked_as_deleted_are_counted() -> None:
    text = words.what(entry("delete", changed_files=2, deleted_rows=3, filter="id < ?"))
    assert text == "delete: 3 rows deleted in 2 files, where id < ?"


def test_a_rebased_commit_says_what_it_was_prepared_on() -> None:
    assert words.what(entry("append", base=2, added_files=1, added_rows=1)).endswith(
        "(prepared on 2, rebased)"
    )


def test_an_import_shows_what_its_source_calls_the_version() -> None:
    source: dict[str, Any] = {"source_url": "/lake/t", "source_snapshot": "77"}
    assert words.what(entry("import", source_time_us=1_767_225_600_000_000, **source)) == (
        "import: version 77 of 2026-01-01 00:00:00 UTC of /lake/t"
    )
    assert words.what(entry("import", source_time_us=None, **source)) == "import: version 77 of /lake/t"


def test_a_link_names_what_was_linked() -> None:
    assert words.what(entry("link", kind="table", name="t")) == "link: table t"
    assert words.what(entry("rename", name="t", new_name="u")) == "rename: t to u"


def test_a_change_of_the_schema_names_the_columns_by_what_became_of_them() -> None:
    schema_before = schema_from_arrow(pa.schema({"a": pa.int32(), "b": pa.string()}))
    fields = (
        schema_before.fields[0],
        type(schema_before.fields[1])(id=2, name="c", physical="b_2", type=schema_before.fields[1].type),
    )
    renamed_schema = type(schema_before)(fields=fields, last_id=2)
    assert (
        words.what(entry("change schema"), schema_before, renamed_schema) == "change schema: renamed b to c"
    )
    shorter = type(schema_before)(fields=schema_before.fields[:1], last_id=2)
    assert words.what(entry("change schema"), schema_before, shorter) == "change schema: dropped b"
    assert words.what(entry("change schema"), shorter, schema_before) == "change schema: added b"


def test_properties_are_shown_with_their_values() -> None:
    assert (
        words.what(entry("set properties", set={"a": "1"}, removed=["b"]))
        == "set properties: set a=1, removed b"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (("--older-than=0s",), "`--older-than=0s`"),
        (("-", "t"), "`-`.t"),
        (("shop", "-o"), "shop.-o"),
        (("shop", "a.b", ""), "shop.`a.b`.``"),
    ],
)
def test_no_name_is_an_option_of_a_command(name: tuple[str, ...], shown: str) -> None:
    assert quoted_where_needed(name) == shown


def test_rows_that_share_a_file_are_shown_with_their_authors() -> None:
    assert words.what_was_done("append", {"added_rows": 2}) == "append: +2 rows"
    shared = {"added_files": 1, "added_bytes": 9, "of_changes": 3}
    assert words.what_was_done("append", shared) == "append: 1 file with the rows of 3 changes"


@pytest.mark.parametrize("wrong", [5, 1.5, True, "x", [1], [[1]], {"a": 1}, [{"a": 1}], None, 10**30])
@pytest.mark.parametrize(
    "name", ["changes", "id", "name", "columns", "set", "removed", "source_snapshot", "source_time_us"]
)
def test_details_of_a_faulty_client_are_shown(name: str, wrong: Any) -> None:
    details = {"source_snapshot": "1", "source_url": "u", name: wrong}
    assert words.what_was_done("append", details).startswith("append")


def test_what_a_faulty_client_wrote_in_place_of_a_number_is_shown_as_it_is() -> None:
    assert (
        words.what_was_done("append", {"added_files": "many", "added_rows": [1]})
        == "append: +[1] rows in many files"
    )


def test_an_update_and_a_merge_say_what_became_of_rows_in_place_of_files_alone() -> None:
    copied = {"added_files": 1, "added_rows": 10, "removed_files": 1, "removed_rows": 9}
    assert words.what(entry("merge", inserted_rows=2, updated_rows=3, **copied)) == (
        "merge: 2 rows inserted, 3 rows updated, 1 row deleted, 5 rows copied, +10 rows in 1 file, −9 rows in 1 file"
    )
    marked = {"added_files": 1, "added_rows": 1, "changed_files": 1, "deleted_rows": 1}
    assert words.what(entry("take identity values, update", updated_rows=1, **marked)) == (
        "take identity values, update: 1 row updated, +1 row in 1 file, 1 row deleted in 1 file"
    )


def test_numbers_of_rows_that_are_not_known_are_said_to_be_unknown() -> None:
    copied = {"added_files": 1, "added_rows": 10, "removed_files": 1, "removed_rows": 10}
    assert words.what(entry("update", **copied)).startswith("update: an unknown number of rows updated, +10")
    assert words.what(entry("merge", **copied)).startswith(
        "merge: how many rows were changed is not known, +10"
    )


def test_a_delete_by_copying_says_how_many_rows_are_gone() -> None:
    copied = {"added_files": 1, "added_rows": 7, "removed_files": 1, "removed_rows": 10}
    assert words.what(entry("delete", **copied)).startswith("delete: 3 rows deleted, 7 rows copied, +7 rows")

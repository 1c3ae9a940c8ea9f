"""`lakelog expire` and `lakelog vacuum`: without `--apply` they only report."""

from __future__ import annotations

import io
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console
from tests.integration.printing import printed_by

from lakelog.catalog import Catalog, Table, engine
from lakelog.cli import progress
from lakelog.log import wait_for_background

SCHEMA = pa.schema([pa.field("id", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", SCHEMA).append(rows(1)).append(rows(2))
    table.overwrite(rows(3))
    catalog.create_table("shop.old", SCHEMA).append(rows(9))
    catalog.drop_table("shop.old")
    return catalog


@pytest.fixture
def lakelog(catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> Any:
    return printed_by(catalog, capsys, silent=True)


def objects(catalog: Catalog) -> dict[str, bytes]:
    wait_for_background()
    root = Path(catalog.warehouse)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_compact_rewrites_small_files_and_says_how_many(catalog: Catalog, lakelog: Any) -> None:
    assert lakelog("compact", "shop.orders") == "No file needs to be rewritten.\n"
    table = catalog.load_table("shop.orders").append(rows(4)).append(rows(5))
    assert lakelog("compact", "shop.orders", "--where", "id = 99") == "No file needs to be rewritten.\n"
    assert lakelog("compact", "shop.orders") == f"3 files became 1 file, in version {table.version + 1}.\n"
    assert sorted(table.refresh().to_arrow()["id"].to_pylist()) == [3, 4, 5]
    assert json.loads(lakelog("compact", "shop.orders", "--json")) == {
        "version": table.version + 1,
        "added_files": 0,
        "removed_files": 0,
    }


def test_compact_counts_its_own_rewrites_alone(
    catalog: Catalog, lakelog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.load_table("shop.orders").append(rows(4)).append(rows(5))
    real = Table.compact

    def after_another(self: Table, *args: Any, **options: Any) -> Table:
        with ThreadPoolExecutor() as another:
            theirs = another.submit(lambda: real(table).append(rows(6)).append(rows(7))).result()
        return real(theirs, *args, **options)

    monkeypatch.setattr(Table, "compact", after_another)
    assert lakelog("compact", "shop.orders") == f"3 files became 1 file, in version {table.version + 4}.\n"


def test_expire_reports_what_would_go_and_does_it_with_apply(catalog: Catalog, lakelog: Any) -> None:
    objects_before = objects(catalog)
    text = lakelog("expire", "shop.orders", "--retain-last", "1")
    assert "Would expire 3 versions of 1 log" in text and "2 data files" in text
    assert "Nothing was changed. To do it: lakelog expire --apply shop.orders --retain-last 1" in text
    assert objects(catalog) == objects_before
    done = lakelog("expire", "shop.orders", "--retain-last", "1", "--apply")
    assert "Expired 3 versions of 1 log" in done and "Nothing was changed" not in done
    assert "No version is old enough by --before-version." in lakelog(
        "expire", "shop.orders", "--before-version", "2"
    )
    text = lakelog("expire", "shop.orders")
    assert "none was replaced more than 7 days ago" in text and "--retain-last" in text
    table = catalog.load_table("shop.orders")
    assert table.to_arrow() == rows(3) and next(table.history(limit=1)).operation == "expire"


def test_vacuum_reports_what_would_go_and_does_it_with_apply(catalog: Catalog, lakelog: Any) -> None:
    lakelog("expire", "--retain-last", "1", "--apply")
    objects_before = objects(catalog)
    text = lakelog("vacuum", "shop", "--older-than", "0s", "--dropped-older-than", "0s", "--keys")
    assert "Would delete 3 data files and" in text and "dropped table" in text
    named_texts = [line.strip() for line in text.splitlines() if line.strip() in objects_before]
    assert len([key for key in named_texts if "/data/" in key]) == 3 and objects(catalog) == objects_before
    output = lakelog("vacuum", "--older-than", "0s", "--dropped-older-than", "0s", "--apply")
    assert "Deleted 3 data files" in output
    assert {key for key in objects_before if "/data/" in key} - objects(catalog).keys() == {
        key for key in named_texts if "/data/" in key
    }
    assert "There is nothing unreachable." in lakelog("vacuum")
    assert catalog.load_table("shop.orders").to_arrow() == rows(3)


def test_files_of_writes_that_may_be_under_way_stay_and_the_age_is_named(
    catalog: Catalog, lakelog: Any
) -> None:
    table = catalog.load_table("shop.orders")
    write = engine.begin_write(table)
    data = Path(table.location) / "data"
    (data / f"{write.version:020d}-{write.id}-00000.parquet").write_bytes(b"half")
    text = " ".join(lakelog("vacuum", "shop.orders").split())
    assert "1 file of writes that may be under way stay: these began less than 3d ago (--older-than)" in text
    text = " ".join(lakelog("vacuum", "shop.orders", "--older-than", "12h").split())
    assert "began less than 12h ago (--older-than)" in text


def test_programs_get_json(catalog: Catalog, lakelog: Any) -> None:
    answer = json.loads(lakelog("expire", "shop.orders", "--retain-last", "2", "--json"))
    assert answer["dry_run"] is True
    assert [(log["name"], log["first"], log["versions"]) for log in answer["logs"]] == [("shop.orders", 3, 2)]
    done = json.loads(lakelog("vacuum", "--dropped-older-than", "0s", "--apply", "--json"))
    assert done["dry_run"] is False
    assert [place["files"] for place in done["places"] if place["kind"] == "dropped-table"] == [1]


def test_a_table_can_be_named_by_its_place(catalog: Catalog, lakelog: Any) -> None:
    place = catalog.load_table("shop.orders").location
    assert "3 versions of 1 log" in lakelog("expire", place, "--retain-last", "1")
    assert "nothing unreachable" in lakelog("vacuum", place)


def test_leftovers_of_dead_writers_on_a_folder_go(catalog: Catalog, lakelog: Any) -> None:
    place = Path(catalog.load_table("shop.orders").location)
    torn = [place / part / ".lakelog-tmp-abc" for part in ("data", "_log")]
    for path in torn:
        path.write_bytes(b"torn")
    assert "Would delete 0 data files and 2 other objects, 8 B" in lakelog("vacuum", "shop.orders")
    lakelog("vacuum", "shop.orders", "--apply")
    assert not any(path.exists() for path in torn)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("expire", "--older-than", "soon"), 2, "'soon' is not an age: write 90s"),
        (("vacuum", "--older-than", "-3d"), 2, "is not an age"),
        (("expire", "shop.orders", "--before-version", "99"), 1, "no version 99"),
        (("expire", "shop.orders", "--before-version", "-1"), 2, "-1 is not in the range x>=1"),
        (("expire", "shop.orders", "--retain-last", "0"), 2, "0 is not in the range x>=1"),
        (
            ("expire", "shop.orders", "--before-version", "2", "--retain-last", "2"),
            2,
            "--before-version and --retain-last exclude each other: give one of them",
        ),
        (
            ("expire", "--older-than", "1d", "--retain-last", "2"),
            2,
            "--older-than and --retain-last exclude",
        ),
        (("expire", "shop", "--before-version", "2"), 1, "a version belongs to a single table"),
        (("vacuum", "nowhere"), 1, "nowhere"),
        (("vacuum", "/nowhere/at/all"), 1, "no table at /nowhere/at/all"),
    ],
)
def test_what_cannot_be_meant_is_one_line_on_stderr(
    lakelog: Any, arguments: tuple[str, ...], code: int, message: str
) -> None:
    text = lakelog(*arguments, code=code)
    assert message in text and text.count("\n") == 1


def test_what_is_left_alone_is_named_and_the_exit_code_says_so(catalog: Catalog, lakelog: Any) -> None:
    catalog.create_table("shop.broken", SCHEMA).append(rows(1))
    broken_path = Path(catalog.load_table("shop.broken").location)
    for commit in broken_path.glob("_log/*.json"):
        commit.write_bytes(b"nonsense")
    for command in ("expire", "vacuum"):
        assert re.search(r"lakelog: `shop`.`broken` was skipped: .*altered", lakelog(command, code=1))


def test_long_work_says_on_stderr_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    current_numbers = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: current_numbers[0])
    say = progress.Progress()
    say("first")
    current_numbers[0] += 3
    say("second")
    say("third")
    assert capsys.readouterr().err == "lakelog: second\n"


def test_long_work_shows_a_bar_on_a_terminal_and_obeys_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", -1.0)
    output = io.StringIO()
    with progress.Progress(Console(file=output, force_terminal=True, width=120)) as say:
        say("2 of 1,000: t")
        say("3 of 1,000: [red]t\x1b[31m")
    assert "3 of 1,000: [red]t\\x1b[31m" in output.getvalue() and "━" in output.getvalue()
    assert output.getvalue().endswith("\x1b[2K"), "the bar is removed"
    short = io.StringIO()
    monkeypatch.setattr(progress, "EVERY_S", 60.0)
    with progress.Progress(Console(file=short, force_terminal=True)) as say:
        say("1 of 2")
    assert short.getvalue() == ""


def test_whatever_takes_long_says_how_far_it_is(catalog: Catalog, tmp_path: Path) -> None:
    texts: list[str] = []
    table = catalog.load_table("shop.orders").append(rows(4)).append(rows(5))
    table.to_arrow(progress=texts.append)
    assert texts[-1] == "3 rows were read"
    table = table.compact(progress=texts.append)
    assert texts[-1].startswith("rewriting 3 files of `shop`.`orders`, ")
    table.export_iceberg(progress=texts.append)
    assert texts[-1] == f"version {table.version} of {table.version} of `shop`.`orders`"
    for id in range(70):
        table = table.append(rows(id))
    catalog.picture("shop.orders", versions=70, progress=texts.append)
    assert texts[-1] == "64 changes were read, of at most 70"

"""What a notebook shows of a table: facts, rows and changes, without a user's HTML, and never an error."""

from __future__ import annotations

import uuid
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests import s3_servers

from lakelog.catalog import Catalog, CommitConflict, Observation, PermissionDenied, StorageError, Table
from lakelog.catalog.looking.notebooks import tables
from lakelog.log import wait_for_background

HOSTILE = "<img src=x onerror=alert(1)>'\"&"
TAGS = {"div", "style", "b", "table", "tr", "th", "td", "p", "pre", "span"}


class Shown(HTMLParser):
    """The tags and texts of a display."""

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.html = shown._repr_html_()
        self.feed(self.html)
        assert self.tags <= TAGS and len(self.html) < 60_000

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"class", "style"}
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def has(self, *texts: str) -> bool:
        return all(any(text in shown_text for shown_text in self.texts) for text in texts)


def make(catalog: Catalog, schema: pa.Schema, **options: Any) -> Table:
    catalog.create_namespace("lab", if_not_exists=True)
    return catalog.create_table(f"lab.t{uuid.uuid4().hex[:8]}", schema, **options)


def test_facts_columns_properties_rows_and_changes(catalog: Catalog) -> None:
    table = make(catalog, pa.schema({"id": pa.int64()}), comment="people", properties={"team": "blue"})
    for start in range(0, 70, 10):
        table = table.append(pa.table({"id": list(range(start, start + 10))}))
    shown = Shown(table)
    assert shown.has("version", "8", "committed at", "+00:00", "people", "team", "blue", "5 of 70 rows")
    assert shown.html.count("append: +10 rows in 1 file") == 5 and not shown.has("create: ")
    past = Shown(table.at(version=2))
    assert past.has("5 of 10 rows", "create: 1 column") and past.html.count("append") == 1
    assert repr(table) == f"<Table {table.name} version 8>"
    for name in ("_repr_mimebundle_", "_repr_pretty_", "_ipython_display_"):  # so IPython's text is the repr
        assert not hasattr(table, name) and not hasattr(catalog, name)


def test_hostile_names_values_and_errors_stay_text(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema({HOSTILE: pa.string(), "s": pa.struct({HOSTILE: pa.string()})})
    table = make(catalog, schema, comment=HOSTILE, properties={HOSTILE: HOSTILE, "password": "hunter2"})
    table = table.append(pa.table({HOSTILE: [HOSTILE], "s": [{HOSTILE: "\x1b[31m"}]}, schema=schema))
    shown = Shown(table)
    assert shown.texts.count(HOSTILE) >= 4 and shown.has(f"{{{HOSTILE}: \\x1b[31m}}", "***")
    assert "hunter2" not in shown.html

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionDenied(f"no right {HOSTILE} password=hunter2\n", location="x")

    monkeypatch.setattr(tables, "read_files", refused)
    shown = Shown(table)
    assert shown.has("rows: PermissionDenied: no right <img", "Last changes") and "hunter2" not in shown.html


def test_values_are_short_texts(catalog: Catalog) -> None:
    schema = pa.schema(
        {
            "text": pa.string(), "bytes": pa.binary(), "list": pa.list_(pa.int64()),
            "map": pa.map_(pa.string(), pa.float64()), "day": pa.date32(), "at": pa.timestamp("us", "UTC"),
            "wall": pa.timestamp("us"), "flag": pa.bool_(), "price": pa.decimal128(9, 2),
        }
    )  # fmt: skip
    late = [5_000_000, None]
    rows = pa.table(
        {
            "text": ["x" * 100_000, "NULL"],
            "bytes": [b"\xff" * 100_000, b"\x01"],
            "list": [list(range(100_000)), [None]],
            "map": [[("k", 1.5)], None],
            "day": pa.array(late, pa.int32()).cast(pa.date32()),
            "at": pa.array([400_000_000_000_000_000, 0], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "wall": pa.array([400_000_000_000_000_000, 0], pa.int64()).cast(pa.timestamp("us")),
            "flag": [True, None],
            "price": pa.array([Decimal(1), None], pa.decimal128(9, 2)),
        },
        schema=schema,
    )
    shown = Shown(make(catalog, schema).append(rows))
    assert shown.has(f"{'x' * 59}…", f"0x{'ff' * 16}… (100,000 bytes)", "0x01", "[NULL]", "{k: 1.5}")
    assert shown.has("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 99,990 more]", "15659-07-15", "true", "1.00")
    assert shown.has("14645-06-30 15:06:40", "1970-01-01 00:00:00Z", "NULL")
    assert shown.html.count('<span style="opacity:.55">NULL</span>') == 4 and "<td>NULL</td>" in shown.html


def test_a_wide_table_shows_its_first_columns(catalog: Catalog) -> None:
    names = [f"c{number}" for number in range(1_000)]
    table = make(catalog, pa.schema(dict.fromkeys(names, pa.int64())))
    shown = Shown(table.append(pa.table({name: [1] for name in names})))
    assert shown.has("1 of 1 row, the first 20 of 1,000 columns", "980 more")
    assert shown.texts.count("c19") == 2 and not shown.has("c20")


def test_deleted_rows_branches_and_tables_without_rows(catalog: Catalog) -> None:
    table = make(catalog, pa.schema({"id": pa.int64()}))
    assert Shown(table).has("No rows.", "0 in 0 files", "create: 1 column")
    table = table.append(pa.table({"id": list(range(100))})).delete("id < 90")
    shown = Shown(table)
    assert shown.has("5 of 10 rows", "90", "94") and not shown.texts.count("95")
    branch = table.create_branch("trial").at(ref="trial").append(pa.table({"id": [1000]}))
    shown = Shown(branch)
    assert shown.has("trial", "5 of 11 rows", "append: +1 row in 1 file, on the branch trial")
    assert Shown(table.refresh().delete("id >= 0")).has("No rows.")
    many = make(catalog, pa.schema({"id": pa.int64()}))
    for number in range(3):
        many = many.append(pa.table({"id": [number]}))
    assert Shown(many).has("1 of 3 rows, of a single file")


def test_a_large_file_is_not_read(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog, pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    monkeypatch.setattr(tables, "FILE_BYTES_MAX", 10)
    assert Shown(table).has("The first file is too large to be read for a display: head() reads it.")


def test_a_look_is_no_read_of_a_transaction(catalog: Catalog) -> None:
    table = make(catalog, pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    other_table = make(catalog, pa.schema({"id": pa.int64()}))
    path, other_path = table.identifier, other_table.identifier
    for looks in (False, True):
        with catalog.transaction("serializable") as tx:
            seen_table = tx.load_table(path)
            Shown(seen_table), Shown(tx)
            changed_table = tx.load_table(other_path).append(pa.table({"id": [2]}))
            assert Shown(changed_table).has("rows")
            if not looks:
                seen_table.to_arrow()
                continue
            catalog.load_table(path).append(pa.table({"id": [3]}))
    with pytest.raises(CommitConflict), catalog.transaction("serializable") as tx:
        tx.load_table(path).to_arrow()
        tx.load_table(other_path).append(pa.table({"id": [2]}))
        catalog.load_table(path).append(pa.table({"id": [3]}))
    with catalog.transaction() as tx:
        new = tx.create_table("lab.new", pa.schema({"id": pa.int64()})).append(pa.table({"id": [7]}))
        shown = Shown(new)
        assert shown.has("1 of 1 row", "7") and not shown.has("Error")
        tx.rollback()
    assert Shown(new).has("Table `lab`.`new`")


def test_a_failing_store_never_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(tmp_path / "warehouse")
    table = make(catalog, pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    wait_for_background()
    (file,) = (tmp_path / "warehouse").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    assert Shown(table).has("rows: FormatError: ", "Last changes", "append: +1 row in 1 file")
    file.unlink()
    assert Shown(table).has("rows: NotFound: ", "Last changes")
    (tmp_path / "warehouse").rename(tmp_path / "gone")
    shown = Shown(table)
    assert shown.has("column", "id", "long", "rows: ", "changes: ") and not shown.has("Last changes")

    def down(*_: Any, **__: Any) -> None:
        raise StorageError("the store is down: retry", location="x")

    monkeypatch.setattr(tables, "read_files", down)
    assert not Shown(table).has("changes: ")  # a store that is down is asked once


@pytest.mark.s3
def test_requests_on_s3(tmp_path: Path) -> None:
    with s3_servers.running("moto", tmp_path / "objects") as (server, bucket):
        warehouse, seen_observations = f"s3://{bucket}/{uuid.uuid4().hex}", list[Observation]()
        catalog = Catalog(warehouse, options=server.options)
        table = make(catalog, pa.schema({"id": pa.int64()}))
        for start in range(0, 80, 10):
            table = table.append(pa.table({"id": list(range(start, start + 10))}))
        table.delete("id = 3")
        wait_for_background()
        cold = Catalog(warehouse, options=server.options, observe=seen_observations.append)
        loaded_table = cold.load_table(table.identifier)
        seen_observations.clear()
        assert Shown(loaded_table).has("5 of 79 rows", "Last changes")
        assert [(observation.operation, dict(observation.requests)) for observation in seen_observations] == [
            ("show", {"get": 7})
        ]
        seen_observations.clear()
        Shown(cold)
        assert [(observation.operation, dict(observation.requests)) for observation in seen_observations] == [
            ("show", {"get": 2})
        ]
        seen_observations.clear()
        Shown(Catalog(warehouse, options=server.options, observe=seen_observations.append))
        assert [(observation.operation, dict(observation.requests)) for observation in seen_observations] == [
            ("show", {"get": 6})
        ]
    shown = Shown(loaded_table)
    assert shown.has("rows: StorageError: ", "id") and not shown.has("Last changes")

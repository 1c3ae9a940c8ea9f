"""Catalogs, tables and reads that are handed to other processes, and copied."""

from __future__ import annotations

import copy
import datetime as dt
import inspect
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, Table, col
from lakelog.log.errors import InvalidInput, LakelogError, NotFound

SCHEMA = pa.schema({"id": pa.int64(), "day": pa.date32()})
DAY = dt.date(2024, 1, 1)
SECRET = "hunter2"
OPTIONS = {"fsync": "off", "endpoint": f"https://AKIAUSER:{SECRET}@storage.example:9000/?key={SECRET}"}


def ids(rows: Any) -> list[int]:
    return sorted(rows.to_arrow()["id"].to_pylist())


def seen(things: dict[str, Any]) -> dict[str, Any]:
    """What a worker sees of what it was handed."""
    catalog = things.pop("catalog")
    found_ids: dict[str, Any] = {name: ids(each) for name, each in things.items()}
    found_ids["appended"] = ids(things["table"].append(pa.table({"id": [100]})))
    return {
        **found_ids,
        "names": catalog.list_tables(),
        "writer": list(catalog.load_table("t").history(limit=1))[0].writer,
    }


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": list(numbers), "day": [DAY] * len(numbers)}, schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    writer = {"engine": "test", "password": SECRET}
    return Catalog(tmp_path / "warehouse", options=OPTIONS, writer=writer)


def handed(catalog: Catalog) -> Iterator[tuple[str, Any, list[int]]]:
    """Yield values that users hold, with the ids that they read."""
    table = catalog.create_table("t", SCHEMA).append(rows(1, 2))
    table.create_branch("b")
    branch = catalog.load_table("t", ref="b").append(rows(7))
    table.refresh().create_tag("old")
    newer = table.refresh().append(rows(3))
    catalog.save_cut("cut")
    yield "table", newer, [1, 2, 3]
    yield "old handle", table, [1, 2]
    yield "version", catalog.load_table("t", version=table.version), [1, 2]
    yield "branch", branch, [1, 2, 7]
    yield "tag", catalog.load_table("t", ref="old"), [1, 2]
    yield "place", catalog.table_at(newer.location), [1, 2, 3]
    yield "scan", newer.scan(filter=(col("id") > 1) & (col("day") == DAY), columns=["id"], limit=9), [2, 3]
    yield "row ids", newer.scan(row_ids=True, filter="id = 1"), [1]
    yield "changes", newer.changes(newer.version, updates=True), [3]
    past_catalog = Catalog(catalog._logs.warehouse, options=OPTIONS, as_of="cut")
    yield "cut", past_catalog.load_table("t"), [1, 2, 3]


def test_other_processes_read_what_they_are_handed(catalog: Catalog) -> None:
    things = {name: (value, wanted_numbers) for name, value, wanted_numbers in handed(catalog)}
    pickled_data = pickle.dumps({"catalog": catalog, **{name: value for name, (value, _) in things.items()}})
    assert SECRET.encode() not in pickled_data and b"AKIAUSER" not in pickled_data
    catalog.load_table("t").append(rows(50))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(seen_of, (pickled_data,))
    assert {name: found[name] for name in things} == {
        name: wanted_numbers for name, (_, wanted_numbers) in things.items()
    }
    assert found["appended"] == [1, 2, 3, 50, 100] and found["names"] == [("t",)]
    assert found["writer"]["engine"] == "test" and ids(catalog.load_table("t")) == [1, 2, 3, 50, 100]


def seen_of(pickled: bytes) -> dict[str, Any]:
    return seen(pickle.loads(pickled))


def test_what_is_opened_again_is_the_same_and_can_be_pickled_again(catalog: Catalog) -> None:
    for name, value, wanted_numbers in handed(catalog):
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(value))))
        assert type(again) is type(value) and ids(again) == wanted_numbers, name
        if isinstance(value, Table):
            same_texts = ("name", "version", "identifier", "ref", "is_past", "id", "location")
            assert [getattr(again, text) for text in same_texts] == [
                getattr(value, text) for text in same_texts
            ]


def test_tables_that_are_opened_again_share_their_logs(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA)
    first, second = (pickle.loads(pickle.dumps(each_table)) for each_table in (table, table.scan()))
    assert first.table_head.logs is second._head.logs is not table.table_head.logs


def test_copies_are_the_same(catalog: Catalog) -> None:
    for name, value, _ in [*handed(catalog), ("catalog", catalog, [])]:
        assert copy.copy(value) is value and copy.deepcopy([value])[0] is value, name


@pytest.mark.parametrize("what", ["transaction", "its table", "its read", "history", "merge"])
def test_what_belongs_to_a_process_is_refused(catalog: Catalog, what: str) -> None:
    table = catalog.create_table("t", SCHEMA)
    transaction = catalog.begin()
    of_process = {
        "transaction": transaction,
        "its table": transaction.load_table("t"),
        "its read": transaction.load_table("t").scan(),
        "history": table.history(),
        "merge": table.merge(rows(1), on="id"),
    }
    with pytest.raises(TypeError, match="cannot be pickled.*: (begin|commit|give)"):
        pickle.dumps(of_process[what])


@pytest.mark.parametrize("gone", ["dropped", "another", "branch"])
def test_what_is_gone_is_not_something_else(catalog: Catalog, gone: str) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    table.create_branch("b")
    pickled_data = pickle.dumps(catalog.load_table("t", ref="b" if gone == "branch" else None))
    if gone == "branch":
        table.refresh().drop_branch("b")
        table.refresh().create_branch("b")
        pickled_late = pickle.dumps(catalog.load_table("t", ref="b"))
        assert ids(pickle.loads(pickled_late)) == [1]
        # At its version the old branch was there.
        assert ids(pickle.loads(pickled_data)) == [1]
        with pytest.raises(NotFound):
            pickle.loads(pickled_data).append(rows(2))
        return
    catalog.drop_table("t")
    if gone == "another":
        catalog.create_table("t", SCHEMA)
    with pytest.raises(NotFound, match="no table"):
        pickle.loads(pickled_data)


def test_a_warehouse_in_memory_stays_in_its_process() -> None:
    catalog = Catalog("memory://pickled")
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    assert ids(pickle.loads(pickle.dumps(table))) == [1]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert "in the memory of another process" in pool.apply(failure_of, (pickle.dumps(catalog),))


def failure_of(pickled: bytes) -> str:
    try:
        pickle.loads(pickled)
    except InvalidInput as error:
        return error.message
    return ""


def kinds(cls: type[LakelogError] = LakelogError) -> Iterator[type[LakelogError]]:
    yield cls
    for each in cls.__subclasses__():
        yield from kinds(each)


@pytest.mark.parametrize("kind", sorted(set(kinds()), key=str))
@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_errors_come_back_from_other_processes(
    kind: type[LakelogError], again: Callable[[LakelogError], LakelogError]
) -> None:
    # Errors of this kind have facts that they are raised with.
    facts = {
        name: f"the {name}"
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    error = kind("it failed: try again", **facts)
    same_error = again(error)
    assert type(same_error) is kind and str(same_error) == str(error) and vars(same_error) == vars(error)

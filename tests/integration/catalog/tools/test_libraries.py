"""Tables and scans in pandas, Polars, DuckDB and others that read Arrow: the same rows, and no more work than asked."""

from __future__ import annotations

import datetime as dt
import math
import sys
import threading
import time
from decimal import Decimal
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.integration.catalog.tools.tables import INFINITY, NAN, make_table, reads

from lakelog.catalog import Catalog, InvalidInput, NotFound, Table, Unsupported
from lakelog.catalog.core.tools import ArrowRows
from lakelog.catalog.core.tools.duckdb_relation import _Dataset
from lakelog.catalog.core.tools.packages import package

IDS = [1, 2, 3, 11, 12, 13, 21, 23, None]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return make_table(catalog)


@pytest.fixture
def connection() -> Any:
    with duckdb.connect(":memory:") as found_connection:
        yield found_connection


def ids(rows: Any) -> list[int | None]:
    """Return the ids of rows in any order; of Polars, Arrow or DuckDB."""
    if isinstance(rows, duckdb.DuckDBPyRelation):
        found_rows = [row[0] for row in rows.select("id").fetchall()]
    else:
        found_rows = list(rows["id"].to_list() if isinstance(rows, pl.DataFrame) else rows["id"].to_pylist())
    return sorted(found_rows, key=lambda id: (id is None, id))


def plain(value: Any) -> Any:
    """Return a value with NaN as a text, and intervals in one form, so that it can be compared."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case pa.MonthDayNano(months=0):
            return dt.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
        case list():
            return list(map(plain, value))
        case dict():
            return {name: plain(each) for name, each in value.items()}
    return value


def handles(table: Table) -> dict[str, ArrowRows]:
    table = table.create_tag("tagged").create_branch("trial")
    trial = table.at(ref="trial").append(pa.table({"id": [31]}))
    newest = table.refresh().delete("id <= 3")
    return {
        "the newest version": newest,
        "an older version": newest.at(version=3),
        "a tag": newest.at(ref="tagged"),
        "a branch": trial,
        "a scan": newest.scan(["part", "id", "Word"], "word IS NOT NULL", row_ids=True),
        "a scan with a limit": newest.scan(["id", "real"], limit=4),
        "a scan without rows": newest.scan(filter="id = 77"),
    }


def test_every_form_has_the_rows_of_the_handle(table: Table, connection: duckdb.DuckDBPyConnection) -> None:
    for name, rows in handles(table).items():
        expected = rows.to_arrow()
        assert expected.schema == rows.arrow_schema == pa.schema(rows), name
        forms = [
            pa.table(rows),
            pa.Table.from_batches(rows.to_batches(), rows.arrow_schema),
            rows.to_polars().collect().to_arrow(),
            pl.DataFrame(rows).to_arrow(),
            rows.to_duckdb(connection).to_arrow_table(),
            connection.sql("FROM rows").to_arrow_table(),
        ]
        for form in forms:
            assert form.column_names == expected.column_names, name
            assert plain(form.to_pylist()) == plain(expected.to_pylist()), name
        assert rows.to_pandas().shape == (expected.num_rows, expected.num_columns)


POLARS = [
    pl.col("id") > 11, pl.col("id") == 13.0, pl.col("id") <= 12.5, pl.col("id") != 2, pl.col("id").is_in([1, None]),
    pl.col("id").is_in([1, None], nulls_equal=True), ~pl.col("id").is_in([]), pl.col("id").is_null(),
    pl.col("id") > 2**70, pl.col("id") < 2.0**63, pl.col("small") == 300, pl.col("small") >= -1.5,
    pl.col("real") > 1, pl.col("real") == 0, pl.col("real") == NAN, pl.col("real").is_nan(),
    ~pl.col("real").is_nan(), pl.col("real") < INFINITY, pl.col("real") != pl.col("single"), pl.col("single") == 0.1,
    pl.col("single") < 2.5, pl.col("single") >= 0.1, pl.col("price") == Decimal("2.750"), pl.col("price") > 2.7,
    pl.col("price") <= 3, pl.col("Word") == "ada", pl.col("Word").str.starts_with("a"),
    pl.col("Word").str.contains("%", literal=True), pl.col("Word").str.contains("a.a"),
    pl.col("Word").str.to_uppercase() == "ADA", pl.col("Word").is_between(pl.lit("a"), pl.lit("g"), closed="left"),
    pl.col("fixed") == "ab", pl.col("fixed") != "ab", pl.col("fixed") == "ab  ",
    pl.col("fixed").is_in(["ab", "abcd"]), pl.col("folded") == "A", pl.col("folded") != "A",
    pl.col("data") == b"\xff", pl.col("data") < b"\xff", pl.col("day") == dt.date(2026, 1, 11),
    pl.col("day") < dt.datetime(2026, 1, 11, 1), pl.col("moment") >= dt.datetime(2026, 1, 11, tzinfo=dt.UTC),
    pl.col("local") > dt.datetime(2026, 1, 11, 12, 11), pl.col("clock") > dt.time(12, 12), pl.col("flag"),
    ~pl.col("flag"), pl.col("flag").eq_missing(None), pl.col("lasting") > dt.timedelta(seconds=12),
    pl.col("part").struct.field("x") > 2, pl.col("part").struct.field("x").is_null(), pl.col("part").is_null(),
    pl.col("added") == 7, (pl.col("id") > 2) | (pl.col("folded") == "A"),
    (pl.col("id") > 2) & (pl.col("Word").str.len_chars() > 2), (pl.col("id") > 2).is_null(), pl.lit(True),
    pl.lit(False), pl.lit(None, dtype=pl.Boolean), (pl.col("id") % 2 == 1) & (pl.col("real") > 0.5),
]  # fmt: skip


def test_polars_finds_lazily_what_it_finds_in_memory(table: Table) -> None:
    memory, lazy = table.to_polars().collect(), table.to_polars()
    assert ids(memory) == IDS
    for condition in POLARS:
        expected = memory.filter(condition)
        rows = lazy.filter(condition).collect()
        assert rows.equals(expected), condition
        assert (
            lazy.filter(condition).head(2).select("Word").collect().equals(expected.head(2).select("Word"))
        ), condition
    later = lazy.head(4).filter(pl.col("id") > 2).collect()
    assert later.equals(memory.head(4).filter(pl.col("id") > 2))
    joined_frame = lazy.join(lazy.filter(pl.col("id") > 11), on="id").select("id")
    assert ids(joined_frame.collect()) == [12, 13, 21, 23]
    assert ids(lazy.filter(pl.col("id") > 20).collect(engine="streaming")) == [21, 23]


def test_a_limited_scan_is_limited_before_polars_filters(table: Table) -> None:
    lazy = table.scan(["id"], limit=3).to_polars()
    assert ids(lazy.filter(pl.col("id") > 1).collect()) == [2, 3]
    assert ids(lazy.filter(pl.col("id") > 1).head(1).collect()) == [2]
    assert ids(lazy.head(1).collect()) == [1]


def test_polars_and_duckdb_read_only_what_they_need(
    table: Table, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy, relation = table.to_polars(), table.to_duckdb(connection)
    with reads(monkeypatch) as noted_reads:
        lazy.filter(pl.col("id") >= 21, pl.col("fixed") != "zz").select("Word").collect()
        lazy.head(2).select("id").collect()
        lazy.filter(pl.col("Word").str.len_chars() == 1).select("Word").collect()
        relation.filter("id >= 21 AND Word IS NOT NULL").select("real").fetchall()
        relation.select("id").fetchall()
    files = [count for count, _ in noted_reads]
    columns = [set(names) for _, names in noted_reads]
    assert files == [1, 1, 5, 1, 5]
    assert columns == [{"Word", "id", "fixed"}, {"id"}, {"Word"}, {"real", "id", "Word"}, {"id"}]


DUCKDB = [
    "id > 11", "id = 13.0", "id <= 12.5", "id <> 2", "id IN (1, 12)", "id NOT IN (1, 12)", "id IS NULL",
    "id IS DISTINCT FROM 1", "id BETWEEN 2 AND 12", "small = 1", "small::VARCHAR = '1'", "real > 1",
    "real >= 'inf'::DOUBLE", "real = 'nan'::DOUBLE", "NOT (real <= 1)", "real < 'nan'::DOUBLE", "real <> 1",
    "real = 0", "real = -0.0::DOUBLE", "real IN (0, 2.5)", "real = single", "single = 0.1", "single = 0.1::FLOAT",
    "single > 0.1::FLOAT", "single < 2.5", "real > 1 OR id = 1", "price = 2.75", "price > 2.751",
    "price > 2.7::DOUBLE", "Word = 'ada'", "Word LIKE 'a%'", "Word LIKE '%d_'", "Word ILIKE 'ADA'", "Word > 'b'",
    "Word IS NULL OR Word = ''", "fixed = 'ab'", "fixed = 'ab  '", "fixed <> 'ab'", "fixed > 'ab'", "folded = 'A'",
    "folded <> 'A'", "folded >= 'a'", "data = '\\xFF'::BLOB", "day = DATE '2026-01-11'",
    "day < TIMESTAMP '2026-01-11 01:00:00'", "moment >= TIMESTAMPTZ '2026-01-11 00:00:00Z'",
    "local > TIMESTAMP '2026-01-11 12:11:00'", "clock > TIME '12:12:00'", "flag", "NOT flag",
    "lasting > INTERVAL 12 SECOND", "part.x > 2", "part.x IS NULL", "part IS NULL", "part.y = 'ada'", "added = 7",
    "added IS NULL", "added > id",
]  # fmt: skip


def test_duckdb_finds_in_a_table_what_it_finds_in_its_own(
    table: Table, connection: duckdb.DuckDBPyConnection
) -> None:
    relation = table.to_duckdb(connection)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("CREATE TABLE own AS FROM relation")
    for condition in DUCKDB:
        query = f"SELECT id, real, Word FROM {{}} WHERE {condition} ORDER BY ALL"
        assert str(connection.sql(query.format("relation")).fetchall()) == str(
            connection.sql(query.format("own")).fetchall()
        ), condition
    twice = "SELECT a.id, b.id FROM {0} a JOIN {0} b ON a.small = b.small WHERE a.real > 1 AND b.id < 12 ORDER BY ALL"
    assert (
        connection.sql(twice.format("relation")).fetchall() == connection.sql(twice.format("own")).fetchall()
    )
    assert connection.sql("SELECT count(*) FROM relation").fetchall() == [(9,)]
    assert relation.aggregate("max(id)").fetchall() == relation.aggregate("max(id)").fetchall() == [(23,)]


def test_a_condition_of_duckdb_that_is_not_understood_is_left_to_pyarrow(table: Table) -> None:
    """Which functions DuckDB writes into conditions differs from version to version."""
    dataset = _Dataset(table.scan())
    words = dataset.scanner(["id"], pc.utf8_upper(pc.field("Word")) == "ADA").to_reader().read_all()
    assert words.to_pydict() == {"id": [1, 11]}
    parts = dataset.scanner(["id"], pc.add(pc.field("part", "x"), pc.field("id")) > 30)
    assert parts.to_reader().read_all().to_pydict() == {"id": [23]}
    listed = pc.field("id").isin([1, 13])
    guarded = pc.if_else(pc.field("id").is_valid(), listed, pa.scalar(None, pa.bool_()))
    assert ids(dataset.scanner(["id"], guarded).to_reader().read_all()) == [1, 13]
    assert ids(dataset.scanner(["id"], ~guarded).to_reader().read_all()) == [2, 3, 11, 12, 21, 23]


def test_the_default_connection_of_duckdb_is_used_where_none_is_given(table: Table) -> None:
    relation = table.scan(["id", "Word"], "id < 3").to_duckdb()
    assert relation.columns == ["id", "Word"]
    assert duckdb.sql("SELECT id FROM relation WHERE Word = 'ada'").fetchall() == [(1,)]


def test_a_variable_with_a_table_is_a_table_in_duckdb_also_twice_in_one_query(
    table: Table, connection: duckdb.DuckDBPyConnection
) -> None:
    scan = table.scan(["id", "small"], "id > 2")
    assert ids(scan.to_arrow()) == [3, 11, 12, 13, 21, 23]
    counted_text = 'SELECT count(*), max(id) FROM "table" WHERE id < 13'
    assert connection.sql(counted_text).fetchall() == [(5, 12)]
    joined_text = (
        'SELECT a.id FROM "table" a JOIN "table" b ON a.id = b.id + 10 WHERE b.small > 0 ORDER BY ALL'
    )
    assert connection.sql(joined_text).fetchall() == [(11,), (12,), (21,), (23,)]
    mixed_text = """
        SELECT id FROM scan WHERE id < 12 UNION ALL SELECT id FROM scan WHERE id = 21
        UNION ALL SELECT id FROM "table" WHERE id = 1"""
    assert sorted(connection.sql(mixed_text).fetchall()) == [(1,), (3,), (11,), (21,)]


def test_of_a_variable_duckdb_finds_what_it_finds_of_any_arrow_stream(
    table: Table, connection: duckdb.DuckDBPyConnection
) -> None:
    """Some versions let pyarrow filter those, for which NaN is not larger than a number: docs/python.md says so."""

    class Stream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return table.to_arrow().__arrow_c_stream__(requested_schema)

    stream = Stream()
    query = "SELECT id FROM {} WHERE real > 1 ORDER BY ALL"
    rows = connection.sql(query.format('"table"')).fetchall()
    assert rows == connection.sql(query.format("stream")).fetchall() != [], stream
    assert table.to_duckdb(connection).filter("real > 1").order("id").select("id").fetchall() == [
        (2,), (13,), (23,), (None,),
    ]  # fmt: skip


def test_a_stream_requests_nothing_before_its_first_batch_and_ends_early(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reads(monkeypatch) as noted_reads:
        reader = pa.RecordBatchReader.from_stream(table)
        assert reader.schema == table.arrow_schema
        assert noted_reads == []
        assert reader.read_next_batch().num_rows == 3
        assert len(noted_reads) == 1
        del reader
        batches = table.to_batches()
        assert next(batches).num_rows == 3
        batches.close()  # type: ignore[attr-defined]


def test_a_stream_has_the_schema_that_is_requested(table: Table) -> None:
    wanted_schema = pa.schema({"id": pa.int32(), "real": pa.float64()})
    reader = pa.RecordBatchReader.from_stream(table.scan(["id", "real"]), schema=wanted_schema)
    assert reader.read_all().schema == wanted_schema
    with pytest.raises((pa.ArrowException, ValueError)):
        pa.RecordBatchReader.from_stream(table.scan(["id"]), schema=pa.schema({"other": pa.int32()}))


def test_a_table_can_be_appended_to_another(table: Table, catalog: Catalog) -> None:
    copied_table = catalog.create_table("lab.copied", table.arrow_schema).append(table.scan(filter="id > 11"))
    assert ids(copied_table.to_arrow()) == [12, 13, 21, 23]


def test_an_error_while_reading_reaches_the_user_of_each_library(
    table: Table, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise NotFound("the data file x is gone")

    lazy, relation = table.to_polars(), table.to_duckdb(connection)
    monkeypatch.setattr("lakelog.catalog.scan.read_files", gone)
    with pytest.raises(Exception, match="the data file x is gone"):
        lazy.collect()
    with pytest.raises(Exception, match="the data file x is gone"):
        relation.fetchall()
    with pytest.raises(Exception, match="the data file x is gone"):
        pa.table(table)
    with pytest.raises(NotFound, match="the data file x is gone"):
        table.to_pandas()


def test_a_version_whose_files_were_vacuumed_is_said_to_have_expired(table: Table) -> None:
    lazy, relation, older = table.to_polars(), table.to_duckdb(), table.at(version=3)
    store, prefix = table.table_head.tracked.store, table.table_head.tracked.prefix
    store.delete([f"{prefix}/{path}" for path in table.plan()["path"].to_pylist()])
    why = "does not exist.*where that version has expired, load the table again"
    for read in (
        older.to_arrow,
        older.to_pandas,
        lambda: table.upsert(pa.table({"id": [1], "day": [dt.date(2026, 1, 1)]}), on="id"),
        lambda: table.update({"Word": "upper(Word)"}, "id = 1"),
        lambda: table.update({"Word": None}, "id = 1"),
    ):
        with pytest.raises(NotFound, match=why):
            read()
    for taken in (lazy.collect, relation.fetchall, lambda: pa.table(table)):
        with pytest.raises(Exception, match=why):
            taken()


def test_reading_that_is_given_up_ends_its_threads(table: Table) -> None:
    def reading() -> set[str]:
        return {thread.name for thread in threading.enumerate() if thread.name.startswith("lakelog-read")}

    texts_before = reading()
    batches, reader, stream = table.to_batches(), table.to_reader(), pa.RecordBatchReader.from_stream(table)
    assert [next(batches).num_rows, reader.read_next_batch().num_rows, stream.read_next_batch().num_rows]
    assert reading() - texts_before
    del batches, reader, stream
    waited_until = time.monotonic() + 60
    while reading() - texts_before:
        assert time.monotonic() < waited_until, "threads go on reading"
        time.sleep(0.01)


def test_pandas_keeps_all_digits_of_integers_with_nulls(catalog: Catalog) -> None:
    catalog.create_namespace("lab")
    data = pa.table({"n": pa.array([2**53 + 1, None]), "m": [1, 2], "s": pa.array([1, None], pa.int16())})
    table = catalog.create_table("lab.t", data.schema).append(data)
    frame = table.to_pandas()
    assert frame["n"].tolist() == [2**53 + 1, pd.NA]
    assert frame["s"].dtype == "Int16"
    kept_frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert pa.types.is_int64(kept_frame["m"].dtype.pyarrow_dtype)
    assert table.scan(["m"]).to_pandas()["m"].dtype == np.dtype("int64")


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb", "torch"])
def test_a_missing_package_is_named_with_what_installs_it(
    table: Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    install = f"pip install '?{name}" + ("$" if name == "torch" else "<[0-9],>=[0-9.]+'$")
    with pytest.raises(Unsupported, match=f"to_{name} needs the package {name}, .*: {install}"):
        getattr(table, f"to_{name}")()


def test_a_package_that_is_broken_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> ModuleType:
        raise ModuleNotFoundError("no module named numpy", name="numpy")

    monkeypatch.setattr("lakelog.catalog.core.tools.packages.importlib.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="numpy"):
        package("torch", "to_torch", "torch")


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for PyTorch: what of it is called, by its documentation. That tensors are right, it cannot show."""
    module, utils, data = ModuleType("torch"), ModuleType("torch.utils"), ModuleType("torch.utils.data")
    data.IterableDataset = object  # type: ignore[attr-defined]
    data.get_worker_info = lambda: None  # type: ignore[attr-defined]
    module.from_numpy = lambda values: ("tensor", values)  # type: ignore[attr-defined]
    for each_module in (module, utils, data):
        monkeypatch.setitem(sys.modules, each_module.__name__, each_module)
    return data


def test_torch_gets_batches_of_arrays_of_one_size(table: Table, torch: Any) -> None:
    dataset = table.scan(["id", "real", "flag"], "id IS NOT NULL AND flag IS NOT NULL").to_torch(batch_size=2)
    for _ in range(2):
        batches = list(dataset)
        assert [batch["id"][1].tolist() for batch in batches] == [[1, 2], [3, 11], [13, 21], [23]]
        assert {batch["real"][1].dtype for batch in batches} == {np.dtype("float64")}
        assert {batch["flag"][1].dtype for batch in batches} == {np.dtype("bool")}
        assert all(batch["id"][1].flags.writeable for batch in batches)


def test_torch_refuses_what_no_tensor_can_hold(table: Table, torch: Any) -> None:
    with pytest.raises(InvalidInput, match="the column Word is string"):
        table.scan(["id", "Word"]).to_torch()
    with pytest.raises(InvalidInput, match='the column id has NULLs.*filter="id IS NOT NULL"'):
        list(table.scan(["id"]).to_torch())
    assert np.isnan(list(table.scan(["real"], "id = 12").to_torch())[0]["real"][1]).tolist() == [True]
    with pytest.raises(InvalidInput, match="a batch of 0 rows"):
        table.scan(["id"]).to_torch(0)
    torch.get_worker_info = lambda: object()
    with pytest.raises(Unsupported, match="num_workers=0"):
        list(table.scan(["small"]).to_torch())

"""The first rows of an order are in the files that are kept, whatever is passed over."""

from __future__ import annotations

import uuid

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.catalog.test_aggregates import ROWS, SCHEMA, VALUES, without_some
from tests.property.examples import examples

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.parquet.reading import read_files
from lakelog.catalog.core.planning.top_rows import TopRows

COLUMNS = sorted(VALUES.keys() - {"deep"})


def first(rows, name, ascending, nulls_first, limit):
    """The values of the first rows, by Spark's order: NaN above all, the two zeros equal."""
    values = rows[name].to_pylist()
    known = sorted(
        (v for v in values if v is not None),
        key=lambda v: (v != v, v if v == v else 0),
        reverse=not ascending,
    )
    nulls = [None] * values.count(None)
    return list(map(str, [*nulls, *known] if nulls_first else [*known, *nulls]))[:limit]


@settings(max_examples=examples(60, full=500))
@given(
    parts=st.lists(ROWS, min_size=1, max_size=5),
    name=st.sampled_from(COLUMNS),
    ascending=st.booleans(),
    nulls_first=st.booleans(),
    limit=st.integers(1, 12),
    by=st.sampled_from([None, "k", "n"]),
    gone=st.sets(st.integers(0, 7), max_size=3),
)
def test_the_first_rows_are_in_the_files_that_are_kept(parts, name, ascending, nulls_first, limit, by, gone):
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    table = catalog.create_table("t", SCHEMA, partition_by=[] if by is None else [by])
    for rows in parts:
        table = table.append(pa.Table.from_pylist(rows, SCHEMA))
    table = without_some(table, gone)
    top = TopRows(name, ascending=ascending, nulls_first=nulls_first, limit=limit)
    kept_rows = set(engine.plan(table, top=top)["path"].to_pylist())
    assert kept_rows <= set(table.plan()["path"].to_pylist())
    _, batches = read_files(
        table.table_head.tracked.store,
        table.table_head.tracked.prefix,
        engine.plan(table, top=top),
        table.schema,
        table.specs,
    )
    held_batches = pa.Table.from_batches(batches, SCHEMA)
    assert first(held_batches, name, ascending, nulls_first, limit) == first(
        table.to_arrow(), name, ascending, nulls_first, limit
    )


def test_files_beyond_the_first_rows_are_passed_over():
    table = Catalog(f"memory://{uuid.uuid4()}").create_table("t", pa.schema({"id": pa.int64()}))
    for part in range(5):
        table = table.append(pa.table({"id": list(range(part * 10, part * 10 + 10))}))
    for is_ascending in (True, False):
        for limit, files in ((1, 1), (10, 1), (11, 2), (50, 5), (60, 5)):
            top = TopRows("id", ascending=is_ascending, nulls_first=is_ascending, limit=limit)
            assert engine.plan(table, top=top).num_rows == files

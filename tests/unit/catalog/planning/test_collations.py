"""What compares bytes does nothing for a column with a collation, even if its files have bounds from before."""

from __future__ import annotations

import pytest

from lakelog.catalog.core.files import measured_columns
from lakelog.catalog.core.files.data_file import ColumnStats, DataFile, files_to_arrow
from lakelog.catalog.core.planning.aggregates import Aggregate, aggregate
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import unknown_parts
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.planning.top_rows import TopRows, may_be_first
from lakelog.catalog.core.schema import Metadata, PartitionSpec, SortOrder
from lakelog.catalog.core.schema.curve import clustering_from
from lakelog.catalog.core.schema.filters import as_predicate
from lakelog.catalog.core.schema.partitioning import sort_order_from, spec_from_transforms
from lakelog.catalog.core.schema.predicate import Predicate, col
from lakelog.catalog.core.schema.schema import Schema, assign_ids
from lakelog.catalog.core.schema.type_widening import is_widening
from lakelog.catalog.core.schema.types import AtomicType, Field, StructType
from lakelog.catalog.errors import NoSuchColumn
from lakelog.log.errors import InvalidInput


def schema(type: str) -> Schema:
    text = AtomicType(type)
    return assign_ids(
        [Field(name="a", type=text), Field(name="s", type=StructType((Field(name="x", type=text),)))]
    )


PLAIN, COLLATED = schema("string"), schema("string collate UTF8_LCASE")
FILES = [
    DataFile(
        path=f"data/{low}", size_bytes=1, rows=10, stats={1: ColumnStats(min=low, max=high, nulls=nulls)}
    )
    for low, high, nulls in (("A", "B", 0), ("a", "b", 3))
]
CONDITIONS = [
    col("a") == "C", col("a") > "x", col("a") <= "0", col("a").is_in(["C", "D"]), ~(col("a") > "0"),
    as_predicate({"op": "STARTS_WITH", "args": [{"col": ["a"]}, {"lit": "C", "type": "string"}]}),
    as_predicate({"op": "<=>", "args": [{"lit": "C"}, {"col": ["a"]}]}),
    as_predicate({"op": "=", "args": [{"col": ["a"]}, {"lit": "C", "type": "string collate UTF8_LCASE"}]}),
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_comparison_may_match_in_every_file(condition: Predicate) -> None:
    # With bounds from when the column had no collation.
    files = files_to_arrow(FILES, PLAIN, ())
    bound_condition = bind(condition, COLLATED)
    assert unknown_parts(bound_condition)
    assert may_match(files, bound_condition, ()).to_pylist() == [True, True]


def test_unknown_columns_are_still_found_out_and_nulls_still_choose() -> None:
    files = files_to_arrow(FILES, COLLATED, ())
    assert may_match(files, bind(col("a").is_null(), COLLATED), ()).to_pylist() == [False, True]
    assert not {"lo1", "hi1"} & set(files.column_names)
    with pytest.raises(NoSuchColumn):
        bind(col("b") == "x", COLLATED)


def test_no_order_and_no_bound_is_taken_from_bytes() -> None:
    files = [files_to_arrow(FILES, PLAIN, ())]
    top = TopRows(column="a", ascending=True, nulls_first=False, limit=1)
    assert [each.to_pylist() for each in may_be_first(files, top, PLAIN, ())] == [[True, False]]
    assert [each.to_pylist() for each in may_be_first(files, top, COLLATED, ())] == [[True, True]]
    metadata = Metadata(schema=COLLATED, specs=(PartitionSpec(),), sort_order=SortOrder(), properties={})
    for kind in ("min", "max"):
        assert aggregate(files, metadata, [Aggregate(kind, "a")]) is None
    aggregates = aggregate(files, metadata, [Aggregate("count", "a")])
    assert aggregates is not None and aggregates.to_pydict() == {"0": [17]}
    assert [column.id for column in measured_columns(COLLATED)] == [1]


@pytest.mark.parametrize("path", [["a"], ["s", "x"]])
def test_partitions_orders_and_clusterings_are_refused(path: list[str]) -> None:
    for field in (
        {"transform": "identity"},
        {"transform": "bucket", "args": [4]},
        {"transform": "truncate", "args": [2]},
    ):
        with pytest.raises(InvalidInput, match="collation holds equal"):
            spec_from_transforms([{**field, "column": path}], COLLATED)
    with pytest.raises(InvalidInput, match="collation holds equal"):
        sort_order_from([{"column": path}], COLLATED)
    with pytest.raises(InvalidInput, match="collation holds equal"):
        clustering_from([path], COLLATED)


def test_a_collation_may_change_in_every_direction_but_to_a_length() -> None:
    plain, one, other = map(AtomicType, ("string", "string collate UNICODE", "string collate de_CI"))
    assert all(is_widening(old, new) for old in (plain, one, other) for new in (plain, one, other))
    assert is_widening(AtomicType("varchar(3)"), one)
    assert not is_widening(one, AtomicType("varchar(3)"))
    assert not is_widening(AtomicType("binary"), one)

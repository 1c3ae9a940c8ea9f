from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from lakelog.catalog.core.files.data_file import ColumnStats, DataFile, files_to_arrow
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.planning.aggregates import decided
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.partitions import keys_of, partition_of_files
from lakelog.catalog.core.planning.pruning import match, may_match
from lakelog.catalog.core.planning.scan_plan import partition_key, plan_scan
from lakelog.catalog.core.schema.filters import as_predicate
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder, spec_from_transforms
from lakelog.catalog.core.schema.predicate import Predicate, col
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Field
from lakelog.log.errors import Unsupported

SCHEMA = assign_ids([
    Field(name="k", type=AtomicType("string")),
    Field(name="n", type=AtomicType("long")),
    Field(name="f", type=AtomicType("double")),
    Field(name="ts", type=AtomicType("timestamp")),
])  # fmt: skip
PLAIN = PartitionSpec()


def a_file(
    name: str = "x", *, spec: PartitionSpec = PLAIN, partition: Any = None, **stats: ColumnStats
) -> DataFile:
    ids = {field.name: field.id for field in SCHEMA.fields}
    return DataFile(
        path=f"data/{name}", size_bytes=1, rows=10, spec_id=spec.id, partition=partition or {},
        stats={ids[column]: stat for column, stat in stats.items()},
    )  # fmt: skip


def between(low: Any, high: Any, nulls: int | None = 0, **more: Any) -> ColumnStats:
    return ColumnStats(min=low, max=high, nulls=nulls, **more)


def judged_texts(filter: Any, *files: DataFile, specs: Any = (PLAIN,)) -> list[str]:
    """Return for each file whether all, none or some (perhaps) of its rows match."""
    table, bound_condition = files_to_arrow(files, SCHEMA, specs), bind(as_predicate(filter), SCHEMA)
    result, may = match(table, bound_condition, specs), may_match(table, bound_condition, specs).to_pylist()
    proofs = zip(result.all.to_pylist(), result.none.to_pylist(), strict=True)
    words = ["all" if every else "none" if none else "some" for every, none in proofs]
    assert may == [word != "none" for word in words]
    return words


def test_bounds_decide_both_ways() -> None:
    file = a_file(n=between(5, 9))
    assert judged_texts(col("n") > 4, file) == ["all"]
    assert judged_texts(col("n") > 9, file) == ["none"]
    assert judged_texts(col("n") >= 9, file) == ["some"]
    assert judged_texts(~(col("n") > 4), file) == ["none"]
    assert judged_texts(col("n").is_in([1, 2]), file) == ["none"]
    assert judged_texts(col("n") == 7, file, a_file(n=between(7, 7))) == ["some", "all"]


def test_a_row_whose_result_is_null_is_not_deleted() -> None:
    file = a_file(n=between(5, 9, nulls=1))
    assert judged_texts(col("n") > 4, file) == ["some"]
    assert judged_texts(~(col("n") > 9), file) == ["some"]
    assert judged_texts((col("n") > 4) | col("n").is_null(), a_file(n=between(5, 9))) == ["all"]
    assert judged_texts(col("n") == None, file) == ["none"]  # noqa: E711
    assert judged_texts(~col("n").is_in([1, None]), file) == ["none"]


def test_missing_statistics_prove_nothing() -> None:
    assert (
        judged_texts(
            col("n") > 4, a_file(), a_file(n=between(5, 9, nulls=None)), a_file(n=ColumnStats(nulls=0))
        )
        == ["some"] * 3
    )
    assert judged_texts(
        col("n").is_null(), a_file(n=ColumnStats(nulls=10)), a_file(n=ColumnStats(nulls=0))
    ) == [
        "all",
        "none",
    ]
    assert judged_texts(col("n") > 4, a_file(n=ColumnStats(nulls=10))) == ["none"]


def test_nan_is_greater_than_all_numbers_and_equals_itself() -> None:
    with_nan, without = a_file(f=between(1.0, 2.0, nans=1)), a_file(f=between(1.0, 2.0))
    assert judged_texts(col("f") > 5.0, with_nan, without) == ["some", "none"]
    assert judged_texts(col("f") < 5.0, with_nan, without) == ["some", "all"]
    assert judged_texts(col("f") == float("nan"), with_nan, without) == ["some", "none"]
    assert judged_texts(col("f") <= float("nan"), with_nan, without) == ["all", "all"]
    assert judged_texts(col("f") > 5.0, a_file(f=ColumnStats(nulls=0))) == ["some"]


def test_the_zeros_are_one() -> None:
    file = a_file(f=between(-0.0, -0.0))
    assert judged_texts(col("f") == 0.0, file) == ["all"]
    assert judged_texts(col("f").is_in([0.0]), file) == ["all"]
    assert judged_texts(col("f") < 0.0, file) == ["none"]


def test_equal_bounds_of_a_long_text_are_not_its_value() -> None:
    cut = a_file(k=between("b" * 32, "b" * 32))
    assert judged_texts(col("k") == "b" * 32, cut) == ["some"]
    assert judged_texts(col("k") == "b" * 40, cut) == ["some"]
    assert judged_texts(col("k") == "b", a_file(k=between("b", "b"))) == ["all"]


def test_text_between_two_that_start_alike_starts_alike() -> None:
    file = a_file(k=between("abc", "abz"))
    assert judged_texts(col("k").starts_with("ab"), file) == ["all"]
    assert judged_texts(col("k").starts_with("abcd"), file) == ["some"]
    assert judged_texts(col("k").starts_with("b"), file) == ["none"]
    assert judged_texts(col("k").starts_with("aa"), file) == ["none"]
    assert judged_texts(col("k").contains("q"), a_file(k=between("abc", "abc"))) == ["none"]


def test_identity_partitions_are_known_exactly() -> None:
    spec = spec_from_transforms(["k"], SCHEMA)
    files = [a_file(spec=spec, partition={1000: value}) for value in ("a", "b" * 40, None)]
    assert judged_texts(col("k") == "b" * 40, *files, specs=[spec]) == ["none", "all", "none"]
    assert judged_texts(col("k").null_safe_equals("a"), *files, specs=[spec]) == ["all", "none", "none"]
    assert judged_texts(~col("k").null_safe_equals("a"), *files, specs=[spec]) == ["none", "all", "all"]
    assert judged_texts(~(col("k") == "a"), *files, specs=[spec]) == ["none", "all", "none"]
    assert judged_texts(col("k").is_null(), *files, specs=[spec]) == ["none", "none", "all"]
    assert judged_texts(col("k").is_in(["a", None]), *files, specs=[spec]) == ["all", "none", "none"]
    assert judged_texts(col("k").ends_with("b"), *files, specs=[spec]) == ["none", "all", "none"]


def test_every_file_is_judged_by_the_spec_that_it_was_written_with() -> None:
    first = spec_from_transforms(["k"], SCHEMA)
    second = spec_from_transforms([{"transform": "day", "column": ["ts"]}], SCHEMA, existing=[first])
    files = [
        a_file(spec=first, partition={1000: "a"}), a_file(spec=second, partition={1001: 0}),
        a_file(spec=second, partition={1001: None}),
    ]  # fmt: skip
    specs = [first, second]
    assert judged_texts(col("k") == "a", *files, specs=specs) == ["all", "some", "some"]
    assert judged_texts(col("k").is_null(), *files, specs=specs) == ["none", "some", "some"]
    at_noon = dt.datetime(1970, 1, 1, 12, tzinfo=dt.UTC)
    assert judged_texts(col("ts") < at_noon, *files, specs=specs) == ["some", "some", "none"]
    assert judged_texts(col("ts") < at_noon + dt.timedelta(hours=12), *files, specs=specs) == [
        "some",
        "all",
        "none",
    ]
    assert judged_texts(col("ts") >= at_noon + dt.timedelta(hours=12), *files, specs=specs) == [
        "some",
        "none",
        "none",
    ]
    assert judged_texts(col("ts").is_null(), *files, specs=specs) == ["some", "none", "all"]


def test_buckets_rule_files_out() -> None:
    spec = spec_from_transforms([{"transform": "bucket", "args": [16], "column": ["n"]}], SCHEMA)
    files = [a_file(spec=spec, partition={1000: bucket}) for bucket in range(16)]
    assert judged_texts(col("n") == 34, *files, specs=[spec]).count("some") == 1
    assert judged_texts(col("n") > 34, *files, specs=[spec]) == ["some"] * 16
    bucket = as_predicate(
        {"op": "=", "args": [{"transform": "bucket", "args": [16, {"col": ["n"]}]}, {"lit": 3}]}
    )
    assert judged_texts(bucket, *files, specs=[spec]) == [
        "all" if number == 3 else "none" for number in range(16)
    ]


def test_an_unknown_condition_may_match_anything_and_deletes_nothing() -> None:
    files, bound_condition = (
        files_to_arrow([a_file()], SCHEMA, ()),
        bind(as_predicate({"op": "ODD", "args": []}), SCHEMA),
    )
    assert may_match(files, bound_condition, ()).to_pylist() == [True]
    with pytest.raises(Unsupported, match="ODD"):
        match(files, bound_condition, ())


def test_a_plan_has_the_columns_of_every_partition_field_even_without_files() -> None:
    spec = spec_from_transforms(["k"], SCHEMA)
    plan = plan_scan(FileSet.empty(), lambda names: [], None, [PLAIN, spec])
    assert plan.schema.names == ["path", "size", "rows", "spec", "p1000"]
    files = FileSet.empty().added([a_file(n=between(1, 2), k=between("a", "b"))], SCHEMA, [PLAIN])
    plan = plan_scan(files, lambda names: [], None, [PLAIN, spec], statistics=[2])
    assert plan.schema.names == ["path", "size", "rows", "spec", "lo2", "hi2", "nulls2", "p1000"]


def test_a_limit_stops_at_rows_that_match_for_certain() -> None:
    files = FileSet.empty().added(
        [a_file(str(number), n=between(number, number + 1)) for number in range(8)], SCHEMA, [PLAIN]
    )

    def planned_texts(filter: Any, limit: int) -> list[str]:
        bound_condition = None if filter is None else bind(filter, SCHEMA)
        paths: list[str] = plan_scan(files, lambda names: [], bound_condition, [PLAIN], limit=limit)[
            "path"
        ].to_pylist()
        return [path.removeprefix("data/") for path in paths]

    assert planned_texts(None, 11) == ["0", "1"]
    assert planned_texts(None, 0) == []
    assert planned_texts(col("n") >= 2, 10) == ["1", "2"]
    assert planned_texts(col("n") >= 2, 1000) == ["1", "2", "3", "4", "5", "6", "7"]


def test_files_are_decided_without_reading_if_that_is_exact() -> None:
    files = files_to_arrow([a_file(n=between(1, 2)), a_file("y", n=between(5, 6))], SCHEMA, [PLAIN])
    found = [decided([files], bind(col("n") > than, SCHEMA), [PLAIN]) for than in (0, 3, 5)]
    paths = [each and [path for chunk in each for path in chunk["path"].to_pylist()] for each in found]
    assert paths == [["data/x", "data/y"], ["data/y"], None]


def test_partition_keys_are_the_same_from_files_and_from_tables() -> None:
    spec = spec_from_transforms(["f", {"transform": "day", "column": ["ts"]}], SCHEMA)
    values = ({1000: "NaN", 1001: 5}, {1000: None}, {1001: -1}, {1000: 1})
    files = [a_file(spec=spec, partition=value) for value in values]
    metadata = Metadata(schema=SCHEMA, specs=(spec,), sort_order=SortOrder(), properties={})
    partitions, known = partition_of_files(files_to_arrow(files, SCHEMA, [spec]), metadata)
    assert keys_of(partitions, len(files)) == [partition_key(file, spec) for file in files]
    assert known.to_pylist() == [True] * len(files)


def test_transforms_bound_their_column_to_the_last_microsecond_character_and_number() -> None:
    schema = assign_ids([
        Field(name="ts", type=AtomicType("timestamp")), Field(name="k", type=AtomicType("string")),
        Field(name="tiny", type=AtomicType("byte")), Field(name="d", type=AtomicType("date")),
        Field(name="price", type=AtomicType("decimal(6,2)")), Field(name="n", type=AtomicType("integer")),
    ])  # fmt: skip

    def results(transform: str, column: str, value: Any, *filters: Predicate) -> list[str]:
        name, _, argument = transform.partition("[")
        args = [int(argument.rstrip("]"))] if argument else []
        spec = spec_from_transforms([{"transform": name, "args": args, "column": [column]}], schema)
        files = files_to_arrow(
            [DataFile(path="x", size_bytes=1, rows=1, partition={1000: value})], schema, [spec]
        )
        matches = [match(files, bind(filter, schema), [spec]) for filter in filters]
        return [
            "all" if match.all[0].as_py() else "none" if match.none[0].as_py() else "some"
            for match in matches
        ]

    hour, us = dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC), dt.timedelta(microseconds=1)
    last = hour + dt.timedelta(hours=1) - us
    at_its_ends = (col("ts") >= hour, col("ts") > hour, col("ts") < last, col("ts") <= last)
    assert results("hour", "ts", -1, *at_its_ends) == ["all", "some", "some", "all"]
    months = (col("d") < dt.date(2024, 3, 1), col("d") < dt.date(2024, 2, 29), col("d") < dt.date(2024, 2, 1))
    assert results("month", "d", 54 * 12 + 1, *months) == ["all", "some", "none"]
    assert results("truncate[2]", "k", "ab", col("k") == "abc", col("k") == "ab", col("k") == "a") == [
        "some",
        "some",
        "none",
    ]
    assert results("truncate[2]", "k", "a", col("k") == "a", col("k") == "ab") == ["all", "none"]
    assert results("truncate[10]", "tiny", -10, col("tiny") < 0, col("tiny") < -1, col("tiny") < -10) == [
        "all",
        "some",
        "none",
    ]
    assert results("truncate[10]", "tiny", 126, col("tiny") == -128, col("tiny") == 0) == ["some", "some"]
    # The file is older than a widening of the column from TINYINT: -128 has become 126 there.
    assert results("truncate[10]", "n", 126, col("n") == -128, col("n") == 127) == ["some", "some"]
    prices = (col("price") < Decimal("1.50"), col("price") <= Decimal("1.48"), col("price") < 1)
    assert results("truncate[50]", "price", "1.00", *prices) == ["all", "some", "none"]

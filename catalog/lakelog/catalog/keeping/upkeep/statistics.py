"""Statistics of whole columns for query planners, recomputed by Python from all live rows, in bounded memory.

Only columns count whose statistics a user has computed before (`compute_statistics`). They are recomputed
once the rows added since are a tenth of the counted rows. The counts are those of Spark's ANALYZE TABLE.
Distinct values are exact up to `EXACT_MAX`, and a HyperLogLog's estimate beyond, with an error of about 1.6
%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import VERSION, ColumnEstimates, TableEstimates
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.parquet import read_files
from lakelog.catalog.core.schema import AtomicType, Type, from_arrow, hashes_of_values, value_type
from lakelog.catalog.core.writes import alter

REFRESH_SHARE = 0.1
"""Statistics are recomputed once so large a share of the rows came later.

So each row is read for them about ten times, however large the table becomes.
"""

EXACT_MAX = 8192

BYTES_OF = {
    "boolean": 1, "byte": 1, "short": 2, "integer": 4, "long": 8, "float": 4, "double": 8, "decimal": 16,
    "string": 20, "char": 20, "varchar": 20, "binary": 100, "date": 4, "timestamp": 8, "timestamp_ntz": 8,
}  # fmt: skip
"""The types with statistics, and the length that Spark assumes for a value if nothing is known."""

_TEXTS = {"string", "char", "varchar"}
_SHORT_DECIMAL_DIGITS = 18
_BUCKET_BITS = 12
_BUCKETS = 1 << _BUCKET_BITS
_REST_BITS = 32 - _BUCKET_BITS


def old_statistics(head: TableHead) -> tuple[str, ...]:
    """Return the columns whose statistics were computed once and are out of date (see `REFRESH_SHARE`)."""
    estimates, schema = head.state.estimates, head.metadata.schema
    if estimates is None or estimates.added_since < _rows_due(estimates):
        return ()
    top = {field.id: field for field in schema.fields}
    return tuple(top[id].name for id in estimates.columns if id in top and is_counted(top[id].type))


def is_counted(type: Type) -> bool:
    """Return whether distinct values of a type are counted for the optimizer."""
    return isinstance(type, AtomicType) and type.family in BYTES_OF


def _rows_due(known_estimates: TableEstimates) -> float:
    return max(1, REFRESH_SHARE * known_estimates.rows)


def due_since(head: TableHead, files: pa.Table) -> int:
    """Return the version whose rows made the statistics out of date.

    It is found by the columns `rows` and VERSION of the live `files`, as far as these still show it.
    """
    estimates = head.state.estimates
    assert estimates is not None, "old statistics are some"
    versions = files[VERSION].fill_null(1).to_numpy()
    order = np.argsort(versions, kind="stable")
    order = order[versions[order] > estimates.version]
    if not len(order):
        return head.version
    came = np.cumsum(files["rows"].to_numpy()[order])
    at = int(np.searchsorted(came, _rows_due(estimates)))
    return int(versions[order[min(at, len(order) - 1)]])


def refreshed(
    head: TableHead, plan: pa.Table, columns: Sequence[str], check: Callable[[], None]
) -> TableHead:
    """Compute the statistics of `columns` from the live rows of `plan`, and commit them.

    `plan` has all files of the table. Returns the newest version. An error that `check` raises, before each
    batch of rows, stops it. Raises CommitConflict.
    """
    metadata, table_log = head.metadata, head.tracked
    counters = {name: _Counted(metadata.schema.find((name,)).type) for name in columns}
    _, batches = read_files(
        table_log.store,
        table_log.prefix,
        plan,
        metadata.schema,
        metadata.specs,
        columns=columns,
        open_url=table_log.log.replay.open_url,
    )
    rows = 0
    for batch in batches:
        check()
        rows += batch.num_rows
        for name, counter in counters.items():
            counter.add(batch.column(name))
    check()
    estimates = TableEstimates(
        version=head.version,
        rows=rows,
        size_bytes=head.state.files.size_bytes,
        columns={metadata.schema.find((name,)).id: counter.estimates for name, counter in counters.items()},
    )
    return alter.set_statistics(head, estimates, None)


class _Counted:
    """The facts about a column's values so far."""

    def __init__(self, type: Type) -> None:
        assert isinstance(type, AtomicType), "only such columns are counted"
        self._type, self._distinct = type, DistinctCounter()
        self._values = self._nulls = self._bytes = 0
        self._most: int | None = None
        self._bounds: tuple[Any, Any] | None = None

    def add(self, column: pa.Array) -> None:
        self._nulls += column.null_count
        values = column.drop_null()
        if not len(values):
            return
        self._values += len(values)
        self._distinct.add(hashes_of_values(values, self._type))
        if self._type.family in _TEXTS or self._type.family == "binary":
            lengths = pc.binary_length(values) if self._type.family == "binary" else pc.utf8_length(values)
            self._bytes += pc.sum(lengths).as_py()
            self._most = max(self._most or 0, pc.max(lengths).as_py())
        else:
            self._add_bounds(values.cast(value_type(self._type)))

    def _add_bounds(self, values: pa.Array) -> None:
        # NaN is the largest value in Spark, and no value in Arrow.
        numbers = values
        if pa.types.is_floating(values.type):
            numbers = values.filter(pc.invert(pc.is_nan(values)))
        ends = [] if not len(numbers) else [pc.min(numbers), pc.max(numbers)]
        if len(numbers) < len(values):
            ends.append(pa.scalar(math.nan, values.type))
        low, high = ends[0], ends[-1]
        if self._bounds is not None:
            low = _smaller(self._bounds[0], low)
            high = self._bounds[1] if _smaller(self._bounds[1], high) is not self._bounds[1] else high
        self._bounds = low, high

    @property
    def estimates(self) -> ColumnEstimates:
        type, low, high = self._type, None, None
        if self._bounds is not None:
            low, high = (from_arrow(pa.repeat(bound_value, 1))[0] for bound_value in self._bounds)
        average = most = BYTES_OF[type.family]
        if type.family == "decimal" and type.precision <= _SHORT_DECIMAL_DIGITS:
            average = most = 8
        if self._most is not None:
            average, most = -(-self._bytes // self._values), self._most
        return ColumnEstimates(
            type=str(type),
            distinct=min(self._distinct.count, self._values),
            nulls=self._nulls,
            min=low,
            max=high,
            average_bytes=average,
            most_bytes=most,
        )


def _smaller(scalar: pa.Scalar, other_scalar: pa.Scalar) -> pa.Scalar:
    """Return the smaller of two values, the first if they are equal. NaN is the largest."""
    if pa.types.is_floating(scalar.type):
        if math.isnan(other_scalar.as_py()):
            return scalar
        if math.isnan(scalar.as_py()):
            return other_scalar
    return other_scalar if pc.less(other_scalar, scalar).as_py() else scalar


class DistinctCounter:
    """Counts distinct values by their hashes: few values by the hashes themselves, more by rare hashes."""

    def __init__(self) -> None:
        self._few: npt.NDArray[np.uint32] | None = np.zeros(0, np.uint32)
        self._ranks = np.zeros(_BUCKETS, np.uint8)

    def add(self, hashes: npt.NDArray[np.uint32]) -> None:
        if self._few is not None:
            sorted_hashes = np.sort(np.concatenate([self._few, hashes]))
            is_new = np.ones(len(sorted_hashes), np.bool_)
            is_new[1:] = sorted_hashes[1:] != sorted_hashes[:-1]
            few = sorted_hashes[is_new]
            self._few = few if len(few) <= EXACT_MAX else None
        low_bits = (hashes & np.uint32((1 << _REST_BITS) - 1)).astype(np.float64)
        # The number of zeros before the first 1, plus 1. For 0, it is the number of bits plus 1.
        _, digits = np.frexp(low_bits)
        np.maximum.at(
            self._ranks, hashes >> np.uint32(_REST_BITS), (_REST_BITS + 1 - digits).astype(np.uint8)
        )

    @property
    def count(self) -> int:
        if self._few is not None:
            return len(self._few)
        alpha = 0.7213 / (1 + 1.079 / _BUCKETS)
        raw = alpha * _BUCKETS**2 / float(np.sum(np.exp2(-self._ranks.astype(np.float64))))
        empty = int(np.count_nonzero(self._ranks == 0))
        if raw <= 2.5 * _BUCKETS and empty:
            return round(_BUCKETS * math.log(_BUCKETS / empty))
        if raw > 2**32 / 30:
            return round(-(2.0**32) * math.log(max(2.0**-32, 1 - raw / 2**32)))
        return round(raw)

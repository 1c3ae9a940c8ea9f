"""Facts about a column's values in each of many files, or in all files of each of many manifests.

Facts of files come from partition values, which are exact, and statistics; facts of manifests from their
bounds. Facts are sets of possibilities, each an array over the files: whether there may be a NULL, a NaN, or
another value, and between which bounds the other values lie. An unknown fact is the widest possibility, so a
missing statistic proves nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import physical_rows
from lakelog.catalog.core.files.file_tables import converted
from lakelog.catalog.core.files.manifest_bounds import EXACT_BELOW_BYTES, MAY_NAN, MAY_NULL, MAY_VALUE
from lakelog.catalog.core.planning.bound import BoundTerm
from lakelog.catalog.core.planning.exact import DAY_US, range_of, scalar_of
from lakelog.catalog.core.schema.literals import from_arrow, to_arrow, value_type
from lakelog.catalog.core.schema.partitioning import PartitionField, PartitionSpec, Transform
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType

_EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """`lo` and `hi` bound the values that are neither NULL nor NaN; NULL there is no bound."""

    lo: pa.Array
    hi: pa.Array
    may_null: pa.Array
    may_nan: pa.Array
    may_value: pa.Array

    @property
    def single(self) -> pa.Array:
        """Whether all values but NULL and NaN are equal, to `lo`."""
        return pc.fill_null(pc.equal(self.lo, self.hi), False)


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """The files of each of many manifests, as `bounds` describe them.

    See `manifest_bounds` for the columns.
    """

    bounds: pa.Table

    @property
    def num_rows(self) -> int:
        return int(self.bounds.num_rows)


Judged: TypeAlias = pa.Table | ManifestFacts
"""Files or manifests, each judged on its own. A statement about a manifest holds for each of its files."""


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The values of a partition field in each of many files or manifests.

    For files both bounds are the value. `lo` and `hi` are NULL if there is only NULL or NaN, or no bound.
    """

    lo: pa.Array
    hi: pa.Array
    may_null: pa.Array
    may_nan: pa.Array
    may_value: pa.Array


Spans: TypeAlias = Callable[[pa.Array, AtomicType, Transform], tuple[pa.Array, pa.Array]]


def facts_of(files: Judged, term: BoundTerm, specs: Sequence[PartitionSpec]) -> ValueFacts:
    """Return the facts about `term` in each of `files` (see `data_file` for their columns)."""
    facts = _from_statistics(files, term)
    if term.transform is not None:
        facts = _from_column(facts, files, term, specs)
    for field, mask in partition_fields(files, term.column_id, specs):
        if field.transform == (term.transform or Transform("identity")):
            facts = _chosen(mask, _from_partition(files, field, term), facts)
        elif term.transform is None:
            facts = _chosen(mask, _narrowed(facts, files, field, term), facts)
        else:
            facts = _chosen(mask, _with_nullness(facts, partition_ranges(files, field)), facts)
    return facts


def partition_fields(
    files: Judged, column_id: int, specs: Sequence[PartitionSpec]
) -> Iterator[tuple[PartitionField, pa.Array]]:
    """Yield the partition fields of a column, each with the mask of the files whose spec has it.

    For manifests, the mask has those for which the specs of all their files have the field.
    """
    spec_ids: dict[PartitionField, list[int]] = {}
    for spec in specs:
        for field in spec.fields:
            if field.source_id == column_id:
                spec_ids.setdefault(field, []).append(spec.id)
    for field, ids in spec_ids.items():
        if isinstance(files, ManifestFacts):
            texts = array_of(files.bounds, "specs").to_pylist()
            yield field, pa.array([set(map(int, text.split(","))) <= set(ids) for text in texts], pa.bool_())
        else:
            yield field, pc.is_in(array_of(files, "spec"), value_set=pa.array(ids, pa.int32()))


def partition_values(files: pa.Table, field: PartitionField) -> pa.Array:
    """Return a field's values in its present type; NULL too for files whose spec does not have the field."""
    type = value_type(field.result)
    name = f"p{field.id}"
    if name not in files.column_names:
        return pa.nulls(files.num_rows, type)
    return converted(array_of(files, name), type)


def partition_ranges(files: Judged, field: PartitionField) -> PartitionRange:
    """Return the range of a field's values in each of `files`.

    It means nothing if the spec does not have the field.
    """
    if isinstance(files, ManifestFacts):
        type, table = value_type(field.result), files.bounds
        lo, hi = (_bounds(table, f"p{end}{field.id}", type) for end in ("lo", "hi"))
        null, nan, value = _possibilities(table, f"pmay{field.id}")
        return PartitionRange(lo, hi, null, _with_unbounded_nan(nan, lo, hi, type), value)
    try:
        values = partition_values(files, field)
    except pa.ArrowInvalid:
        # Of removed files, whose type had widened before a rollback. A plan has live files only.
        no_bound, is_possible = (
            pa.nulls(files.num_rows, value_type(field.result)),
            _repeated(True, files.num_rows),
        )
        return PartitionRange(no_bound, no_bound, is_possible, is_possible, is_possible)
    null = pc.is_null(values)
    is_float = pa.types.is_floating(values.type)
    nan = pc.fill_null(pc.is_nan(values), False) if is_float else _repeated(False, len(values))
    field_values = pc.if_else(nan, pa.scalar(None, values.type), values) if is_float else values
    return PartitionRange(field_values, field_values, null, nan, pc.invert(pc.or_(null, nan)))


def array_of(files: pa.Table, name: str) -> pa.Array:
    """Return a column in a single piece."""
    column = files.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def specs_list(specs: Mapping[int, PartitionSpec] | Sequence[PartitionSpec]) -> list[PartitionSpec]:
    return list(specs.values() if isinstance(specs, Mapping) else specs)


def _from_statistics(files: Judged, term: BoundTerm) -> ValueFacts:
    if isinstance(files, ManifestFacts):
        return _from_bounds(files.bounds, term)
    count, id = files.num_rows, term.column_id
    rows = physical_rows(files)
    no, yes = _repeated(False, count), _repeated(True, count)
    nulls = _counts(files, f"nulls{id}")
    may_null = pc.fill_null(pc.greater(nulls, 0), True)
    type = term.type or pa.null()
    if term.transform is not None or term.type is None:
        may_value = pc.fill_null(pc.less(nulls, rows), True)
        return ValueFacts(pa.nulls(count, type), pa.nulls(count, type), may_null, no, may_value)
    lo, hi = _bounds(files, f"lo{id}", type), _bounds(files, f"hi{id}", type)
    if not pa.types.is_floating(type):
        if pa.types.is_string(type) or pa.types.is_binary(type):
            cut = pc.and_(pc.equal(lo, hi), pc.greater_equal(pc.binary_length(lo), EXACT_BELOW_BYTES))
            hi = pc.if_else(pc.fill_null(cut, False), pa.scalar(None, type), hi)
        return ValueFacts(lo, hi, may_null, no, pc.fill_null(pc.less(nulls, rows), True))
    nans = _counts(files, f"nans{id}")
    has_bounds = pc.and_(pc.is_valid(lo), pc.is_valid(hi))
    may_nan = pc.if_else(pc.is_valid(nans), pc.greater(nans, 0), pc.if_else(has_bounds, no, yes))
    may_nan = pc.and_(may_nan, pc.fill_null(pc.less(nulls, rows), True))
    may_value = pc.fill_null(pc.less(pc.add(nulls, pc.fill_null(nans, 0)), rows), True)
    return ValueFacts(lo, hi, may_null, may_nan, may_value)


def _from_bounds(bounds: pa.Table, term: BoundTerm) -> ValueFacts:
    """Return `_from_statistics` for manifests: it excludes nothing that holds for any of their files."""
    count, id, type = bounds.num_rows, term.column_id, term.type or pa.null()
    null, nan, value = _possibilities(bounds, f"may{id}")
    if term.transform is not None or term.type is None:
        # Here a NaN is a value, as it is in the statistics that these bounds come from.
        return ValueFacts(
            pa.nulls(count, type), pa.nulls(count, type), null, _repeated(False, count), pc.or_(nan, value)
        )
    lo, hi = _bounds(bounds, f"lo{id}", type), _bounds(bounds, f"hi{id}", type)
    if not pa.types.is_floating(type):
        return ValueFacts(lo, hi, null, _repeated(False, count), pc.or_(nan, value))
    return ValueFacts(lo, hi, null, _with_unbounded_nan(nan, lo, hi, type), value)


def _with_unbounded_nan(nan: pa.Array, lo: pa.Array, hi: pa.Array, type: pa.DataType) -> pa.Array:
    """Return which files may have a NaN: for floats, also if bounds are not known in their type."""
    if not pa.types.is_floating(type):
        return nan
    return pc.or_(nan, pc.or_(pc.is_null(lo), pc.is_null(hi)))


def _possibilities(bounds: pa.Table, name: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return which files may have a NULL, a NaN and another value."""
    if name not in bounds.column_names:
        yes = _repeated(True, bounds.num_rows)
        return yes, yes, yes
    may = pc.fill_null(array_of(bounds, name), MAY_NULL | MAY_NAN | MAY_VALUE)
    null, nan, value = (
        pc.greater(pc.bit_wise_and(may, pa.scalar(flag, pa.int8())), 0)
        for flag in (MAY_NULL, MAY_NAN, MAY_VALUE)
    )
    return null, nan, value


def single_result(facts: ValueFacts, transform: Transform, source: AtomicType) -> tuple[pa.Array, pa.Array]:
    """Return a transform's result for all values of a column but NULL, and whether it
    is certainly the same.

    Otherwise the result means nothing. `facts` are the facts of the column.
    """
    has_bounds = pc.and_(pc.is_valid(facts.lo), pc.and_not(pc.is_valid(facts.hi), facts.may_nan))
    # Columns without both bounds are skipped, because the transform may not take a single bound.
    lo, hi = (pc.if_else(has_bounds, limit, pa.scalar(None, limit.type)) for limit in (facts.lo, facts.hi))
    first, last = (apply_transform(transform, limit, source) for limit in (lo, hi))
    # All transforms but bucket keep the order, so a value between two values of the same result has it too.
    same = pc.equal(lo, hi) if transform.name == "bucket" else pc.equal(first, last)
    if transform.name == "truncate":
        # Except for the lowest numbers, which wrap around to the top.
        same = pc.and_(same, pc.less_equal(first, lo))
    return first, pc.fill_null(same, False)


def column_of(term: BoundTerm) -> BoundTerm:
    """Return the column that `term` is, or is a transform of."""
    assert isinstance(term.source, AtomicType)
    type = pa.float64() if term.source.family in ("float", "double") else value_type(term.source)
    return replace(term, type=type, transform=None)


def _from_column(
    facts: ValueFacts, files: Judged, term: BoundTerm, specs: Sequence[PartitionSpec]
) -> ValueFacts:
    """Return the facts of a transform, if the facts of its column determine its result."""
    assert term.transform is not None and term.type is not None and isinstance(term.source, AtomicType)
    column = facts_of(files, column_of(term), specs)
    result, single = single_result(column, term.transform, term.source)
    limit = pc.if_else(single, result.cast(term.type), pa.scalar(None, term.type))
    may_value = pc.or_(column.may_value, column.may_nan)
    return replace(facts, lo=limit, hi=limit, may_null=column.may_null, may_value=may_value)


def _from_partition(files: Judged, field: PartitionField, term: BoundTerm) -> ValueFacts:
    """Return the facts if the partition value is the value of every row."""
    field_range = partition_ranges(files, field)
    assert term.type is not None
    lo, hi = (
        limit if limit.type == term.type else limit.cast(term.type)
        for limit in (field_range.lo, field_range.hi)
    )
    return ValueFacts(lo, hi, field_range.may_null, field_range.may_nan, field_range.may_value)


def _narrowed(facts: ValueFacts, files: Judged, field: PartitionField, term: BoundTerm) -> ValueFacts:
    """Return `facts`, narrowed by the value of a transform of the column.

    It is NULL exactly if the column is.
    """
    field_range = partition_ranges(files, field)
    facts = _with_nullness(facts, field_range)
    assert isinstance(term.source, AtomicType)
    spans = _SPANS.get(field.transform.name)
    if spans is None:
        return facts
    if isinstance(files, ManifestFacts):
        lo, hi = _together(spans, field_range, term.source, field)
    else:
        lo, hi = spans(field_range.lo, term.source, field.transform)
    # pyarrow's max_element_wise and min_element_wise have no kernels for timestamps with a zone.
    higher = pc.coalesce(pc.greater(facts.lo, lo), pc.is_null(lo))
    lower = pc.coalesce(pc.less(facts.hi, hi), pc.is_null(hi))
    return replace(facts, lo=pc.if_else(higher, facts.lo, lo), hi=pc.if_else(lower, facts.hi, hi))


def _together(
    spans: Spans, field_range: PartitionRange, source: AtomicType, field: PartitionField
) -> tuple[pa.Array, pa.Array]:
    """Return which values of the column lead to values of a transform between two values."""
    same = pc.fill_null(pc.equal(field_range.lo, field_range.hi), False)
    if field.transform.name == "truncate":
        # The lowest numbers wrap around to the top, so a range may hold values that are not between the
        # values of its ends.
        lo, hi = (
            pc.if_else(same, limit, pa.scalar(None, limit.type)) for limit in (field_range.lo, field_range.hi)
        )
    else:
        lo, hi = field_range.lo, field_range.hi
    return spans(lo, source, field.transform)[0], spans(hi, source, field.transform)[1]


def _with_nullness(facts: ValueFacts, field_range: PartitionRange) -> ValueFacts:
    value = pc.or_(field_range.may_value, field_range.may_nan)
    return replace(
        facts,
        may_null=field_range.may_null,
        may_nan=pc.and_(facts.may_nan, value),
        may_value=pc.and_(facts.may_value, value),
    )


def _chosen(mask: pa.Array, yes: ValueFacts, no: ValueFacts) -> ValueFacts:
    if pc.all(mask, min_count=0).as_py():
        return yes
    return ValueFacts(
        pc.if_else(mask, yes.lo, no.lo),
        pc.if_else(mask, yes.hi, no.hi),
        pc.if_else(mask, yes.may_null, no.may_null),
        pc.if_else(mask, yes.may_nan, no.may_nan),
        pc.if_else(mask, yes.may_value, no.may_value),
    )


def _bounds(files: pa.Table, name: str, type: pa.DataType) -> pa.Array:
    if name not in files.column_names:
        return pa.nulls(files.num_rows, type)
    try:
        return converted(array_of(files, name), type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(files.num_rows, type)


def _counts(files: pa.Table, name: str) -> pa.Array:
    return array_of(files, name) if name in files.column_names else pa.nulls(files.num_rows, pa.int64())


def _repeated(value: bool, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


# Which values of the column lead to a value of the transform: from … to, both included, NULL if that has no
# end.


def _equal_spans(width_us: int) -> Spans:
    def spans(values: pa.Array, source: AtomicType, transform: Transform) -> tuple[pa.Array, pa.Array]:
        if source.family == "date":
            return values, values
        type = value_type(source)
        numbers = values.cast(pa.int32()).cast(pa.int64())
        # Days that no timestamp reaches overflow: they stay without bound.
        inside = pc.less(pc.abs(numbers), 2**62 // width_us)
        first = pc.multiply(pc.if_else(inside, numbers, pa.scalar(None, pa.int64())), width_us)
        return first.cast(type), pc.add(first, width_us - 1).cast(type)

    return spans


def _calendar_spans(
    months_each: int,
) -> Spans:
    def span(value: int, source: AtomicType) -> tuple[int | None, int | None]:
        first, last = _days_before(value * months_each), _days_before((value + 1) * months_each)
        if source.family == "date":
            return first, None if last is None else last - 1
        return None if first is None else first * DAY_US, None if last is None else last * DAY_US - 1

    def spans(values: pa.Array, source: AtomicType, transform: Transform) -> tuple[pa.Array, pa.Array]:
        return _by_value(values, source, lambda value: span(value, source))

    return spans


def _truncate_spans(values: pa.Array, source: AtomicType, transform: Transform) -> tuple[pa.Array, pa.Array]:
    width = transform.argument
    assert width is not None
    match source.family:
        case "binary":
            short = pc.less(pc.binary_length(values), width)
            return values, pc.if_else(short, values, pa.scalar(None, values.type))
        case "string" | "char" | "varchar":
            short = pc.less(pc.utf8_length(values), width)
            return values, pc.if_else(short, values, pa.scalar(None, values.type))
        case "decimal":

            def span(value: str) -> tuple[str | None, str | None]:
                last = int(value.replace(".", "")) + width - 1
                lowest, highest = range_of(source)
                if last > highest:
                    return None, None
                first = value if last - (width - 1) >= lowest else None
                return first, format(scalar_of(last, source).as_py(), "f")

            return _by_value(values, source, span)
        case _:
            # The lowest values wrap around to the top, as Iceberg's do, so a value there proves nothing. If
            # the column was narrower when the file was written, that top is lower: a value that is not a
            # multiple has wrapped around.
            wide = values.cast(pa.int64())
            whole = pc.equal(pc.multiply(pc.divide(wide, width), width), wide)
            inside = pc.and_(pc.less_equal(wide, range_of(source)[1] - (width - 1)), whole)
            first = pc.if_else(inside, wide, pa.scalar(None, pa.int64()))
            return first.cast(values.type), pc.add(first, width - 1).cast(values.type)


def _by_value(
    values: pa.Array, source: AtomicType, span: Callable[[Any], tuple[Any, Any]]
) -> tuple[pa.Array, pa.Array]:
    """Compute spans for each distinct value once."""
    dictionary = values.dictionary_encode()
    spans = [span(value) for value in from_arrow(dictionary.dictionary)]
    type = value_type(source)
    first, last = ([span_ends[side] for span_ends in spans] for side in (0, 1))
    return to_arrow(first, type).take(dictionary.indices), to_arrow(last, type).take(dictionary.indices)


def _days_before(months: int) -> int | None:
    """Return the day on which a month begins, both from January 1970; None outside of years 1 to 9999."""
    year, month = 1970 + months // 12, months % 12 + 1
    if not 1 <= year <= 9999:
        return None
    return (dt.date(year, month, 1) - _EPOCH).days


_SPANS: Mapping[str, Spans] = {
    "hour": _equal_spans(DAY_US // 24),
    "day": _equal_spans(DAY_US),
    "month": _calendar_spans(1),
    "year": _calendar_spans(12),
    "truncate": _truncate_spans,
}

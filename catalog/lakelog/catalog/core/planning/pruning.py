"""Filters on files: which results a condition may have on the rows of each file.

Never a guess. Three possibilities are computed for each file: whether the condition may be true, false, or
NULL on some row. Each is an over-estimate, and so is every combination of conditions; so its absence is a
proof. A scan leaves out the files for which "true" is impossible. A delete removes those for which both
"false" and "NULL" are impossible.

Values of a bound condition have the types of their columns, to the last digit (`binding`, `exact`): here they
are only compared with bounds.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.file_set import Specs
from lakelog.catalog.core.planning.binding import is_nan
from lakelog.catalog.core.planning.bound import (
    AndCondition,
    Bound,
    BoundTerm,
    CompareCondition,
    ConstantCondition,
    InCondition,
    IsNull,
    IsTrue,
    KnownCondition,
    NotCondition,
    OpaqueCondition,
    OrCondition,
    TextTest,
    unknown_parts,
)
from lakelog.catalog.core.planning.file_facts import (
    Judged,
    ManifestFacts,
    ValueFacts,
    array_of,
    facts_of,
    partition_fields,
    partition_ranges,
    partition_values,
    specs_list,
)
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.log.errors import Unsupported

_LOOKED_UP_ONE_BY_ONE = 64


@dataclass(frozen=True, slots=True)
class FileMatch:
    """`all`: every row of the file matches, provably.

    `none`: no row does, provably. Neither: unknown, or some do.
    """

    all: pa.Array
    none: pa.Array


@dataclass(frozen=True, slots=True)
class _Possible:
    true: pa.Array
    false: pa.Array
    null: pa.Array


def may_match(files: Judged, bound_condition: Bound, specs: Specs) -> pa.Array:
    """Return for each file, or manifest of files, whether a row may match.

    False is a proof that none does.
    """
    return _Evaluation(files, specs).possible(bound_condition).true


def may_fail(files: pa.Table, bound_condition: Bound, specs: Specs) -> pa.Array:
    """Return for each file whether the condition may be false for a row; NULL is not false.

    False is a proof. A file without rows stands for an empty partition, and has no row for which the
    condition could be false.
    """
    return pc.and_(
        _Evaluation(files, specs).possible(bound_condition).false, pc.greater(array_of(files, "rows"), 0)
    )


def match(files: pa.Table, bound_condition: Bound, specs: Specs, *, in_part: bool = False) -> FileMatch:
    """Return the proofs for each file.

    A row matches if the condition is true, and not if it is NULL. Raises Unsupported for a condition that
    lakelog does not know, by name, unless it may be known `in_part`. Then its other parts may have any
    result.
    """
    unknown = unknown_parts(bound_condition)
    if unknown and not in_part:
        raise Unsupported(
            f"the condition {unknown[0]} is not supported for deleting or overwriting whole files: lakelog does not "
            "know exactly which rows it matches"
        )
    possible = _Evaluation(files, specs).possible(bound_condition)
    return FileMatch(all=pc.invert(pc.or_(possible.false, possible.null)), none=pc.invert(possible.true))


class _Evaluation:
    """A condition on some files; the facts of each column are looked up once."""

    def __init__(self, files: Judged, specs: Specs) -> None:
        self._files = files
        self._specs = specs_list(specs)
        self._facts: dict[BoundTerm, ValueFacts] = {}
        self._no = pa.repeat(pa.scalar(False), files.num_rows)
        self._yes = pa.repeat(pa.scalar(True), files.num_rows)

    def possible(self, bound_condition: Bound) -> _Possible:
        match bound_condition:
            case AndCondition():
                return functools.reduce(_and, map(self.possible, bound_condition.parts))
            case OrCondition():
                return _not(
                    functools.reduce(_and, (_not(self.possible(part)) for part in bound_condition.parts))
                )
            case NotCondition():
                return _not(self.possible(bound_condition.part))
            case IsTrue():
                part = self.possible(bound_condition.part)
                return _Possible(part.true, pc.or_(part.false, part.null), self._no)
            case ConstantCondition():
                no, yes = self._no, self._yes
                return {
                    True: _Possible(yes, no, no), False: _Possible(no, yes, no), None: _Possible(no, no, yes)
                }[bound_condition.result]  # fmt: skip
            case OpaqueCondition():
                return _Possible(self._yes, self._yes, self._yes)
            case IsNull():
                facts = self._of(bound_condition.term)
                return _Possible(facts.may_null, pc.or_(facts.may_value, facts.may_nan), self._no)
            case KnownCondition():
                facts = self._of(bound_condition.term)
                has_value = pc.or_(facts.may_value, facts.may_nan)
                return _Possible(
                    has_value if bound_condition.result else self._no,
                    self._no if bound_condition.result else has_value,
                    facts.may_null,
                )
            case CompareCondition():
                return self._compare(bound_condition, self._of(bound_condition.term))
            case InCondition():
                return self._in(bound_condition, self._of(bound_condition.term))
            case TextTest():
                return self._text_test(bound_condition, self._of(bound_condition.term))
        assert_never(bound_condition)

    def _of(self, term: BoundTerm) -> ValueFacts:
        if term not in self._facts:
            self._facts[term] = facts_of(self._files, term, self._specs)
        return self._facts[term]

    def _compare(self, test: CompareCondition, facts: ValueFacts) -> _Possible:
        value, null = test.value, facts.may_null
        if is_nan(value):
            return {
                "=": _Possible(facts.may_nan, facts.may_value, null),
                ">=": _Possible(facts.may_nan, facts.may_value, null),
                "<": _Possible(facts.may_value, facts.may_nan, null),
                "<=": _Possible(pc.or_(facts.may_value, facts.may_nan), self._no, null),
                ">": _Possible(self._no, pc.or_(facts.may_value, facts.may_nan), null),
            }[test.op]
        match test.op:
            case "=":
                return self._equal(test, facts)
            case "<" | "<=":
                true, false = self._below(test.op, facts, value)
                return _Possible(true, pc.or_(false, facts.may_nan), null)
            case _:
                false, true = self._below({">": "<=", ">=": "<"}[test.op], facts, value)
                return _Possible(pc.or_(true, facts.may_nan), false, null)

    def _below(self, op: str, facts: ValueFacts, value: pa.Scalar) -> tuple[pa.Array, pa.Array]:
        """Return whether a value may be below `value` (or equal to it, for <=), and whether it may not be."""
        never, every = (pc.greater_equal, pc.less) if op == "<" else (pc.greater, pc.less_equal)
        true = pc.and_(facts.may_value, _not_proven(never(facts.lo, value)))
        return true, pc.and_(facts.may_value, _not_proven(every(facts.hi, value)))

    def _equal(self, test: CompareCondition, facts: ValueFacts) -> _Possible:
        value = test.value
        outside = pc.or_kleene(pc.greater(facts.lo, value), pc.less(facts.hi, value))
        always = pc.and_(facts.single, pc.fill_null(pc.equal(facts.lo, value), False))
        true = pc.and_(facts.may_value, _not_proven(outside))
        true = pc.and_(true, self._in_buckets(test.term, pa.repeat(value, 1)))
        return _Possible(
            true, pc.or_(pc.and_(facts.may_value, pc.invert(always)), facts.may_nan), facts.may_null
        )

    def _in(self, test: InCondition, facts: ValueFacts) -> _Possible:
        lo, hi, values = facts.lo, facts.hi, test.values
        if pa.types.is_floating(lo.type):
            # Arrow looks floats up by their bits: adding zero makes the two zeros equal.
            lo, hi, values = pc.add(lo, 0.0), pc.add(hi, 0.0), pc.add(values, 0.0)
        hit = pc.is_in(lo, value_set=values)
        if not len(values):
            inside = self._no
        elif len(values) <= _LOOKED_UP_ONE_BY_ONE:
            inside = functools.reduce(pc.or_, (_not_proven(_outside(lo, hi, value)) for value in values))
        else:
            inside = _some_between(lo, hi, values.take(pc.sort_indices(values)))
        inside = pc.and_(inside, pc.or_(pc.invert(facts.single), hit))
        true = pc.and_(facts.may_value, pc.and_(inside, self._in_buckets(test.term, values)))
        false = pc.and_(facts.may_value, pc.invert(pc.and_(facts.single, hit)))
        if test.nan:
            true = pc.or_(true, facts.may_nan)
        else:
            false = pc.or_(false, facts.may_nan)
        if test.null:
            return _Possible(true, self._no, pc.or_(false, facts.may_null))
        return _Possible(true, false, facts.may_null)

    def _in_buckets(self, term: BoundTerm, values: pa.Array) -> pa.Array:
        """Return whether any of `values` may be in the file, as far as buckets show."""
        may = self._yes
        if term.transform is not None or not len(values):
            return may
        for field, mask in partition_fields(self._files, term.column_id, self._specs):
            if field.transform.name == "bucket":
                assert isinstance(term.source, AtomicType)
                buckets = apply_transform(field.transform, values, term.source)
                if isinstance(self._files, ManifestFacts):
                    between = partition_ranges(self._files, field)
                    has_bucket = _some_between(between.lo, between.hi, buckets.take(pc.sort_indices(buckets)))
                else:
                    has_bucket = pc.is_in(partition_values(self._files, field), value_set=buckets)
                may = pc.and_(may, pc.or_(pc.invert(mask), has_bucket))
        return may

    def _text_test(self, test: TextTest, facts: ValueFacts) -> _Possible:
        tests = {"STARTS_WITH": pc.starts_with, "ENDS_WITH": pc.ends_with, "CONTAINS": pc.match_substring}
        holds = pc.fill_null(tests[test.op](facts.lo, test.text), False)
        always = pc.and_(facts.single, holds)
        possible = pc.or_(pc.invert(facts.single), holds)
        if test.op == "STARTS_WITH":
            # If two texts start with it, so do all texts between them.
            always = pc.and_(holds, pc.fill_null(pc.starts_with(facts.hi, test.text), False))
            is_above = pc.and_(pc.greater(facts.lo, pa.scalar(test.text, facts.lo.type)), pc.invert(holds))
            is_below = pc.less(facts.hi, pa.scalar(test.text, facts.hi.type))
            possible = pc.and_(possible, _not_proven(pc.or_kleene(is_above, is_below)))
        true = pc.and_(facts.may_value, possible)
        return _Possible(true, pc.and_(facts.may_value, pc.invert(always)), facts.may_null)


def _and(one: _Possible, other: _Possible) -> _Possible:
    # SQL's AND is NULL if one side is NULL and the other is not false.
    null = pc.or_(
        pc.and_(one.null, pc.or_(other.null, other.true)), pc.and_(other.null, pc.or_(one.null, one.true))
    )
    return _Possible(pc.and_(one.true, other.true), pc.or_(one.false, other.false), null)


def _not(part: _Possible) -> _Possible:
    return _Possible(part.false, part.true, part.null)


def _outside(lo: pa.Array, hi: pa.Array, value: pa.Scalar) -> pa.Array:
    return pc.or_kleene(pc.greater(lo, value), pc.less(hi, value))


def _some_between(lo: pa.Array, hi: pa.Array, ordered_array: pa.Array) -> pa.Array:
    """Return whether any of the ordered values may be between the bounds. Numbers are looked up."""
    within = _not_proven(pc.or_kleene(pc.greater(lo, ordered_array[-1]), pc.less(hi, ordered_array[0])))
    if not (pa.types.is_integer(ordered_array.type) or pa.types.is_floating(ordered_array.type)):
        return within
    has_bounds = pc.and_(pc.is_valid(lo), pc.is_valid(hi))
    numbers = np.asarray(ordered_array)
    first = np.searchsorted(numbers, np.asarray(pc.fill_null(lo, 0)), side="left")
    end = np.searchsorted(numbers, np.asarray(pc.fill_null(hi, 0)), side="right")
    return pc.and_(within, pc.or_(pc.invert(has_bounds), pa.array(first < end)))


def _not_proven(proof: pa.Array) -> pa.Array:
    """Return whether `proof` does not hold. NULL proves nothing."""
    return pc.invert(pc.fill_null(proof, False))

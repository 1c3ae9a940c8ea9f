"""A value of any type comes back from its SQL, and becomes what values in files become when their column is widened."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.parquet.reshape import repeated, to_logical
from lakelog.catalog.core.schema.literals import from_arrow, single_type, to_arrow, value_type
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.sql_literals import literal_of, parse_literal
from lakelog.catalog.core.schema.type_widening import is_widening
from lakelog.catalog.core.schema.types import AtomicType, Default, Field, TypedValue

DAYS = st.integers(-719_162, 2_932_896)
DAY_US = 86_400_000_000
MICROS = st.integers(-719_162 * DAY_US, 2_932_897 * DAY_US - 1)
TEXTS = st.text(max_size=8)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "byte": st.integers(-(2**7), 2**7 - 1),
    "short": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(5,2)": st.decimals(places=2, min_value=-999, max_value=999).map(str),
    "decimal(12,2)": st.decimals(places=2, min_value=-(10**9), max_value=10**9).map(str),
    "decimal(38,18)": st.decimals(places=18, min_value=-(10**19), max_value=10**19).map(str),
    "decimal(38,10)": st.decimals(places=10, min_value=-(10**27), max_value=10**27).map(str),
    "string": TEXTS,
    "char(8)": TEXTS.map(lambda text: text.ljust(8)),
    "varchar(8)": TEXTS,
    "varchar(9)": TEXTS,
    "string collate UTF8_LCASE": TEXTS,
    "binary": st.binary(max_size=8).map(lambda data: base64.b64encode(data).decode()),
    "date": DAYS,
    "timestamp": MICROS,
    "timestamp_ntz": MICROS,
    "time(6)": st.integers(0, DAY_US - 1),
    "interval year to month": st.integers(-(2**31) + 1, 2**31 - 1),
    "interval month": st.integers(-(2**31) + 1, 2**31 - 1),
    "interval day to second": st.integers(-(2**62), 2**62),
    "interval hour to second": st.integers(-(2**62), 2**62),
    "interval second": st.integers(-(2**62), 2**62),
    "interval day": st.integers(-(10**6), 10**6).map(lambda days: days * DAY_US),
}
WIDENINGS = [
    (old, new)
    for old in VALUES
    for new in VALUES
    if old != new and is_widening(AtomicType(old), AtomicType(new))
]


def stored_value(type: str, value: Any) -> TypedValue:
    """Return the value in its only JSON form."""
    target = single_type(AtomicType(type))
    assert target is not None
    return TypedValue(type=target.name, value=from_arrow(to_arrow([value], value_type(target)))[0])


typed_values = st.sampled_from(sorted(VALUES)).flatmap(
    lambda type: VALUES[type].map(lambda value: (AtomicType(type), stored_value(type, value)))
)


@given(typed_values)
def test_a_value_comes_back_from_its_sql(of: tuple[AtomicType, TypedValue]) -> None:
    type, value = of
    again = parse_literal(literal_of(value), type)
    assert again is not None and repr(again) == repr(value)


@given(st.data())
def test_old_rows_have_what_the_value_in_a_file_has_become(data: st.DataObject) -> None:
    old, new = data.draw(st.sampled_from(WIDENINGS))
    value = stored_value(old, data.draw(VALUES[old]))
    column = Field(name="a", type=AtomicType(new), default=Default(exists=value))
    (field,) = assign_ids([column]).fields
    schema = assign_ids([column])
    in_file = repeated(value, AtomicType(old), 2, physical=True)
    from_file = to_logical(pa.table({field.physical: in_file}), schema).column("a")
    from_default = to_logical(pa.table({"else": [1, 2]}), schema).column("a")
    assert from_default.type == from_file.type and repr(from_default.to_pylist()) == repr(
        from_file.to_pylist()
    )


def test_all_kinds_of_widening_are_tried() -> None:
    assert {
        ("byte", "double"),
        ("long", "decimal(38,10)"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
    } <= set(WIDENINGS)
    assert len(WIDENINGS) > 25

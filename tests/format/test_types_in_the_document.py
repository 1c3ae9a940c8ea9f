"""The tables of types and of widenings in catalog/README.md are those of the code, and of the files that it writes."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema.arrow_types import _ATOMIC
from lakelog.catalog.core.schema.literals import from_arrow, value_type
from lakelog.catalog.core.schema.schema import assign_ids, physical_name
from lakelog.catalog.core.schema.type_widening import is_widening
from lakelog.catalog.core.schema.types import AtomicType, Field

PAGE = (Path(__file__).parents[2] / "catalog" / "README.md").read_text(encoding="utf-8")
NONE = "none"

EXAMPLES: dict[str, tuple[Any, Any]] = {
    "boolean": (True, True),
    "byte": (-1, -1),
    "short": (-1, -1),
    "integer": (-1, -1),
    "long": (-1, -1),
    "float": (float("-inf"), "-Infinity"),
    "double": (float("nan"), "NaN"),
    "decimal(9,2)": (Decimal("-1.50"), "-1.50"),
    "decimal(18,2)": (Decimal("-1.50"), "-1.50"),
    "decimal(38,0)": (Decimal(15), "15"),
    "string": ("é", "é"),
    "char(5)": ("a", "a"),
    "varchar(5)": ("a", "a"),
    "string collate UNICODE_CI": ("a", NONE),
    "binary": (b"\x00\xff", "AP8="),
    "date": (date(1969, 12, 31), -1),
    "timestamp": (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000_000),
    "timestamp_ntz": (datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
    "time(0)": (time(0, 0, 1), 1_000_000),
    "time(6)": (time(0, 0, 0, 1), 1),
    "interval year": (12, 12),
    "interval year to month": (14, 14),
    "interval day": (None, None),
    "interval hour to second": (None, None),
    "variant": (None, NONE),
}
"""Types with a value of each, and its JSON literal."""


def table_after(heading: str) -> list[list[str]]:
    """Return the cells of the table whose header begins with these words, without its two first lines."""
    lines = PAGE[re.search(rf"^\| {heading} \|", PAGE, re.M).start() :].partition("\n\n")[0].split("\n")
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def rows_of_types() -> dict[str, list[str]]:
    return {
        name: row[1:] for row in table_after("type") for name in re.findall(r"`([^`]+)`", row[0]) or [row[0]]
    }


def row_of(type: str) -> list[str]:
    rows = rows_of_types()
    if type in rows:
        return rows[type]
    for pattern, name in {
        r"decimal\(.*": "decimal(p,s)",
        r"char\(.*": "char(n)",
        r"varchar\(.*": "varchar(n)",
        r"time\(.*": "time(p)",
        r"string collate .*": "string collate <name>",
        r"interval \w+": "interval <unit>",
        r"interval \w+ to \w+": "interval <unit> to <smaller unit>",
    }.items():
        if re.fullmatch(pattern, type):
            return rows[name]
    raise KeyError(type)


LOGICAL = {
    r"None": "",
    r"Int\(bitWidth=(\d+), isSigned=true\)": r"Int(\1, signed)",
    r"Decimal\(.*": "Decimal(p, s)",
    r"Timestamp\(isAdjustedToUTC=true, timeUnit=microseconds.*": "Timestamp(µs, adjusted to UTC)",
    r"Timestamp\(isAdjustedToUTC=false, timeUnit=microseconds.*": "Timestamp(µs, not adjusted)",
    r"Time\(isAdjustedToUTC=false, timeUnit=microseconds\)": "Time(µs, not adjusted)",
    r"String|Date": r"\g<0>",
}
ARROW = {
    r"date32\[day\]": "date32",
    r"timestamp\[us, tz=UTC\]": "timestamp(µs, UTC)",
    r"timestamp\[us\]": "timestamp(µs)",
    r"time64\[us\]": "time64(µs)",
    r"decimal128\(.*": "decimal128(p, s)",
    r"None": NONE,
    r"\w+": r"\g<0>",
}


def in_words(text: str, words: dict[str, str]) -> str:
    for pattern, word in words.items():
        match = re.fullmatch(pattern, text)
        if match is not None:
            return match.expand(word)
    raise AssertionError(text)


@pytest.fixture(scope="module")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The Parquet columns of a file that lakelog has written, by their types."""
    folder = tmp_path_factory.mktemp("types")
    fields = [Field(name=f"c{at}", type=AtomicType(name)) for at, name in enumerate(EXAMPLES)]
    table = Catalog(str(folder)).create_table("t", assign_ids(fields))
    table.append(pa.table({"c0": [True]}))
    [path] = folder.glob("t-*/data/*.parquet")
    schema = pq.ParquetFile(path).schema
    columns = {schema.column(at).path.partition("_")[0]: schema.column(at) for at in range(len(schema))}
    return {name: columns[f"c{at}"] for at, name in enumerate(EXAMPLES)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_type_has_the_forms_of_the_document(name: str, leaves: dict[str, Any]) -> None:
    parquet, arrow, literal = row_of(name)
    leaf = leaves[name]
    assert leaf.physical_type in re.findall(r"[A-Z0-9_]{4,}", parquet)
    logical = in_words(str(leaf.logical_type), LOGICAL)
    documented_match = re.search(r"Int\(.*?\)|Decimal\(.*?\)|Time\w*\(.*?\)|String|Date", parquet)
    assert logical == (documented_match[0] if documented_match else "")
    type = value_type(AtomicType(name))
    assert in_words(str(type), ARROW) == arrow
    value, json_value = EXAMPLES[name]
    assert (literal == NONE) == (json_value == NONE)
    if type is not None and value is not None:
        assert from_arrow(pa.array([value], type)) == [json_value]


def test_the_document_has_all_types() -> None:
    assert {AtomicType(name).family for name in EXAMPLES} == {*_ATOMIC, "decimal"}
    assert rows_of_types().keys() >= {"struct", "list", "map"}


def test_types_widen_as_the_document_says() -> None:
    names = [name for name in EXAMPLES if re.fullmatch(r"\w+", name)]
    said: dict[str, set[str]] = {name: set() for name in names}
    for sources, targets in table_after("from"):
        for source in re.findall(r"`(\w+)`", sources):
            said[source] |= {*re.findall(r"`(\w+)`", targets)} - {source}
    for name in names:
        wider = {
            other_name
            for other_name in names
            if other_name != name and is_widening(AtomicType(name), AtomicType(other_name))
        }
        assert wider == said[name], name


@pytest.mark.parametrize(
    ("old", "new", "is_wider"),
    [
        ("byte", "decimal(10,0)", True),
        ("integer", "decimal(11,2)", False),
        ("integer", "decimal(12,2)", True),
        ("long", "decimal(19,0)", False),
        ("long", "decimal(20,0)", True),
        ("decimal(9,2)", "decimal(10,3)", True),
        ("decimal(9,2)", "decimal(9,3)", False),
        ("decimal(9,2)", "decimal(38,1)", False),
        ("char(5)", "varchar(5)", True),
        ("varchar(5)", "varchar(4)", False),
        ("varchar(5)", "char(5)", False),
        ("char(5)", "string", True),
        ("string", "string collate UNICODE_CI", True),
        ("string collate UNICODE_CI", "string", True),
        ("time(3)", "time(6)", True),
        ("time(6)", "time(3)", False),
        ("long", "double", False),
        ("date", "timestamp", False),
    ],
)
def test_types_with_parameters_widen_as_the_document_says(old: str, new: str, is_wider: bool) -> None:
    assert is_widening(AtomicType(old), AtomicType(new)) is is_wider


def test_a_physical_name_is_made_as_the_document_says() -> None:
    assert physical_name("Größe (cm)", 7) == "Gr__e__cm__7"
    assert physical_name("x" * 60, 12) == "x" * 48 + "_12"

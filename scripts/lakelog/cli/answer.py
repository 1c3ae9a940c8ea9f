"""How answers look: JSON for programs, tables with sizes and times in human units for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import click
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakelog.catalog.core.tools import visible

shown = visible


def size(size_bytes: int) -> str:
    """Return a size for people: 999 B, 1.2 MB."""
    from lakelog.catalog.keeping.upkeep import size_text

    return size_text(size_bytes)


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line."""
    click.echo(shown(text), err=err)


def in_json(value: Any) -> None:
    """Print `value` as indented JSON."""
    sys.stdout.write(harmless(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")


def harmless(text: str) -> str:
    """Return JSON that means the same, without characters that a terminal obeys or that cannot be printed."""
    found = {letter for letter in set(text) if letter != "\n" and not letter.isprintable()}
    return text.translate({ord(letter): json.dumps(letter)[1:-1] for letter in found})


def pairs(values: Mapping[str, str]) -> None:
    """Print names and values, one a line."""
    grid = Table.grid(padding=(0, 2))
    for name, value in values.items():
        grid.add_row(Text(shown(name), style="bold"), Text(shown(value)))
    _console().print(grid)


def rows(columns: Sequence[str], lines: Iterable[Sequence[str]], *, empty: str) -> None:
    """Print a table; a column whose heading begins with `>` is set flush right. `empty` stands for no lines."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    for line in lines:
        # Names and messages are text as it is: rich would read [brackets] in them as its own markup.
        table.add_row(*(Text(shown(cell)) for cell in line))
    _console().print(table if table.row_count else Text(shown(empty), style="dim"))


def heading(text: str) -> None:
    _console().print(Text(shown(text), style="bold"))


def count(number: int) -> str:
    return f"{number:,}"


def time(time_us: int) -> str:
    """Return a time for people, in UTC, to the second."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def iso_time(time_us: int) -> str:
    """Return a time for programs: ISO 8601 in UTC, to the microsecond."""
    seconds, micros = divmod(time_us, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat()


def python_rows(batch: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as Python has them, and dates and times that it cannot have, after the year 9999, as texts."""
    return [dict(zip(batch.schema.names, row, strict=True)) for row in python_lists(batch)]


def python_lists(batch: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return rows as `python_rows` does, by position: columns of a query may have the same name."""
    return list(zip(*(_in_python(column) for column in batch.columns), strict=True))


def _in_python(column: Any) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (OverflowError, ValueError):
        found = column.cast(_with_texts(column.type)).to_pylist(maps_as_pydicts="strict")
    return found


def _with_texts(of: pa.DataType) -> pa.DataType:
    """Return a type with texts in place of its dates and times."""
    if pa.types.is_date(of) or pa.types.is_timestamp(of):
        return pa.string()
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_with_texts(field.type)) for field in of])
    if pa.types.is_map(of):
        return pa.map_(_with_texts(of.key_type), of.item_field.with_type(_with_texts(of.item_type)))
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return pa.list_(of.value_field.with_type(_with_texts(of.value_type)))
    return of


def plain(value: Any) -> Any:
    """Return a value of Arrow's in Python as JSON has it: times as texts, bytes in hexadecimal digits."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def cell(value: Any) -> str:
    """Return a value of Arrow's in Python as text for people."""
    if isinstance(value, datetime):
        # One without a zone is what a clock on a wall showed: there is nothing to convert.
        return value.isoformat(" ").replace("+00:00", "Z")
    simple = plain(value)
    if simple is None:
        return ""
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def _console() -> Console:
    # In a pipe there is no width to respect, and a folded path cannot be copied.
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=100_000)

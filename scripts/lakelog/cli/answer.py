"""The form of answers: JSON for programs, and tables with sizes and times in human units for people.

With `--json`, an answer is a JSON object on its own line. A list has an object for each entry. An error is an object
on stderr.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from math import isfinite
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import click
import msgspec
import pyarrow as pa
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from lakelog.catalog.engine import visible
from lakelog.catalog.names import Identifier, identifier, quoted_where_needed
from lakelog.cli.layout import GAP, column_widths, wrapped
from lakelog.log.errors import InvalidInput

shown = visible

_ERRORS_IN_JSON: ContextVar[bool] = ContextVar("errors_in_json", default=False)

_LABEL_WIDTH_MAX = 24
_STORED_BYTES_MAX = 1 << 20
_ROWS_AT_ONCE = 16


def size(size_bytes: int) -> str:
    """Return a size for people: 999 B, 1.2 MB."""
    from lakelog.catalog.keeping.upkeep import size_text

    return size_text(size_bytes)


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line."""
    click.echo(shown(text), err=err)


def in_json(value: Mapping[str, Any]) -> None:
    """Print an object as JSON on its own line."""
    sys.stdout.write(harmless(json.dumps(value, ensure_ascii=False)) + "\n")


def list_in_json(entries: Iterable[Mapping[str, Any]]) -> None:
    """Print the entries of a list, each as an object on a line of its own."""
    for entry in entries:
        in_json(entry)


class StoredLists:
    """Lists of values as JSON, in a file. So an answer is printed in whole or not at all, whatever its size."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def store(self, rows: Iterable[Sequence[Any]]) -> None:
        for number, row in enumerate(rows):
            text = json.dumps([plain(value) for value in row], ensure_ascii=False)
            self._file.write((", " if number else "") + harmless(text))

    def print(self, before: Mapping[str, Any], name: str, after: Mapping[str, Any]) -> None:
        """Print an object as `in_json` does. Its member `name` is the stored lists; neither mapping is empty."""
        start, end = (harmless(json.dumps(members, ensure_ascii=False)) for members in (before, after))
        sys.stdout.write(f"{start[:-1]}, {json.dumps(name)}: [")
        self._file.seek(0)
        shutil.copyfileobj(self._file, sys.stdout)
        sys.stdout.write(f"], {end[1:]}\n")


@contextmanager
def stored_lists() -> Iterator[StoredLists]:
    """Yield a place for lists. It is in memory as long as it is small."""
    with SpooledTemporaryFile(_STORED_BYTES_MAX, "w+", encoding="utf-8", newline="\n") as file:
        yield StoredLists(file)


def name_in_json(name: Identifier | None) -> str | None:
    """Return a name as commands take it; "" for the root of the warehouse."""
    return None if name is None else quoted_where_needed(name)


def facts(value: Any) -> Any:
    """Return the catalog's answer in Python's own types, always with the same members.

    A quoted name is written as in all other answers, with backticks only if a part needs them.
    """
    if isinstance(value, msgspec.Struct):
        members = {name: facts(getattr(value, name)) for name in value.__struct_fields__}
        return members | {key: respelled(members[key]) for key in ("name", "table") if key in members}
    if isinstance(value, tuple | list):
        return [facts(part) for part in value]
    return msgspec.to_builtins(value)


def respelled(name: str) -> str:
    """Return a quoted name with backticks only if a part needs them. Any other text stays as it is."""
    if not name.startswith("`"):
        return name
    try:
        return quoted_where_needed(identifier(name))
    except InvalidInput:
        return name


@contextmanager
def errors_in_json(enabled: bool) -> Iterator[None]:
    """Inside, `complain` prints objects for programs, if that is enabled."""
    token = _ERRORS_IN_JSON.set(enabled)
    try:
        yield
    finally:
        _ERRORS_IN_JSON.reset(token)


def complain(message: str, kind: str, exit_code: int, pointer: str = "") -> None:
    """Print an error on stderr: its kind, and the code that the command ends with."""
    message = " ".join(message.split())
    if _ERRORS_IN_JSON.get():
        error = {"error": kind, "message": message, "exit_code": exit_code}
        click.echo(harmless(json.dumps(error, ensure_ascii=False)), err=True)
    else:
        say(f"lakelog: {message} {pointer}".rstrip(), err=True)


def harmless(text: str) -> str:
    """Return JSON that means the same, without characters that a terminal obeys or that cannot be printed."""
    letters = {letter for letter in set(text) if letter != "\n" and not letter.isprintable()}
    return text.translate({ord(letter): json.dumps(letter)[1:-1] for letter in letters})


def pairs(values: Mapping[str, str]) -> None:
    """Print names and values, each pair on its own line."""
    _print_record(_console(), values)


def rows(columns: Sequence[str], lines: Iterable[Sequence[str]], *, empty: str) -> None:
    """Print a table, or if the terminal is too narrow for it, a record for each row.

    A column whose heading begins with `>` is set flush right and never wrapped; with `=` it is never wrapped. `empty`
    stands for no lines.
    """
    console = _console()
    headings = [shown(column.lstrip(">=")) for column in columns]
    table = [[shown(cell) for cell in line] for line in lines]
    if not table:
        _print(console, Text(shown(empty), style="dim"))
        return
    flush_right = [column.startswith(">") for column in columns]
    whole = [column.startswith((">", "=")) for column in columns]
    widths = column_widths(headings, table, console.width, whole)
    if widths is None:
        for record in table:
            _print_record(console, dict(zip(headings, record, strict=True)), only_filled=True)
            _print(console, Text())
        return
    _print(console, Text())
    for line in _lines(headings, widths, flush_right):
        _print(console, Text(line, style="bold"))
    _print(console, Text("─" * min(sum(widths) + GAP * (len(widths) - 1), 200)))
    for row in table:
        for line in _lines(row, widths, flush_right):
            _print(console, Text(line))
    _print(console, Text())


def _lines(cells: Sequence[str], widths: Sequence[int], flush_right: Sequence[bool]) -> Iterator[str]:
    """Yield the lines of a table's row."""
    parts = [wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for at in range(max(map(len, parts))):
        line = ""
        for lines, width, is_right in zip(parts, widths, flush_right, strict=True):
            text = lines[at] if at < len(lines) else ""
            space = " " * (width - cell_len(text))
            line += (space + text if is_right else text + space) + " " * GAP
        yield line.rstrip()


def _print_record(console: Console, values: Mapping[str, str], *, only_filled: bool = False) -> None:
    """Print names and values, each pair on its own line. Empty values are left out if `only_filled`."""
    label_width = min(max((cell_len(shown(name)) for name in values), default=0), _LABEL_WIDTH_MAX)
    for name, value in values.items():
        if only_filled and not value:
            continue
        first, *more = wrapped(shown(value), max(console.width - label_width - GAP, 10))
        label = shown(name)
        space = " " * (label_width - cell_len(label) + GAP)
        _print(console, Text.assemble((label, "bold"), space if first else "", first))
        for line in more:
            _print(console, Text(" " * (label_width + GAP) + line))


def _print(console: Console, line: Text) -> None:
    # A line may be wider than the terminal, if a name in it is: the terminal wraps it, and it can be copied.
    # Names and messages are text as it is: rich would read [brackets] in them as its own markup.
    console.print(line, soft_wrap=True)


def heading(text: str) -> None:
    _print(_console(), Text(shown(text), style="bold"))


def count(number: int) -> str:
    return f"{number:,}"


def time(moment: datetime) -> str:
    """Return a time in UTC for people, to the microsecond.

    A user copies it as the time to read as of. A time that was cut would be before the commit.
    """
    return moment.strftime("%Y-%m-%d %H:%M:%S.%fZ")


def python_rows(batch: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as Python has them, and dates and times that it cannot have, after the year 9999, as texts."""
    return [dict(zip(batch.schema.names, row, strict=True)) for row in python_lists(batch)]


def python_lists(batch: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return rows as `python_rows` does, by position: columns of a query may have the same name."""
    return list(zip(*(_in_python(column) for column in batch.columns), strict=True))


def each_row(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield rows as `python_lists` does. Few of them are in memory at once, because cells may have megabytes."""
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield from python_lists(batch.slice(start, _ROWS_AT_ONCE))


def _in_python(column: Any) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (OverflowError, ValueError):
        values = column.cast(_with_texts(column.type)).to_pylist(maps_as_pydicts="strict")
    return values


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


def shortened(text: str, length_max: int) -> str:
    """Return the text, or its first characters and `…` if it is longer than that."""
    return text if len(text) <= length_max else text[:length_max] + "…"


def _console() -> Console:
    # In a pipe there is no width to respect, and a folded path cannot be copied.
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=100_000)

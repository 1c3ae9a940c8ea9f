"""Reports of a program's progress: sections with times, statements, and results as text."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent, indent

from pyspark.sql import DataFrame, SparkSession
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


@contextmanager
def section(title: str, why: str) -> Iterator[None]:
    """Print a heading and the reason for the section. At the end of the block, print how long it took."""
    _console.print()
    _console.rule(Text(title, style="bold cyan"), align="left")
    _console.print(Text(" ".join(why.split())))
    start = time.perf_counter()
    yield
    _console.print(Text(f"{time.perf_counter() - start:.1f} s", style="dim"), justify="right")


def sql(spark: SparkSession, statement: str) -> DataFrame:
    """Print a statement and run it."""
    statement = dedent(statement).strip()
    _console.print(Text("\n" + indent(statement, "    "), style="green"))
    return spark.sql(statement)


def show(result: DataFrame) -> None:
    """Print a small result as a table."""
    table(
        result.columns, [["" if value is None else str(value) for value in row] for row in result.collect()]
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None) -> None:
    grid = Table(box=box.SIMPLE_HEAD, header_style="bold", title=title, title_justify="left")
    for index, column in enumerate(columns):
        numeric = all(row[index].replace(",", "").replace(".", "").lstrip("-").isdigit() for row in rows)
        grid.add_column(column, justify="right" if rows and numeric else "left")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    _console.print(grid)


@contextmanager
def errors_to(path: Path) -> Iterator[None]:
    """Send standard error to a file until the block ends.

    Processes that start inside the block send theirs to the file for as long as they live.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    old_stderr = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(old_stderr, 2)
        os.close(old_stderr)


def say(text: str) -> None:
    _console.print(Text(text))


def command(*arguments: str) -> None:
    """Print a `lakelog` command line and run it as a user would."""
    _console.print(Text("\n    $ lakelog " + " ".join(arguments), style="green"))
    sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "lakelog.cli", *arguments], check=True)

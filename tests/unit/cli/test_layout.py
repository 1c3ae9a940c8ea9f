"""Tables at any width: names break at dots, hyphens and the like, never into letters."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from lakelog.cli import answer, layout
from lakelog.cli.layout import column_widths, wrapped

NAMES = ("shop.orders_by_country", "warehouse.`a-b`.returns", "n")
LINES = [
    (
        name,
        "1,234,567",
        "12.3 MB",
        "2026-11-30 21:44:02Z",
        "ada spark 4.3.0 nightly-batch",
        "append: +1 row in 1 file",
    )
    for name in NAMES
]
COLUMNS = ("table", ">files", ">size", "time", "who", "what")


@pytest.fixture(params=[32, 40, 50, 60, 80, 120, 200])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A terminal of that width; `printed` returns what it shows."""
    monkeypatch.setattr(
        answer, "_console", lambda: Console(file=SCREEN, width=request.param, highlight=False)
    )
    SCREEN.seek(0)
    SCREEN.truncate()
    width: int = request.param
    return width


SCREEN = io.StringIO()


def printed_text() -> str:
    return SCREEN.getvalue()


def test_no_table_breaks_a_name_into_letters(width: int) -> None:
    answer.rows(COLUMNS, LINES, empty="")
    text = printed_text()
    parts = {part for line in LINES for cell in line for part in re.findall(r"[^\s._\-,=/`]+", cell)}
    matches = set(re.findall(r"[^\s._\-,=/`]+", text))
    assert parts <= matches
    assert max(map(len, text.splitlines())) <= width


def test_a_wide_terminal_has_a_line_for_each_row() -> None:
    headings, flush_right = [name.lstrip(">") for name in COLUMNS], [name.startswith(">") for name in COLUMNS]
    widths = column_widths(headings, LINES, 200, flush_right)
    assert widths == [23, 9, 7, 20, 29, 24]
    assert sum(widths) + 2 * 5 <= 200


def test_a_narrow_terminal_has_a_record_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "_console", lambda: Console(file=SCREEN, width=40, highlight=False))
    SCREEN.seek(0)
    SCREEN.truncate()
    answer.rows(COLUMNS, LINES, empty="")
    assert printed_text().splitlines()[:8] == [
        "table  shop.orders_by_country",
        "files  1,234,567",
        "size   12.3 MB",
        "time   2026-11-30 21:44:02Z",
        "who    ada spark 4.3.0 nightly-batch",
        "what   append: +1 row in 1 file",
        "",
        "table  warehouse.`a-b`.returns",
    ]


def test_names_and_values_wrap_below_the_value(width: int) -> None:
    answer.pairs({"location": "/data/warehouse/n-abc/t-def", "contents": "4 rows in 3 files, 12 kB"})
    lines = printed_text().splitlines()
    assert lines[0].startswith("location  /data/") and all(
        line.startswith(("location", "contents", " ")) for line in lines
    )
    if width >= 40:
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("shop.orders", 20, ["shop.orders"]),
        ("shop.orders_by_country", 12, ["shop.orders_", "by_country"]),
        ("a-very-long-name", 7, ["a-very-", "long-", "name"]),
        ("two words", 5, ["two", "words"]),
        ("see s3://bucket/a/b", 12, ["see s3://", "bucket/a/b"]),
        ("abcdefghijkl", 5, ["abcdefghijkl"]),
        ("one\ntwo three", 9, ["one", "two three"]),
        ("", 5, [""]),
    ],
)
def test_a_text_wraps_between_words_and_parts_of_names(text: str, width: int, lines: list[str]) -> None:
    assert wrapped(text, width) == lines


def test_a_long_text_on_a_wide_line_is_measured_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"key{number}=value" for number in range(5_000))
    characters = 0

    def counted(part: str) -> int:
        nonlocal characters
        characters += len(part)
        return cell_len(part)

    monkeypatch.setattr(layout, "cell_len", counted)
    assert len(layout.wrapped(text, len(text) // 2)) == 3
    assert characters < 8 * len(text)

"""`scripts/bench`: lists the scenarios, or runs a scenario and shows its measurements."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from programs import story
from programs.bench import scale
from programs.bench.scenario import PROGRAM, Row, Scenario, arguments_of, say, scenarios

COLUMNS_MAX = 10
"""A table with more columns is shown on its side, because it would not fit into a line."""


def main(words: list[str]) -> None:
    scenarios_by_name = scenarios()
    if not words or words[0] in ("-h", "--help"):
        _list(scenarios_by_name.values())
    elif words[0] == "scale":
        scale.main(words[1:])
    elif words[0] not in scenarios_by_name:
        sys.exit(f"{words[0]} is not a scenario: {PROGRAM} lists them")
    else:
        scenario = scenarios_by_name[words[0]]
        values = arguments_of(scenario, words[1:])
        as_json = values.pop("json")
        report(scenario, values, scenario.measure(**values), as_json=as_json)


def _list(known: Iterable[Scenario]) -> None:
    group = ""
    for scenario in known:
        if scenario.group != group:
            group = scenario.group
            print(f"\n{group}:")
        print(f"  {scenario.name:18} {scenario.summary}")
    print(f"\n{'scale':20} runs those of docs/benchmarks.md, one after another.")
    print(
        f"{PROGRAM} NAME --help shows what is measured, and the options; --json prints the measurements as JSON."
    )


def report(
    scenario: Scenario, given: Mapping[str, object], measured: Iterable[Row | str], *, as_json: bool
) -> None:
    """Show consecutive rows with the same columns as a table, and remarks between the tables.

    If a scenario fails, the measurements so far are shown.
    """
    rows: list[Row] = []
    remarks: list[str] = []
    table: list[Row] = []
    options = ", ".join(f"{name.replace('_', '-')} {_word(value)}" for name, value in given.items())
    if not as_json:
        story.say(f"{scenario.name}: {scenario.summary}\n{options or 'no options'}; {machine()}")
    try:
        for row in measured:
            if table and (isinstance(row, str) or row.keys() != table[0].keys()):
                _show(table, as_json)
                table = []
            if isinstance(row, str):
                remarks.append(row)
                story.say(row) if not as_json else None
            else:
                rows.append(row)
                table.append(row)
                say("· " + ", ".join(_cell(value) for value in row.values()))
    finally:
        _show(table, as_json)
        if as_json:
            document = {
                "scenario": scenario.name,
                "options": given,
                "machine": machine(),
                "rows": rows,
                "remarks": remarks,
            }
            print(json.dumps(document))


def machine() -> str:
    return f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores"


def _show(rows: list[Row], as_json: bool) -> None:
    if not rows or as_json:
        return
    lines = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    if len(rows[0]) > COLUMNS_MAX:
        lines = [list(column) for column in zip(*lines, strict=True)]
    story.table(lines[0], lines[1:])


def _cell(value: Any) -> str:
    """Return a text as it is, a number with three digits or more, or the median and the range of several numbers."""
    match value:
        case str():
            return value
        case None:
            return "–"
        case int():
            return f"{value:,}"
        case float():
            size = abs(value)
            return (
                f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or not size else 4}f}"
            )
    if not value:
        return "–"
    numbers = sorted(value)
    middle, at = numbers[len(numbers) // 2], len(numbers) // 2
    middle = middle if len(numbers) % 2 else (middle + numbers[at - 1]) / 2
    return (
        f"{_cell(middle)} ({_cell(numbers[0])}–{_cell(numbers[-1])})" if len(numbers) > 1 else _cell(middle)
    )


def _word(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value) or "–"


if __name__ == "__main__":
    main(sys.argv[1:])

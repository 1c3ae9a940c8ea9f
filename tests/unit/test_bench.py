"""Scenarios of `scripts/bench`: each has help, the cheap ones run, and the documents quote options that there are.

No time is compared.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from programs.bench.__main__ import main
from programs.bench.data.tpcds import Answer, difference, in_total_order
from programs.bench.measure import apart, beside, turns
from programs.bench.scale import FULL, PARTS
from programs.bench.scenario import arguments_of, parser_of, scenarios

TOP = Path(__file__).parents[2]
SCENARIOS = scenarios()
PAGES = [*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")]
QUOTED = {
    command
    for page in PAGES
    for command in re.findall(r"`scripts/bench ([^`]+)`", " ".join(page.read_text().split()))
    if command.split()[0] not in ("NAME", "scale")
}
RUN_BY_SCALE = {command for parts in (PARTS, FULL) for commands in parts.values() for command in commands}
PARSERS = {name: parser_of(scenario) for name, scenario in SCENARIOS.items()}
CHEAP = (
    "export --files 1 --appends 2",
    "many_names --tables 2 --namespaces 1 --rounds 1",
    "observe --rounds 2",
    "upkeep --commits 3 --rows 3",
    "vacuums --files 2 --on folder",
)


def test_every_scenario_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    listed_text = capsys.readouterr().out
    assert [name for name in SCENARIOS if f"  {name} " not in listed_text] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_has_help_of_its_own(name: str) -> None:
    scenario = SCENARIOS[name]
    assert scenario.summary.endswith((".", ":"))
    assert scenario.doc.splitlines()[0] in PARSERS[name].format_help()
    assert arguments_of(scenario, [])["json"] is False


@pytest.mark.parametrize("command", sorted(QUOTED | RUN_BY_SCALE))
def test_commands_that_are_quoted_have_scenarios_and_options(command: str) -> None:
    name, *words = command.split()
    arguments_of(SCENARIOS[name], words)


@pytest.mark.parametrize("command", CHEAP)
def test_a_cheap_scenario_measures(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([*command.split(), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["scenario"] == command.split()[0]
    assert found["rows"] and all(row for row in found["rows"])


def test_rows_with_the_same_columns_are_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["many_names", "--tables", "2", "--namespaces", "--rounds", "1"])
    text = capsys.readouterr().out
    assert text.count("operation") == 1 and "first look-up, cold" in text


def test_several_values_are_words_or_stand_between_commas() -> None:
    for words in (["--runs", "1x1", "2x2"], ["--runs", "1x1,2x2"]):
        assert arguments_of(SCENARIOS["writers"], words)["runs"] == ["1x1", "2x2"]
    with pytest.raises(SystemExit):
        arguments_of(SCENARIOS["vacuums"], ["--on", "folder,tape"])


def test_contenders_take_turns_and_ratios_are_those_of_one_round() -> None:
    order: list[str] = []
    times = turns({name: lambda name=name: order.append(name) for name in "ab"}, 2, warm_up=1)  # type: ignore[misc]
    assert "".join(order) == "abbaab" and all(len(numbers) == 2 for numbers in times.values())
    assert [row["of a"] for row in beside({"a": [1, 2], "b": [2, 2]}, "a")] == [[1, 1], [2, 1]]


def test_a_process_of_its_own_is_another_one() -> None:
    assert apart(os.getpid) != os.getpid()


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a, b FROM t", "SELECT a, b FROM t ORDER BY 1, 2"),
        ("SELECT a, b FROM t\nLIMIT 100", "SELECT a, b FROM t ORDER BY 1, 2\nLIMIT 100"),
        ("SELECT a, b FROM t ORDER BY b DESC\nLIMIT 9", "SELECT a, b FROM t ORDER BY b DESC, 1, 2\nLIMIT 9"),
        (
            "SELECT a, rank() OVER (ORDER BY a) FROM t LIMIT 1",
            "SELECT a, rank() OVER (ORDER BY a) FROM t ORDER BY 1, 2 LIMIT 1",
        ),
    ],
)
def test_a_query_of_tpcds_is_ordered_by_all_of_its_columns(query: str, ordered: str) -> None:
    assert in_total_order(query, 2) == ordered


def test_answers_differ_by_columns_rows_order_and_values() -> None:
    columns = (("k", "int"), ("d", "double"))
    expected = Answer(columns, ((1, 0.1), (2, None)))
    assert difference(expected, expected) == ""
    assert difference(Answer(columns, ((1, 0.1 + 1e-15), (2, None))), expected) == ""
    for other_answer in (
        Answer((("k", "bigint"), ("d", "double")), expected.rows),
        Answer(columns, expected.rows[:1]),
        Answer(columns, expected.rows[::-1]),
        Answer(columns, ((1, 0.1 + 1e-9), (2, None))),
        Answer(columns, ((1, 0.1), (2, 0.0))),
    ):
        assert difference(other_answer, expected)

"""Races of the conformance kit: lakelog and the minimal writer end them alike, and a writer with a fault does not."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance import lakelog_reader, lakelog_writer, races
from tests.conformance.cases.tables import NAMED
from tests.conformance.run import UNSUPPORTED, Ask, Step, main, race_results
from tests.conformance.test_conformance import KIT, of_program
from tests.format import minimal_writer

NAMES = sorted(races.RACES)
ASK: Ask = of_program(lakelog_reader.main)


def minimal_client(stack: ExitStack, warehouse: str) -> Step:
    """Return a client of a race that appends by the minimal writer. lakelog drops tables and makes fences for it."""
    (folder,) = Path(warehouse).glob("t-*")
    other = lakelog_writer.join(stack, warehouse)
    began: list[minimal_writer.State] = []

    def step(asked: Mapping[str, Any]) -> str:
        if asked["do"] in ("drop", "fence"):
            return other(asked)
        if asked["do"] == "begin" or not began:
            began[:] = [minimal_writer.read(folder)]
        if asked["do"] == "begin":
            return "done"
        rows = [dict(zip(NAMED.names, row, strict=True)) for row in asked["rows"]]
        try:
            minimal_writer.append(folder, began.pop(), [pa.Table.from_pylist(rows, NAMED)])
        except minimal_writer.Refused:
            newest = max((folder / "_log").glob("0*.json"))
            return "gone" if json.loads(newest.read_bytes()).get("seals") else "conflict"
        return "done"

    return step


def forgetful_client(stack: ExitStack, warehouse: str) -> Step:
    """Return a client that loads the table for each append, whatever it began with."""
    step = lakelog_writer.join(stack, warehouse)
    return lambda asked: "done" if asked["do"] == "begin" else step(asked)


@pytest.mark.parametrize("name", NAMES)
def test_lakelog_ends_races_as_when_the_kit_was_made(name: str, tmp_path: Path) -> None:
    shutil.copytree(KIT / "cases" / races.CASE.name / "warehouse", tmp_path / "warehouse")
    script = races.script_of(name, str(tmp_path / "warehouse"))
    assert script == json.loads((KIT / "races" / f"{name}.json").read_text("utf-8"))


def test_the_runner_finds_no_fault_in_lakelog() -> None:
    results = list(race_results(KIT, lakelog_writer.join, ASK))
    assert [(result.name, result.verdict, result.wrong) for result in results] == [
        (f"race {name}", "pass", ()) for name in NAMES
    ]


def test_the_minimal_writer_ends_races_as_lakelog_does() -> None:
    results = list(race_results(KIT, minimal_client, ASK))
    assert [(result.verdict, result.wrong) for result in results] == [("pass", ())] * len(NAMES)


def overwrite(path: Path, content: bytes) -> bool:
    """Put an object, whatever is there."""
    path.write_bytes(content)
    return True


def give_up(path: Path, content: bytes) -> bool:
    """Put an object, and take a lost race for a conflict."""
    if path.exists():
        raise minimal_writer.Refused("a lost race")
    return overwrite(path, content)


@pytest.mark.parametrize(
    ("race", "put"), [("two-appends", overwrite), ("last-of-three", overwrite), ("two-appends", give_up)]
)
def test_the_kit_notices_a_writer_with_a_fault(
    race: str, put: Callable[[Path, bytes], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minimal_writer, "put_if_absent", put)
    (result,) = race_results(KIT, minimal_client, ASK, [race])
    assert result.wrong


def test_the_kit_notices_a_writer_that_forgets_what_it_began_with() -> None:
    (result,) = race_results(KIT, forgetful_client, ASK, ["append-behind-a-fence"])
    assert result.wrong == ("one, append: done, not conflict", *result.wrong[1:])


@pytest.mark.parametrize(
    ("answer", "verdict", "code"),
    [
        (json.dumps({"outcome": UNSUPPORTED}), "skip", 0),
        (json.dumps({"outcome": "done"}), "FAIL", 1),
        ("nothing", "FAIL", 1),
    ],
)
def test_any_command_can_take_part(
    answer: str, verdict: str, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "writer.py"
    program.write_text(f"import sys\nfor line in sys.stdin: print({answer!r}, flush=True)\n")
    command = ["--writer", f"{sys.executable} {program}", "--race", "append-to-nothing"]
    reader = ["--", sys.executable, "-c", "print([])"]
    assert main([*command, *reader]) == code
    assert f"race append-to-nothing  {verdict}" in capfd.readouterr().out


def test_a_writer_that_ends_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["--writer", f"{sys.executable} -c pass", "--race", "two-appends"]
    assert main([*command, "--", sys.executable, "-c", "print([])"]) == 1
    assert "one, begin: no outcome" in capfd.readouterr().out

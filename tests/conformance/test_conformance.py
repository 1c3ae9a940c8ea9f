"""The conformance kit: lakelog and the second reader, `examples/reader`, give the same answers to all of it."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance import lakelog_reader, races
from tests.conformance.make import make
from tests.conformance.rehash import objects_of
from tests.conformance.run import Ask, main, results

from programs.archives import write_kit

KIT = Path(__file__).parent / "kit"
REPOSITORY = Path(__file__).parents[2]
READER = REPOSITORY / "examples" / "reader"
NAMES = sorted(path.parent.name for path in KIT.glob("cases/*/case.json"))


def of_program(run: Callable[[Sequence[str]], int]) -> Ask:
    """Return how to ask a program's `main` in this process: a process for each question takes half a second."""

    def ask(arguments: Sequence[str]) -> tuple[int, str]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(list(arguments))
        return code, out.getvalue() or err.getvalue()

    return ask


@pytest.fixture(scope="module")
def second_reader() -> Iterator[Ask]:
    """The reader of `examples/reader`, whose modules find each other as in a run of the program."""
    sys.path.insert(0, str(READER))
    try:
        yield of_program(importlib.import_module("read").main)
    finally:
        sys.path.remove(str(READER))
        for path in READER.glob("*.py"):
            sys.modules.pop(path.stem, None)


@pytest.mark.parametrize("name", NAMES)
def test_lakelog_answers_as_when_the_kit_was_made(name: str) -> None:
    (result,) = results(KIT, of_program(lakelog_reader.main), [name])
    assert not result.wrong


@pytest.mark.parametrize("name", NAMES)
def test_the_second_reader_answers_as_lakelog_does(name: str, second_reader: Ask) -> None:
    (result,) = results(KIT, second_reader, [name])
    assert not result.wrong


def folded_without_metadata(fold: Any, state: Any, commit: dict[str, Any], sidecars: list[bytes]) -> Any:
    """Fold as the second reader does, but keep a table's columns when it is rolled back."""
    folds: Any = sys.modules["folds"]
    for stored_event in commit["events"]:
        event = folds.taken(stored_event, "Table_event", "an event")
        if event["event"] == "rolled-back":
            event["metadata"] = None
        state = folds._applied(state, event, commit["version"], sidecars, "an event")
    return state


BROKEN: list[tuple[str, str, str, Callable[..., object]]] = [
    ("large-vector", "table_rows", "roaring", lambda data: set(range(data[4]))),
    ("deletes", "table_rows", "_FileReader._deleted", lambda self: set()),
    ("widening", "table_rows", "_cast", lambda array, type_name, name: array),
    ("foreign-files", "table_rows", "converted", lambda known, type, name: None),
    ("packs", "file_lists", "_read", lambda stored, log: pa.table({})),
    ("transactions", "log_reader", "Log.outcome", lambda self, commit: {}),
    (
        "several-changes",
        "read",
        "history_answer",
        lambda log: [{"version": c["version"]} for c in log.commits()],
    ),
    ("packs", "folds", "live_files", lambda files, log, packs: {}),
    ("pages", "folds", "_rows_of_pages", lambda pages, log: []),
    ("refused", "stored_forms", "check_format", lambda value, at: None),
    ("refused", "folds", "_check_metadata", lambda metadata, at: None),
    ("refused", "log_reader", "Log._ends_before", lambda self, version: True),
    ("replaced", "folds", "TableFold.apply", folded_without_metadata),
]
"""A case of the kit, and a part of the second reader without which it gets the case wrong."""


@pytest.mark.parametrize(
    ("case", "module", "name", "broken"), BROKEN, ids=[f"{each[0]}-{each[2]}" for each in BROKEN]
)
def test_the_kit_notices_a_reader_with_a_fault(
    case: str,
    module: str,
    name: str,
    broken: Callable[..., object],
    second_reader: Ask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{module}.{name}", broken)

    def ask(arguments: Sequence[str]) -> tuple[int, str]:
        try:
            return second_reader(arguments)
        except Exception as error:  # a broken reader ends in any way
            return 1, repr(error)

    (result,) = results(KIT, ask, [case])
    assert result.wrong


def test_the_second_reader_has_no_code_but_pyarrow_and_pythons_own() -> None:
    own = {path.stem for path in READER.glob("*.py")}
    for path in READER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                first = name.partition(".")[0]
                assert first in own | {"pyarrow"} or first in sys.stdlib_module_names, (
                    f"{path.name} imports {name}"
                )


def test_any_command_can_be_asked(capfd: pytest.CaptureFixture[str]) -> None:
    command = ["--", sys.executable, str(READER / "read.py")]
    assert main(["--case", "nothing", *command]) == 0
    assert "pass" in capfd.readouterr().out
    assert main(["--case", "nothing", "--", sys.executable, "-c", "print([])"]) == 1
    assert "FAIL" in capfd.readouterr().out


@pytest.mark.parametrize("name", sorted(races.RACES))
def test_lakelog_ends_races_as_when_the_kit_was_made(name: str, tmp_path: Path) -> None:
    shutil.copytree(KIT / "cases" / races.CASE.name / "warehouse", tmp_path / "warehouse")
    script = races.script_of(name, str(tmp_path / "warehouse"))
    assert script == json.loads((KIT / "races" / f"{name}.json").read_text("utf-8"))


def test_the_kit_is_an_archive_of_the_same_bytes_each_time_that_runs_by_itself(tmp_path: Path) -> None:
    first, again = (write_kit(REPOSITORY, tmp_path / name) for name in ("first.tar.gz", "again.tar.gz"))
    assert first.read_bytes() == again.read_bytes()
    with tarfile.open(first) as archive:
        archive.extractall(tmp_path, filter="data")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    reader = [sys.executable, str(READER / "read.py")]
    process = subprocess.run(
        [sys.executable, "run.py", "--case", "nothing", "--", *reader],
        cwd=tmp_path / "lakelog-conformance", env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")


def test_cases_are_made_again_with_the_same_objects(tmp_path: Path) -> None:
    for name in ("columns", "transactions"):
        make(tmp_path / "kit", tmp_path / "place", [name])
        made_now, kept_objects = (objects_of(kit / "cases" / name) for kit in (tmp_path / "kit", KIT))
        assert made_now.keys() == kept_objects.keys()
        assert json.loads(made_now["case.json"])["about"] == json.loads(kept_objects["case.json"])["about"]

"""The conformance kit: lakelog and the second reader, `examples/reader`, give the same answers to all of it."""

from __future__ import annotations

import ast
import hashlib
import importlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance import lakelog_reader
from tests.conformance.make import make
from tests.conformance.rehash import objects_of
from tests.conformance.run import Ask, main, results

from lakelog.catalog.core.state.events import NamespaceEvent, TableEvent
from programs import format_examples
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


NO_COLUMNS = {
    "schema": {"fields": [], "last_id": 0},
    "specs": [{"fields": []}],
    "properties": {},
    "comment": None,
}


def folded(changed: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Callable[..., object]:
    """Return how the second reader folds, after a change of each event. None leaves an event out."""

    def apply(self: Any, state: Any, commit: dict[str, Any], sidecars: list[bytes]) -> Any:
        folds: Any = sys.modules["folds"]
        for stored in commit["events"]:
            event = changed(folds.taken(stored, "Table_event", "an event"))
            if event is not None:
                state = folds._applied(state, event, commit["version"], sidecars, "an event")
        return state

    return apply


def without_metadata(event: dict[str, Any]) -> dict[str, Any]:
    """Keep a table's columns when it is rolled back."""
    return {**event, "metadata": None} if event["event"] == "rolled-back" else event


def tagged_without_metadata(event: dict[str, Any]) -> dict[str, Any]:
    """Give a tag no columns of the table if the event has none."""
    is_tag = event["event"] == "ref-set" and event["kind"] == "tag"
    return {**event, "metadata": event["metadata"] or NO_COLUMNS} if is_tag else event


def unmoved(event: dict[str, Any]) -> dict[str, Any] | None:
    """Leave out that a table has another name."""
    return None if event["event"] == "table-moved" else event


def read_without_decisions(path: str) -> bytes | None:
    """Read a file, unless it is a transaction's decision."""
    place = Path(path)
    return place.read_bytes() if place.is_file() and place.parent.name != "_txn" else None


def below_without_link(self: Any, above: Any, space: str, name: str, fold: Any) -> Any:
    """Return the log that a name leads to, whatever name the log itself has."""
    read: Any = sys.modules["read"]
    entry = above.at().state.names.get((space, name))
    if entry is None or entry["location"] is None:
        return None
    log = read.Log(self.folder, entry["location"], fold)
    view = log.at()
    return None if view.log_id != entry["id"] or view.sealed else (log, view)


def below_without_id(self: Any, above: Any, space: str, name: str, fold: Any) -> Any:
    """Return the log at a place that a name leads to, if it has the name, whatever its id is."""
    read: Any = sys.modules["read"]
    entry = above.at().state.names.get((space, name))
    if entry is None or entry["location"] is None:
        return None
    log = read.Log(self.folder, entry["location"], fold)
    view = log.at()
    if view.state.link != {"namespace": above.place, "name": name}:
        raise read.Refused("another name")
    return None if view.sealed else (log, view)


def root_of_any_proof(leaf: str, index: int, count: int, proof: list[str]) -> str | None:
    """Return the root of a tree by the part of a proof that is needed."""
    node, siblings, last = hashlib.sha256(b"\0" + leaf.encode()).digest(), list(proof), count - 1
    while last:
        if index % 2 or index < last:
            sibling = bytes.fromhex(siblings.pop(0))
            node = hashlib.sha256(b"\1" + (sibling + node if index % 2 else node + sibling)).digest()
        index, last = index >> 1, last >> 1
    return node.hex()


def on_main_columns(self: Any, ref: str) -> Any:
    """Return the contents of a tag or branch with the columns that the table has now."""
    return self if ref == "main" else replace(self, files=self.refs[ref]["files"])


def on_own_columns(self: Any, ref: str) -> Any:
    """Return the contents of a tag or branch with its own columns, of which a branch has none."""
    own = self.refs.get(ref)
    return self if own is None else replace(self, files=own["files"], metadata=own["metadata"])


def column_before_constant(
    self: Any, children: dict[str, Any], field: dict[str, Any], count: int
) -> list[Any]:
    """Return the values of a field in a file by its `names`, and a constant only if there are none."""
    name = field["physical"] if self.names is None else self.names.get(field["id"])
    if name in children:
        return list(self._values(children[name], field["type"], field["name"]))
    constant = self.constants.get(field["id"])
    return [constant and constant["value"]] * count


def column_by_name(self: Any, children: dict[str, Any], field: dict[str, Any], count: int) -> list[Any]:
    """Return the values of a field in a file by its name in the table."""
    if field["name"] in children:
        return list(self._values(children[field["name"]], field["type"], field["name"]))
    return column_before_constant(self, children, field, count)


def begun_in_its_folder(self: Any, folder: str, warehouse: str, file: dict[str, Any]) -> None:
    """Begin to read a file, with its vector in the table's own folder."""
    deletes = file["deletes"]
    if deletes and deletes["path"]:
        file = {**file, "deletes": {**deletes, "path": f"data/{deletes['path'].rpartition('/')[2]}"}}
    begun_anywhere(self, folder, warehouse, file)


def begun_anywhere(self: Any, folder: str, warehouse: str, file: dict[str, Any]) -> None:
    """Begin to read a file, whose vector may be outside of the warehouse."""
    self.folder, self.warehouse, self.file = folder, str(Path(warehouse).parent), file
    self.names, self.constants = file["names"], file["constants"]


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
    ("replaced", "folds", "TableFold.apply", folded(without_metadata)),
    ("links", "read", "Warehouse._below", below_without_link),
    ("links", "read", "Warehouse._below", below_without_id),
    ("links", "folds", "TableFold.apply", folded(unmoved)),
    ("intents", "log_reader", "Log._is_listed", lambda self, intent: True),
    ("intents", "log_reader", "root_by_proof", root_of_any_proof),
    ("intents", "log_reader", "read_file", read_without_decisions),
    ("tags", "folds", "TableState.on", on_main_columns),
    ("tags", "folds", "TableState.on", on_own_columns),
    ("tags", "folds", "TableFold.apply", folded(tagged_without_metadata)),
    ("constants", "table_rows", "_FileReader._column", column_before_constant),
    ("constants", "table_rows", "_FileReader._column", column_by_name),
    ("clone-vectors", "table_rows", "_FileReader.__init__", begun_in_its_folder),
    ("clone-vectors", "table_rows", "_FileReader.__init__", begun_anywhere),
]
"""A case of the kit, and a part of the second reader without which it gets the case wrong."""


def test_every_event_is_in_the_kit() -> None:
    in_commits = {
        event["event"]
        for path in KIT.glob("cases/*/warehouse/**/_log/0*.json")
        for event in json.loads(path.read_bytes()).get("events", ())
    }
    known = {*format_examples.tags(NamespaceEvent), *format_examples.tags(TableEvent)}
    assert in_commits == known


@pytest.mark.parametrize(
    ("case", "module", "name", "broken"),
    BROKEN,
    ids=[f"{each[0]}-{each[2]}-{at}" for at, each in enumerate(BROKEN)],
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


def test_the_kit_is_an_archive_of_the_same_bytes_each_time_that_runs_by_itself(tmp_path: Path) -> None:
    first, again = (write_kit(REPOSITORY, tmp_path / name) for name in ("first.tar.gz", "again.tar.gz"))
    assert first.read_bytes() == again.read_bytes()
    with tarfile.open(first) as archive:
        archive.extractall(tmp_path, filter="data")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    reader = [sys.executable, str(READER / "read.py")]
    done = subprocess.run(
        [sys.executable, "run.py", "--case", "nothing", "--", *reader],
        cwd=tmp_path / "lakelog-conformance", env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_cases_are_made_again_with_the_same_objects(tmp_path: Path) -> None:
    for name in ("columns", "transactions"):
        make(tmp_path / "kit", tmp_path / "place", [name])
        made_now, kept = (objects_of(kit / "cases" / name) for kit in (tmp_path / "kit", KIT))
        assert made_now.keys() == kept.keys()
        assert json.loads(made_now["case.json"])["about"] == json.loads(kept["case.json"])["about"]

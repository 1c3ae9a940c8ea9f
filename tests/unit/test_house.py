"""The shape of the house: no circles of imports, small folders, rooms with a front door, pure rooms that stay pure.

import-linter holds the direction between rooms; this holds what it cannot say.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

TOP = Path(__file__).parents[2]
SOURCES = [TOP / "log/lakelog", TOP / "catalog/lakelog", TOP / "scripts/lakelog"]
CATALOG = TOP / "catalog/lakelog/catalog"
DOORS = {"engine"}
PACKAGES = sorted({path.parent.name for path in CATALOG.glob("*/__init__.py")} - DOORS)
ROOMS = {path.parent.name: path.parent for path in sorted(CATALOG.glob("*/*/__init__.py"))}
PURE = ["files", "planning", "schema", "state"]
FILES_MAX = 30
LINES_MAX = 600

PURE_IMPORTS_OF_THE_LOG = {
    "FeatureNames",
    "BlobRange",
    "Commit",
    "StateDump",
    "Json",
    "WriteRef",
    "each_change",
}
"""What a pure room takes from `lakelog.log`, beside errors and grammar: values, and nothing that reads or writes."""


def modules() -> dict[str, Path]:
    found = {}
    for source in SOURCES:
        for path in source.rglob("*.py"):
            parts = path.relative_to(source.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def imports(name: str) -> list[tuple[str, str, ast.ImportFrom]]:
    """Return what a module imports of ours, anywhere in it: the module, the name, the statement."""
    return list(_imports(name))


def _imports(name: str) -> Iterator[tuple[str, str, ast.ImportFrom]]:
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lakelog"):
            assert node.module is not None and node.level == 0
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if alias.name in EXPORTS.get(node.module, ()):
                    module = node.module
                yield (module if module in MODULES else node.module), alias.name, node


def name_of(room: str) -> str:
    return f"lakelog.catalog.{ROOMS[room].parent.name}.{room}"


def exports(room: str) -> list[str]:
    tree = ast.parse((ROOMS[room] / "__init__.py").read_text())
    return next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )


EXPORTS = {name_of(room): exports(room) for room in ROOMS}


def room_of(name: str) -> str | None:
    parts = name.split(".")
    is_in_one = len(parts) > 3 and parts[3] in ROOMS and ".".join(parts[:4]) == name_of(parts[3])
    return parts[3] if is_in_one else None


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected parts of more than one module (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, next_texts = work[-1]
            for other_text in next_texts:
                if other_text not in index:
                    index[other_text] = low[other_text] = len(index)
                    stack.append(other_text)
                    work.append((other_text, iter(sorted(graph[other_text]))))
                    break
                if other_text in stack:
                    low[node] = min(low[node], index[other_text])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    part, stack = stack[at:], stack[:at]
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "d"}}) == [["b", "c"]]


def test_there_are_no_circles_of_imports() -> None:
    """Also not by way of a room's front door, of imports for type checkers, or of imports within functions."""
    graph: dict[str, set[str]] = {
        name: {target for target, _, _ in imports(name) if target in MODULES} - {name} for name in MODULES
    }
    assert circles(graph) == []


def test_no_folder_has_more_sources_than_a_reader_looks_through() -> None:
    count: dict[str, int] = defaultdict(int)
    for suffix in ("py", "scala"):
        for top in ("log", "catalog", "scripts"):
            for path in (TOP / top).rglob(f"*.{suffix}"):
                count[str(path.parent.relative_to(TOP))] += 1
    assert {folder: files for folder, files in count.items() if files > FILES_MAX} == {}


def test_no_source_is_longer_than_a_reader_reads() -> None:
    long = {}
    for top in ("log", "catalog", "scripts", "tests"):
        for suffix in ("py", "scala"):
            for path in (TOP / top).rglob(f"*.{suffix}"):
                lines = path.read_text().count("\n")
                if lines > LINES_MAX:
                    long[str(path.relative_to(TOP))] = lines
    assert long == {}


WAITS = {"acquire", "awaitTermination", "communicate", "join", "poll", "result", "wait"}
"""Calls of threads, processes, futures and streams whose first argument is a time after which they give up."""


def gives_up_after_s(call: ast.Call) -> Iterator[float]:
    """Yield the times, written as numbers, after which a call gives up."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    values = [word.value for word in call.keywords if word.arg == "timeout"]
    if name in WAITS:
        values += call.args[:1]
    for each in values:
        if isinstance(each, ast.Constant) and isinstance(each.value, int | float):
            yield each.value


def test_no_test_gives_up_before_a_slow_machine_is_done() -> None:
    """What must happen is waited for as long as `tests/patience.py` says. A wait that is a pause lasts a moment."""
    pause_s, soon = 0.5, {}
    for path in sorted((TOP / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                for time_s in gives_up_after_s(node):
                    if pause_s < time_s < 60:
                        soon[f"{path.relative_to(TOP)}:{node.lineno}"] = time_s
    assert soon == {}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_owns_and_documents_what_it_exports(room: str) -> None:
    text = ast.get_docstring(ast.parse((ROOMS[room] / "__init__.py").read_text())) or ""
    assert 3 <= len(text.splitlines()) <= 15
    assert "Rule:" in text and "must not" in text
    face = import_module(name_of(room))
    exported = {name: getattr(face, name) for name in exports(room)}
    assert [
        name
        for name, value in exported.items()
        if isinstance(value, type | FunctionType) and (value.__doc__ or f"{name}(").startswith(f"{name}(")
    ] == []
    assert not set(exported) & {path.stem for path in ROOMS[room].glob("*.py")}, "names of modules"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is_and_exports_nothing(package: str) -> None:
    """What it has is imported from its rooms: a name has one place, and a package that is loaded loads nothing."""
    tree = ast.parse((CATALOG / package / "__init__.py").read_text())
    assert "Rule:" in (ast.get_docstring(tree) or "") and len(tree.body) == 1


def test_other_packages_enter_a_room_by_its_front_door() -> None:
    """Inside a package, modules import each other: the layers of `pyproject.toml` hold their direction."""
    past = [
        f"{module}: {ast.unparse(node)}"
        for module in MODULES
        for target, _, node in imports(module)
        if (room := room_of(target)) is not None
        and node.module != name_of(room)
        and not f"{module}.".startswith(name_of(room).rpartition(".")[0] + ".")
    ]
    assert past == []


def test_pure_rooms_take_only_values_from_the_log() -> None:
    names = {
        name
        for module in MODULES
        if room_of(module) in PURE
        for target, name, _ in imports(module)
        if target == "lakelog.log"
    }
    assert names <= PURE_IMPORTS_OF_THE_LOG
    deeper = {
        target
        for module in MODULES
        if room_of(module) in PURE
        for target, _, _ in imports(module)
        if target.startswith("lakelog.log.")
    }
    assert deeper <= {
        "lakelog.log.decoding",
        "lakelog.log.errors",
        "lakelog.log.grammar",
        "lakelog.log.once",
        "lakelog.log.secrets",
    }

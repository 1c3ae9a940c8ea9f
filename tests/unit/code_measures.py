"""How code reads, in numbers: docstrings as prose, names of local variables, names of classes.

`python -m tests.unit.code_measures` prints them for each room, from the root of the repository.
"""

from __future__ import annotations

import ast
import gc
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.unit.prose_measures import Measures, measured

ROOT = Path(__file__).parents[2]

ROOMS: dict[str, str | tuple[str, ...]] = {
    "log": "log/",
    "core": "catalog/lakelog/catalog/core/",
    "formats": "catalog/lakelog/catalog/formats/",
    "keeping": "catalog/lakelog/catalog/keeping/",
    "looking": "catalog/lakelog/catalog/looking/",
    "front": "catalog/lakelog/catalog/",
    "spark": "catalog/lakelog/spark/",
    "rest": "catalog/lakelog/rest/",
    "scripts": "scripts/",
    "tests": ("tests/", "catalog/lakelog/testing/"),
}
"""Where the sources of a room are. The first room that has a source is its own."""

_VAGUE = """
after all all_ any any_ asked before begun beside bound broken built chosen done drawn each found given gone
held here it kept known left lost made meant no none not_ now one ones other others put rest said same seen
sent shown some sought spent split such taken that then there these this those was what which who whole
written
"""
VAGUE = frozenset(_VAGUE.split())
"""Pronouns, participles and other words that do not say what a variable holds."""

PARTICIPLE = re.compile(r"[a-z]+(?:ed|ing)")

_NOUNS = """
bed bring building ceiling clustering deed embed encoding feed ending expected finding heading hundred king
listing mapping meaning meeting missing need numbering partitioning ping reading ring seed setting shed
sibling spacing speed spelling spring string thing timing warning wing wording
"""
NOUNS = frozenset(_NOUNS.split())
"""Words that only look like participles, and `expected`, which is the field's word in tests."""


@dataclass
class Room:
    """Docstrings, and how often functions bind a local variable or have a parameter of a name."""

    docstrings: list[str] = field(default_factory=list)
    variables: Counter[str] = field(default_factory=Counter)
    parameters: Counter[str] = field(default_factory=Counter)

    @property
    def prose(self) -> Measures:
        return measured(self.docstrings)

    @property
    def vague_percent(self) -> float:
        return _vague_percent(self.variables)

    @property
    def vague_parameters_percent(self) -> float:
        return _vague_percent(self.parameters)


def _vague_percent(names: Counter[str]) -> float:
    vague = sum(count for name, count in names.items() if is_vague(name))
    return 100 * vague / max(1, names.total())


def is_vague(name: str) -> bool:
    return name in VAGUE or (PARTICIPLE.fullmatch(name) is not None and name not in NOUNS)


def is_one_word(name: str) -> bool:
    return len(re.findall(r"[A-Z][a-z0-9]*", name)) == 1


@dataclass
class Tree:
    """All that is measured of the repository, by room, and the public classes at the top of modules."""

    rooms: dict[str, Room]
    classes: defaultdict[str, list[str]]


@cache
def tree() -> Tree:
    """Return the measures of today's sources. Each is parsed once, walked and forgotten."""
    measured_tree = Tree({name: Room() for name in ROOMS}, defaultdict(list))
    gc.disable()  # it would look through each syntax tree several times
    try:
        for path in _sources():
            module = ast.parse((ROOT / path).read_bytes())
            name = next((name for name, folders in ROOMS.items() if path.startswith(folders)), None)
            if name is not None:
                walk(module, measured_tree.rooms[name])
            for class_name in _public_classes(module) if path.startswith(("log/", "catalog/")) else ():
                measured_tree.classes[class_name].append(path)
    finally:
        gc.enable()
    return measured_tree


def _sources() -> Iterator[str]:
    process = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return (path for path in process.stdout.splitlines() if (ROOT / path).is_file())


def _public_classes(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def walk(scope: ast.AST, room: Room) -> None:
    """Add a module, a class or a function to its room, with those inside of it."""
    if text := ast.get_docstring(scope):  # type: ignore[arg-type]
        room.docstrings.append(text)
    bound = set()
    nodes = [scope]
    while nodes:
        for child in ast.iter_child_nodes(nodes.pop()):
            kind = type(child)
            if kind is ast.Name:
                if type(child.ctx) is ast.Store:  # type: ignore[attr-defined]
                    bound.add(child.id)  # type: ignore[attr-defined]
            elif kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
                walk(child, room)
            elif kind not in (ast.Constant, ast.Attribute, ast.Load):
                nodes.append(child)
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        room.variables.update(name for name in bound if not name.startswith("_"))
        parameters = (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)
        room.parameters.update(part.arg for part in parameters if not part.arg.startswith("_"))


def main() -> None:
    for name, room in tree().rooms.items():
        prose = room.prose
        often = ", ".join(f"{word} {prose.per_thousand(word):.2f}" for word in ("what", "where", "one", "if"))
        print(
            f"{name}: {prose.words_a_sentence:.2f} words a sentence, {prose.long_percent:.2f} % long, {often};"
            f" {room.vague_parameters_percent:.2f} % of {room.parameters.total()} parameters are vague;"
            f" {room.vague_percent:.2f} % of {room.variables.total()} variables are vague:",
            ", ".join(f"{word} {count}" for word, count in room.variables.most_common() if is_vague(word))[
                :200
            ],
        )
    classes = tree().classes
    doubled_files = {name: files for name, files in classes.items() if len(files) > 1}
    short = sum(len(files) for name, files in classes.items() if is_one_word(name))
    total = sum(map(len, classes.values()))
    print(f"classes: {total}, {len(doubled_files)} names are doubled, {short} are of one word")


if __name__ == "__main__":
    main()

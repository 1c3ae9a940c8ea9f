"""Which of our classes each compiled class names, read from its constant pool and not from the words of its source.

What the compiler puts into a class by value, such as constants and aliases of types, leaves no name there.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = "org/apache/spark/sql/lakelog/"

Graph = Mapping[str, frozenset[str]]
"""Of each place, the other places that it names."""

# The bytes behind the tag of a constant, by the tag; a text says itself how long it is.
_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
_TEXT, _CLASS, _TAKES_TWO = 1, 7, (5, 6)
_IN_TYPES = re.compile(rf"L({ROOT}[^;<>:()*+\[]+)[;<]")
# A class has its source's syntax tree beside it, as one text: no type is that long.
_LONGEST_TYPE = 4000


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class, the path of its source below the folder of sources, and the classes that it names."""

    name: str
    source: str
    names: frozenset[str]


def classes_of(jar: Path) -> dict[str, ClassFile]:
    """Return our classes in the jar by their names, without `ROOT`."""
    with zipfile.ZipFile(jar) as archive:
        class_files = [
            class_file(archive.read(name)) for name in archive.namelist() if name.endswith(".class")
        ]
    return {file.name: file for file in class_files}


def class_file(data: bytes) -> ClassFile:
    texts, classes, at = _constants(data)
    name = texts[classes[struct.unpack_from(">H", data, at + 2)[0]]].removeprefix(ROOT)
    package, slash, _ = name.rpartition("/")
    source = texts[struct.unpack_from(">H", data, _attribute(data, at, texts, "SourceFile"))[0]]
    types = [texts[index] for index in classes.values()]
    named_texts = {text.removeprefix(ROOT) for text in types if text.startswith(ROOT)}
    for text in texts.values():
        if len(text) < _LONGEST_TYPE:
            named_texts |= {match.removeprefix(ROOT) for match in _IN_TYPES.findall(text)}
    return ClassFile(name, f"{package}{slash}{source}", frozenset(named_texts))


def _constants(data: bytes) -> tuple[dict[int, str], dict[int, int], int]:
    """Return texts and classes (the numbers of their names) by their numbers, and where the constants end."""
    count = struct.unpack_from(">H", data, 8)[0]
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    at, number = 10, 1
    while number < count:
        tag = data[at]
        if tag == _TEXT:
            length = struct.unpack_from(">H", data, at + 1)[0]
            texts[number] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if tag == _CLASS:
                classes[number] = struct.unpack_from(">H", data, at + 1)[0]
            at += 1 + _SIZES[tag]
        number += 2 if tag in _TAKES_TWO else 1
    return texts, classes, at


def _attribute(data: bytes, at: int, texts: Mapping[int, str], name: str) -> int:
    """Return where the content of the class's attribute begins; `at` is where the constants end."""
    at += 8 + 2 * struct.unpack_from(">H", data, at + 6)[0]
    for _ in ("fields", "methods"):
        count = struct.unpack_from(">H", data, at)[0]
        at += 2
        for _ in range(count):
            _, at = _attributes(data, at + 6, texts)
    places, _ = _attributes(data, at, texts)
    return places[name]


def _attributes(data: bytes, at: int, texts: Mapping[int, str]) -> tuple[dict[str, int], int]:
    """Return where the contents of attributes begin, by their names, and where the attributes end."""
    count = struct.unpack_from(">H", data, at)[0]
    at += 2
    places: dict[str, int] = {}
    for _ in range(count):
        name, length = struct.unpack_from(">HI", data, at)
        places[texts[name]] = at + 6
        at += 6 + length
    return places, at


def between_sources(classes: Mapping[str, ClassFile]) -> Graph:
    """Return which sources name which others."""
    return _graph(
        (file.source, [classes[n].source for n in file.names if n in classes]) for file in classes.values()
    )


def between_packages(sources: Graph) -> Graph:
    """Return which packages name which others, each by its folder; the one at the root is `.`."""
    return _graph((package(source), map(package, other_sources)) for source, other_sources in sources.items())


def package(source: str) -> str:
    return source.rpartition("/")[0] or "."


def _graph(pairs: Iterable[tuple[str, Iterable[str]]]) -> Graph:
    found: dict[str, set[str]] = {}
    for place, other_texts in pairs:
        found.setdefault(place, set()).update(other_text for other_text in other_texts if other_text != place)
    return {place: frozenset(others_texts) for place, others_texts in found.items()}


def circle(graph: Graph) -> list[str]:
    """Return places of which each names the next one and the last one the first, as few as possible; [] without one."""
    rings = (_way_back(graph, place) for place in sorted(graph))
    return min((ring for ring in rings if ring), key=len, default=[])


def _way_back(graph: Graph, start: str) -> list[str]:
    came_from = {text: start for text in graph[start]}
    waiting_texts = list(came_from)
    for place in waiting_texts:
        if place == start:
            way = [start]
            while (text_before := came_from[way[0]]) != start:
                way.insert(0, text_before)
            return [start, *way[:-1]]
        for text_after in sorted(graph.get(place, ())):
            if text_after not in came_from:
                came_from[text_after] = place
                waiting_texts.append(text_after)
    return []

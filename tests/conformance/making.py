"""Makes a warehouse of the kit in a folder, with ids that count and a clock that ticks, and asks lakelog about it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.conformance import lakelog_reader
from tests.conformance.rehash import Objects, moved, objects_of
from tests.conformance.run import ABSENT, PLACE

from lakelog.catalog import Catalog, Table
from lakelog.log import LogOptions, wait_for_background
from lakelog.log.errors import NotFound
from lakelog.log.stores.local_store import LocalStore

ALL_VERSIONS = 12
"""Of a table with more versions, some are asked for."""


@dataclass(frozen=True)
class Bench:
    """What a case is made with: a catalog, and the case's folder, in which the warehouse is."""

    catalog: Catalog
    folder: Path


@dataclass(frozen=True)
class Case:
    """A warehouse of the kit. `constants` are settings of lakelog by which few things count as many.

    Without `past`, there are no questions about older versions, because these have too many rows.
    """

    name: str
    about: str
    fill: Callable[[Bench], None]
    constants: Sequence[tuple[Any, str, int]] = ()
    past: bool = True


def made(case: Case, folder: Path) -> tuple[Objects, list[str], list[dict[str, Any]]]:
    """Make a case in an empty folder. Returns its objects, with `PLACE` for the folder, features and questions."""
    folder = folder.resolve()
    warehouse = folder / "warehouse"
    warehouse.mkdir(parents=True)
    ticks, ids = itertools.count(1_790_000_000_000_000, 1_000_000), itertools.count(1)
    letters = str.maketrans("0123456789", "abcdefghij")
    options = LogOptions(
        in_parallel=_one_by_one,
        clock_us=lambda: 1_800_000_000_000_000,
        new_id=lambda: f"id{next(ids):024}".translate(letters),
        in_background=lambda _name, work: work(),
        proposals=False,
    )
    with ExitStack() as patches:
        patches.enter_context(patch.object(LocalStore, "now_us", lambda self, near="": next(ticks)))
        for module, name, value in case.constants:
            patches.enter_context(patch.object(module, name, value))
        writer = {"engine": "conformance", "user": "ada"}
        case.fill(
            Bench(
                Catalog(str(warehouse), writer=writer, log_options=options, options={"fsync": "off"}), folder
            )
        )
        wait_for_background()
    objects = moved(
        objects_of(folder), str(folder), PLACE
    )  # a question may unlink a name that leads to nothing
    asked = json.loads(json.dumps(list(_questions(str(warehouse), case.past))).replace(str(folder), PLACE))
    return objects, features_of(warehouse), asked


def _one_by_one(works: Sequence[Callable[[], None]]) -> None:
    """Side by side, the ids would be given out in any order."""
    for work in works:
        work()


def _questions(warehouse: str, past: bool) -> Iterator[dict[str, Any]]:
    """Yield questions about everything in a warehouse, with lakelog's answers."""
    tables = lakelog_reader.answer([warehouse, "tables"])
    yield {"ask": ["tables"], "answer": tables}
    yield {"ask": ["rows", "no.such"], "exit": ABSENT}
    for path in tables:
        name = json.dumps(path) if any("." in part for part in path) else ".".join(path)
        try:
            table = Catalog(warehouse).load_table(path)
        except NotFound:
            yield _asked(warehouse, "rows", name)
            continue
        yield from _about_head(warehouse, name, table)
        if past:
            yield from _about_past(warehouse, name, table)


def _about_head(warehouse: str, name: str, table: Table) -> Iterator[dict[str, Any]]:
    yield _asked(warehouse, "history", name)
    yield _asked(warehouse, "refs", name)
    for way in ([], *(["--ref", ref] for ref in sorted(table.refs))):
        for question in ("schema", "files", "rows"):
            yield _asked(warehouse, question, name, *way)


def _about_past(warehouse: str, name: str, table: Table) -> Iterator[dict[str, Any]]:
    versions = list(range(1, table.version + 2))
    if len(versions) > ALL_VERSIONS:
        few = {1, 2, 7, 19, 20, 21, len(versions) // 2, len(versions) - 2, len(versions)}
        versions = sorted(few & set(versions))
    schemas: list[Any] = []
    for version in versions:
        schema = _asked(warehouse, "schema", name, "--version", str(version))
        if "answer" in schema and schema["answer"] in schemas:
            schema = {}
        schemas.append(schema.get("answer"))
        yield from filter(
            None,
            (
                schema,
                *(_asked(warehouse, word, name, "--version", str(version)) for word in ("files", "rows")),
            ),
        )
    newest_first = lakelog_reader.answer([warehouse, "history", name])
    middle = newest_first[len(newest_first) // 2]["time_us"]
    for time_us in (middle, middle - 1):
        yield _asked(warehouse, "files", name, "--time", str(time_us))


def _asked(warehouse: str, *ask: str) -> dict[str, Any]:
    try:
        return {"ask": list(ask), "answer": lakelog_reader.answer([warehouse, *ask])}
    except NotFound:
        return {"ask": list(ask), "exit": ABSENT}


def features_of(warehouse: Path) -> list[str]:
    """Return the features of the format that tables of a warehouse name."""
    catalog = Catalog(str(warehouse))
    names = lakelog_reader.answer([str(warehouse), "tables"])
    return sorted({feature for name in names for feature in catalog.load_table(name).features})


def case_json(about: str, features: Sequence[str], questions: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the file of a case: a line for each question, so that a change is easy to see."""
    lines = ",\n".join(f"    {json.dumps(question, ensure_ascii=False)}" for question in questions)
    head = f'  "about": {json.dumps(about)},\n  "features": {json.dumps(features)},\n'
    return f'{{\n{head}  "questions": [\n{lines}\n  ]\n}}\n'.encode()

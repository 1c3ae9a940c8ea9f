"""Makes the conformance kit: `python -m tests.conformance.make FOLDER` (`tests/conformance/kit` in the tree)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.conformance import races, refusals
from tests.conformance.cases import events, links, lives, logs, names, tables
from tests.conformance.making import Case, case_json, made
from tests.conformance.rehash import write_objects

CASES: tuple[Case, ...] = (
    *tables.CASES,
    *logs.CASES,
    *names.CASES,
    *lives.CASES,
    *links.CASES,
    *events.CASES,
    refusals.CASE,
    races.CASE,
)


PLACE = Path(tempfile.gettempdir(), "lakelog-conformance")
"""A folder that is not there, in which the command makes warehouses: always the same."""


def make(kit: Path, place: Path, only: Sequence[str] = ()) -> None:
    """Make the kit in a folder, in place of the kit that it has; with `only`, only these cases of it.

    Warehouses are made in the folder `place`. Puffin files have its path, so another place makes other bytes.
    """
    if not only:
        shutil.rmtree(kit, ignore_errors=True)
    for case in CASES:
        if only and case.name not in only:
            continue
        folder = kit / "cases" / case.name
        shutil.rmtree(folder, ignore_errors=True)
        objects, features, questions = made(case, place / case.name)
        instead, more = refusals.damaged(case.name, objects)
        objects, questions = {**objects, **instead}, [*questions, *more]
        write_objects(folder, {**objects, "case.json": case_json(case.about, features, questions)})
    if not only:
        make_races(kit)


def make_races(kit: Path) -> None:
    """Make the scripts of races, each on a copy of the warehouse that it begins with."""
    for name in races.RACES:
        with tempfile.TemporaryDirectory() as temporary:
            shutil.copytree(kit / "cases" / races.CASE.name, temporary, dirs_exist_ok=True)
            script = races.script_of(name, f"{temporary}/warehouse")
        write_objects(kit, {f"races/{name}.json": races.script_json(script)})


if __name__ == "__main__":
    PLACE.mkdir()
    try:
        make(Path(sys.argv[1]), PLACE, sys.argv[2:])
    finally:
        shutil.rmtree(PLACE)

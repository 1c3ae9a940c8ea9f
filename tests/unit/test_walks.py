"""The walks of ARCHITECTURE.md: what they name is there, is reached in that order, and goes down the rooms.

A walk is a numbered list of `file:function`. Those that begin in Python are taken for real here, and what they name
has to be called in the order in which it stands.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.serving.requests import send
from tests.unit.log.transactions import one_by_one

from lakelog.catalog import Catalog, col
from lakelog.log import LogOptions
from lakelog.rest import WritableAnswers, serve
from lakelog.rest.access import ReloadedFile, TokenGate, hash_of, new_token, rights_of, tokens_of
from lakelog.rest.serving import RunningServer

TOP = Path(__file__).parents[2]
FILES_MAX = 20
COMING_BACK_MAX = 2
SERVED = "A request that is served"
FLOORS = [
    "log/lakelog/log",
    "catalog/lakelog/catalog/(errors|names|retention|times).py",
    "catalog/lakelog/catalog/core/schema",
    "catalog/lakelog/catalog/core/files",
    "catalog/lakelog/catalog/core/planning",
    "catalog/lakelog/catalog/core/state",
    "catalog/lakelog/catalog/core/logs",
    "catalog/lakelog/catalog/core/parquet",
    "catalog/lakelog/catalog/core/writes",
    "catalog/lakelog/catalog/looking/changelog",
    "catalog/lakelog/catalog/looking/audit",
    "catalog/lakelog/catalog/core/ddl",
    "catalog/lakelog/catalog/formats/imports",
    "catalog/lakelog/catalog/keeping/maintenance",
    "catalog/lakelog/catalog/keeping/upkeep",
    "catalog/lakelog/catalog/core/tools",
    "catalog/lakelog/catalog/looking/pictures",
    "catalog/lakelog/catalog/looking/notebooks",
    "catalog/lakelog/catalog/[a-z_]+.py",
    "catalog/lakelog/catalog/engine",
    "catalog/lakelog/spark",
    "catalog/spark",
    "catalog/lakelog/rest",
]
"""From the ground up, as regular expressions; the first one that fits counts."""


def _walks() -> dict[str, list[tuple[str, str]]]:
    text = (TOP / "ARCHITECTURE.md").read_text()
    section = text[text.index("<!-- walks -->") : text.index("<!-- /walks -->")]
    found_pairs: dict[str, list[tuple[str, str]]] = {}
    for line in section.splitlines():
        if line.startswith("### "):
            title = line.removeprefix("### ")
            found_pairs[title] = []
        elif match := re.match(r"\d+\. `([^`:]+):([^`]+)`", line):
            found_pairs[title].append((match[1], match[2]))
    return found_pairs


WALKS = _walks()


def functions(path: Path) -> set[str]:
    """Return the functions of a source, those of classes and functions as Outer.inner."""
    text = path.read_text()
    if path.suffix == ".scala":
        return set(re.findall(r"\bdef (\w+)", text)) | set(
            re.findall(r"\b(?:class|object|trait) (\w+)", text)
        )

    def within(body: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + node.name
                yield from within(node.body, f"{prefix}{node.name}.")

    return set(within(ast.parse(text).body, ""))


def floor(file: str) -> int:
    return next(at for at, pattern in enumerate(FLOORS) if re.match(pattern, file))


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_names_what_is_there(title: str) -> None:
    steps = WALKS[title]
    assert steps
    assert len({file for file, _ in steps}) <= FILES_MAX
    for file, function in steps:
        assert (TOP / file).is_file(), file
        known_functions = functions(TOP / file)
        assert function in known_functions, f"{file} has no {function}"


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_goes_down_the_rooms(title: str) -> None:
    floors = [floor(file) for file, _ in WALKS[title]]
    coming_back = sum(
        floor_after > floor_before for floor_before, floor_after in zip(floors, floors[1:], strict=False)
    )
    assert coming_back <= COMING_BACK_MAX, [
        f"{at} {file}" for at, (file, _) in zip(floors, WALKS[title], strict=True)
    ]


def called(work: Callable[[], Any], *, in_threads: bool = False) -> list[tuple[str, str]]:
    """Run `work` and return our functions in the order of their calls, each as often as it is called.

    With `in_threads`, those that its new threads call are in the list, too.
    """
    found_pairs: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(TOP):
                name = frame.f_code.co_qualname.replace(".<locals>", "")
                found_pairs.append((file.relative_to(TOP).as_posix(), name))

    before = sys.getprofile()
    sys.setprofile(note)
    if in_threads:
        threading.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return found_pairs


def _taken(title: str, catalog: Catalog) -> None:
    if title == "An append from Python":
        catalog.load_table("bank.savings").append(pa.table({"id": [7]}))
    elif title == "A merge from Python":
        merge = catalog.load_table("bank.savings").merge(pa.table({"id": [1, 7]}), on="id")
        merge.when_matched_delete().when_not_matched_insert_all().execute()
    elif title == "A load by name":
        in_this_thread = LogOptions(in_parallel=one_by_one)
        Catalog(catalog.warehouse, log_options=in_this_thread).load_table("bank.savings")
    elif title == "A plan":
        catalog.load_table("bank.savings").plan(col("id") == 1)
    elif title == "A filtered read":
        catalog.load_table("bank.savings").scan(filter="id > 1").to_arrow()
    elif title == "A page to look at":
        catalog.picture("bank.savings").to_html()
    elif title == "An import again":
        catalog.import_table(
            catalog.load_table("bank.savings").export_iceberg().url, "bank.imported", format="iceberg"
        )
    elif title == SERVED:
        _serve_commit(catalog)
    else:
        assert title == "The commit of a transaction"
        with catalog.transaction() as tx:
            tx.load_table("bank.savings").append(pa.table({"id": [8]}))
            tx.load_table("bank.checking").append(pa.table({"id": [8]}))


def _serve_commit(catalog: Catalog) -> None:
    """Serve a single request, a client's commit to a table."""
    folder, token = Path(catalog.warehouse).parent, new_token()
    grant = 'callers = ["ann"]\nnamespace = "bank"\nverbs = ["read", "write"]\n'
    for name, text in (
        ("tokens", f'[tokens]\nann = "{hash_of(token)}"\n'),
        ("rights", f"[[grants]]\n{grant}"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    gate = TokenGate(
        ReloadedFile(str(folder / "tokens"), tokens_of, secret=True),
        ReloadedFile(str(folder / "rights"), rights_of),
    )
    statuses: list[int] = []

    def began(url: str, server: RunningServer) -> None:
        def ask() -> None:
            body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "y"}}]}
            try:
                path = "/v1/namespaces/bank/tables/savings"
                statuses.append(send(url, path, "POST", body, token=token)[0])
            finally:
                server.shutdown()

        threading.Thread(target=ask).start()

    serve(WritableAnswers(catalog), port=0, began=began, gate=gate)
    assert statuses == [200]


@pytest.mark.parametrize("title", [title for title in WALKS if "Spark" not in title and "MERGE" not in title])
def test_a_walk_is_what_happens(title: str, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake", options={"fsync": "off"})
    catalog.create_namespace("bank")
    for name in ("savings", "checking"):
        catalog.create_table(f"bank.{name}", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1, 2]}))
    if title == "An import again":
        source = catalog.load_table("bank.savings").export_iceberg().url
        catalog.import_table(source, "bank.imported", format="iceberg")
        catalog.load_table("bank.savings").append(pa.table({"id": [3]}))
    happened_pairs = iter(called(lambda: _taken(title, catalog), in_threads=title == SERVED))
    for step in WALKS[title]:
        assert step in happened_pairs, f"{step} is not called after the steps before it"

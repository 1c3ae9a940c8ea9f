"""The front door: `lakelog.catalog` exports every error, and every type that a public call takes or returns."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelog.catalog
import lakelog.log
from lakelog.catalog import choices
from lakelog.catalog.core.policies import FAN_IN
from lakelog.catalog.looking.audit import METADATA_TABLES
from lakelog.log.errors import LakelogError


def _modules() -> Iterator[Any]:
    for package in (lakelog.log, lakelog.catalog):
        yield package
        for walk_package in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(walk_package.name)


MODULES = list(_modules())
OURS = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if not name.startswith("_")
    and not inspect.ismodule(value)
    and (
        (inspect.isclass(value) and value.__module__.startswith("lakelog"))
        or (
            not callable(value)
            and name[0].isupper()
            and not name.isupper()
            and "__future__" not in str(value)
        )
        or "Union" in type(value).__name__
    )
}


INSIDE = {
    "ErasureWork": "how an engine reads and writes rows for an erasure; users leave it out",
    "Picture": "the facts of a Sheet, whose public form is their JSON",
    "WrongCall": "a TypeError with advice, which users catch as that or as InvalidInput",
    "TableHead": "what the rooms hand to each other; users have Table",
    "KeyReused": "a request of a client of the server, which answers by 422",
    "DoneBefore": "ends a change in the server whose request was done before; no client sees it",
    "FormerLogUnknown": "a request of a client of the server, which answers as for CommitUnknown",
    "OtherRequestCommitted": "a request of a client of the server, which answers as for CommitUnknown",
    "Changelog": "what Changes reads, and engines by their own requests",
    "FileSet": "of a table's state; users have files by `Table.plan`",
    "LogCache": "of a catalog; never made or taken by a user",
    "TrackedLog": "of a catalog; never made or taken by a user",
    "RowsUnclear": "ends a look at rows inside of a commit, which then goes by files",
    "ContentLine": "a member of what the log stores of a branch",
    "StreamCommitted": "an event, which a batch becomes in the log",
    "Operand": "what Predicate is made of by its own methods",
    "Literal": "typing.Literal, or what Predicate is made of by its own methods",
    "NothingToDo": "never leaves the catalog",
    "VersionMoved": "never leaves the catalog",
}
"""What public members name and users never handle, and why."""


def names_in(annotation: Any) -> set[str]:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    texts = set()
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name):
            texts.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts |= names_in(node.value)
    return texts


def said_by(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the names in the annotations of a class's public members, with the member."""
    for base in cls.__mro__:
        if not base.__module__.startswith("lakelog"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") and name != "__init__":
                continue
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function):
                for parameter, annotation in function.__annotations__.items():
                    if not parameter.startswith("_"):
                        for reported_name in names_in(annotation):
                            yield reported_name, f"{cls.__name__}.{name}"
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if not name.startswith("_"):
                for reported_name in names_in(annotation):
                    yield reported_name, f"{cls.__name__}.{name}"


def test_types_of_public_calls_are_exported() -> None:
    exported_texts = set(lakelog.catalog.__all__)
    missing: dict[str, str] = {}
    for name in sorted(exported_texts):
        value = getattr(lakelog.catalog, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for reported_name, where in said_by(value):
                if reported_name in OURS and reported_name not in exported_texts | set(INSIDE):
                    missing.setdefault(reported_name, where)
        elif inspect.isfunction(value):
            for annotation in value.__annotations__.values():
                for reported_name in names_in(annotation):
                    if reported_name in OURS and reported_name not in exported_texts | set(INSIDE):
                        missing.setdefault(reported_name, name)
    assert missing == {}


def test_metadata_tables_that_signatures_offer_are_those_that_there_are() -> None:
    assert tuple(sorted(METADATA_TABLES)) == choices.METADATA_TABLE_NAMES


def test_errors_are_exported() -> None:
    def below(cls: type) -> Iterator[type]:
        each: type
        for each in cls.__subclasses__():
            yield each
            yield from below(each)

    every = {
        cls.__name__
        for cls in below(LakelogError)
        if cls.__module__.startswith(("lakelog.log", "lakelog.catalog")) and not cls.__name__.startswith("_")
    }
    assert (every | {"LakelogError"}) - set(INSIDE) <= set(lakelog.catalog.__all__)


def test_what_is_exported_is_there() -> None:
    assert all(hasattr(lakelog.catalog, name) for name in lakelog.catalog.__all__)
    assert sorted(lakelog.catalog.__all__) == sorted(set(lakelog.catalog.__all__))


def test_what_is_loaded_later_is_what_type_checkers_see() -> None:
    tree = ast.parse(Path(lakelog.catalog.__file__).read_text())
    seen_by_them, hidden = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in seen_by_them.body if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(seen_by_them.body)
    seen_names = {node.module: tuple(name.name for name in node.names) for node in imports}
    assert seen_names == lakelog.catalog._LATER
    # With it, they would take any name for one that is there.
    assert ast.unparse(hidden.test) == "not TYPE_CHECKING"
    assert [getattr(node, "name", "") for node in hidden.body] == ["__getattr__"]
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = lakelog.catalog.Nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "room, properties",
    [
        ("lakelog.catalog.formats.iceberg", {"lakelog.iceberg": "on"}),
        ("lakelog.catalog.keeping.upkeep", {"lakelog.maintenance": "auto"}),
    ],
)
def test_a_commit_stands_though_what_follows_it_cannot_be_loaded(
    room: str, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = lakelog.catalog.Catalog(f"memory://{room}")
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}), properties=properties)
    # As after another release was installed while this process ran.
    monkeypatch.setitem(sys.modules, room, None)
    for _ in range(FAN_IN):
        table = table.append(pa.table({"id": [1]}))
    assert table.refresh().row_count == FAN_IN
    assert "which was committed: restart this process" in caplog.text


LIFE = """
import pyarrow as pa
from lakelog.catalog import Catalog, CommitConflict, Table, col
catalog = Catalog("memory://life", maintenance="auto")
catalog.create_namespace("a")
table = catalog.create_table("a.t", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1, 2]}))
table = table.delete("id = 1")
assert table.scan(filter=col("id") > 1).to_arrow().num_rows == 1
assert len(list(table.history())) == table.version and len(list(catalog.list_tables("a"))) == 1
from lakelog.cli.main import run
assert run(["ls", "--warehouse", "memory://life"]) == 0
import lakelog.spark.handlers.entries, lakelog.spark.open_catalog
import sys
print(" ".join(sys.modules))
"""
FAR = (
    "lakelog.catalog.formats",
    "lakelog.catalog.keeping",
    "lakelog.catalog.looking",
    "lakelog.catalog.core.writes.sql",
    "lakelog.log.checks",
    "lakelog.log.doctor",
)


def test_what_reads_and_writes_and_lists_loads_the_core_and_the_front_alone() -> None:
    """So does what the bridge loads at its start."""
    process = subprocess.run([sys.executable, "-c", LIFE], check=True, capture_output=True, text=True)
    loaded_parts = process.stdout.splitlines()[-1].split()
    assert "lakelog.catalog.core.schema" in loaded_parts
    assert [text for text in loaded_parts if text.startswith(FAR)] == []

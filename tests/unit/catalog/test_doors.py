"""The users' door has words of users alone: each is in a page, and each type that it exports is in a signature."""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.catalog.test_front_door import names_in, said_by

import lakelog.catalog
from lakelog.catalog import Catalog, Merge, Scan, Table, Transaction

TOP = Path(__file__).parents[3]
KINDS = [Catalog, Transaction, Table, Scan, Merge]
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
MADE = {"design", "errors.md"}
"""Pages that are no user's, or that are made from the code."""


@cache
def words() -> set[str]:
    """Return the words of code in the pages for users."""
    pages = [TOP / "README.md", *(TOP / "docs").rglob("*.md")]
    texts = [path.read_text() for path in pages if not MADE & set(path.relative_to(TOP).parts)]
    return {
        word for text in texts for code in CODE.findall(text) for word in re.findall(r"[A-Za-z_]\w*", code)
    }


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("kind", KINDS)
def test_each_name_is_in_a_page(kind: type) -> None:
    assert public(dir(kind)) - words() == set()


def test_a_notebook_completes_words_of_users_alone() -> None:
    catalog = Catalog("memory://words")
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}))
    for value in (catalog, catalog.begin(), table, table.scan(), table.merge(pa.table({"id": [1]}), "id")):
        assert public(dir(value)) - words() == set()
    assert "table_head" not in dir(table) and {"append", "scan", "is_past"} <= set(dir(table))
    assert dir(lakelog.catalog) == lakelog.catalog.__all__


def said_texts(name: str) -> set[str]:
    """Return the names in the public signatures of what the door exports under `name`."""
    value = getattr(lakelog.catalog, name)
    if inspect.isclass(value):
        return {text for text, _ in said_by(value)}
    if inspect.isfunction(value):
        return {name for annotation in value.__annotations__.values() for name in names_in(annotation)}
    return set(re.findall(r"\w+", str(value)))


def test_each_type_is_in_a_page_or_in_the_signature_of_another() -> None:
    exported_texts = set(lakelog.catalog.__all__)
    errors = {
        name
        for name in exported_texts
        if inspect.isclass(kind := getattr(lakelog.catalog, name)) and issubclass(kind, BaseException)
    }
    needed_errors, texts = errors | (exported_texts & words()), set[str]()
    while new := needed_errors - texts:
        texts |= new
        needed_errors |= {text for name in new for text in said_texts(name)} & exported_texts
    assert exported_texts - texts == set()
    assert lakelog.catalog.__all__ == sorted(exported_texts)

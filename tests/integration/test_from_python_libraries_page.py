"""docs/from-python-libraries.md: each of its calls of Python without Spark is made, on a table of three versions."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog
from lakelog.catalog.foreign_calls import WrongCall

PAGE = Path(__file__).parents[2] / "docs" / "from-python-libraries.md"
SCHEMA = pa.schema({"id": pa.int64(), "day": pa.string()})
_CODE = re.compile(r"`([^`]+)`")


def calls() -> list[str]:
    """Return the code of the last column of the tables about Python without Spark."""
    text = PAGE.read_text(encoding="utf-8")
    sections = [part for part in text.split("\n## ") if part.startswith(("deltalake", "pyiceberg"))]
    assert len(sections) == 2
    found = []
    for section in sections:
        for line in section.splitlines():
            if line.startswith("| `"):
                cells = line.strip("|").rsplit(" | ", 1)
                found += [
                    code for code in _CODE.findall(cells[1]) if "(" in code or code.startswith("table.")
                ]
    return [code for code in dict.fromkeys(found) if not code.startswith(("ALTER ", "with "))]


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(f"memory://{uuid.uuid4().hex}")


@pytest.mark.parametrize("code", calls())
def test_a_call_of_the_page_works(code: str, tmp_path: Path) -> None:
    warehouse, data = str(tmp_path / "warehouse"), tmp_path / "data"
    catalog = Catalog(warehouse)
    catalog.create_namespace("shop")
    rows = pa.table({"id": [1], "day": ["mo"]}, schema=SCHEMA)
    table = catalog.create_table("shop.orders", SCHEMA).append(rows).append(rows)
    data.mkdir()
    pq.write_table(rows, data / "1.parquet")
    if "metadata.json" in code:
        catalog.create_table("shop.source", SCHEMA).append(rows)
        exported = catalog.load_table("shop.source").export_iceberg()
        code = code.replace("/data/metadata.json", exported.url.removeprefix("file://"))
    if "table.cluster()" in code:
        table = table.set_clustering(["day", "id"])
    if "undrop_table" in code:
        catalog.drop_table("shop.orders")
    code = code.replace("/tmp/warehouse", warehouse).replace("/data/orders", str(data))
    names = {"pa": pa, "Catalog": Catalog, "catalog": catalog, "table": table, "rows": rows, "schema": SCHEMA}
    result = eval(code, names)
    assert result is not NotImplemented


FOREIGN = re.compile(r"\b(dt|table|catalog)\.(\w+)(?:\(|\.(\w+)\()")


def foreign_calls() -> list[tuple[str, str, str]]:
    """Return each call of deltalake and pyiceberg in the page: its object, its name, and the call here."""
    text = PAGE.read_text(encoding="utf-8")
    sections = [part for part in text.split("\n## ") if part.startswith(("deltalake", "pyiceberg"))]
    found = []
    for line in (line for section in sections for line in section.splitlines() if line.startswith("| `")):
        there, here = line.strip("|").rsplit(" | ", 1)
        call = FOREIGN.search(there)
        if call is not None:
            owner, name, part = call.groups()
            words = (
                f"{name}.{part}" if part and name in ("alter", "inspect", "optimize", "maintenance") else name
            )
            found.append((owner, words, here))
    return found


@pytest.mark.parametrize(("owner", "name", "here"), foreign_calls())
def test_an_error_advises_what_the_page_says(owner: str, name: str, here: str, catalog: Catalog) -> None:
    """A name of the page is a method here too, or the error for it names a method that the page has."""
    catalog.create_namespace("shop")
    subject: object = catalog if owner == "catalog" else catalog.create_table("shop.orders", SCHEMA)
    try:
        for part in name.split("."):
            subject = getattr(subject, part)
        if "." in name:
            subject()  # type: ignore[operator]
    except (AttributeError, WrongCall) as error:
        methods = set(re.findall(r"\.(\w+)\b", here)) - {"orders", "more"}
        advice = str(error).partition(": ")[2]
        assert "nothing to do" in here + advice or methods & set(re.findall(r"\w+", advice)), (advice, here)
    else:
        assert "." not in name


def test_the_page_has_calls() -> None:
    assert len(calls()) > 40

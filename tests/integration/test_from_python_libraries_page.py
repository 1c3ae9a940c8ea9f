"""docs/from-python-libraries.md: each of its calls of Python without Spark is made, on a table of three versions."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog

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


def test_the_page_has_calls() -> None:
    assert len(calls()) > 40

"""The code of docs/observability.md runs, and the page names all that there is."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog, Observation

PAGE = (Path(__file__).parents[2] / "docs/observability.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_about_costs_runs(tmp_path: Path) -> None:
    place = str(tmp_path / "warehouse")
    catalog = Catalog(place)
    catalog.create_namespace("lab")
    catalog.create_table("lab.people", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1, 2]}))
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, Any] = {}
    exec(compile(code.replace("/tmp/warehouse", place), "observability.md", "exec"), names)
    assert [each.operation for each in names["seen"]] == ["load_table", "scan"]


def test_the_page_has_each_member_of_a_record() -> None:
    members = {field.name for field in dataclasses.fields(Observation)} | {"request_count"}
    assert {name for name in members if f"`{name}`" not in PAGE} == set()

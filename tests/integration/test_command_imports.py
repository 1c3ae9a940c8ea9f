"""`lakelog import --dry-run` says whether an import would change anything."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog import Catalog
from lakelog.cli.main import run


def test_a_dry_run_says_if_nothing_would_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, warehouse = tmp_path / "source", tmp_path / "warehouse"
    source.mkdir()
    pq.write_table(pa.table({"id": [1]}), source / "1.parquet")
    Catalog(warehouse).create_namespace("shop")
    command = ["import", str(source), "shop.orders", "--format", "parquet", "--warehouse", str(warehouse)]

    def said_text(*options: str) -> str:
        assert run([*command, *options]) == 0
        return capsys.readouterr().out

    assert "To do it" in said_text("--dry-run")
    said_text()
    assert "Nothing has changed since the last import" in (unchanged_text := said_text("--dry-run"))
    assert "To do it" not in unchanged_text
    pq.write_table(pa.table({"id": [2]}), source / "2.parquet")
    assert "1 files more" in (changed_text := said_text("--dry-run")) and "To do it" in changed_text
    assert Catalog(warehouse).load_table("shop.orders").row_count == 1

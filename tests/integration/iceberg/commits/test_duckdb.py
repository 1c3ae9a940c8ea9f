"""DuckDB writes through the REST catalog: its deletes are position files, which become vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.iceberg.commits.test_forged_commits import is_clean
from tests.integration.iceberg.readers import duckdb_with_iceberg
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog


def test_duckdb_creates_inserts_deletes_and_alters(tmp_path: Path) -> None:
    warehouse = str(tmp_path / "w")
    catalog = Catalog(warehouse)
    catalog.create_namespace("ns")
    with served(warehouse, writes=True) as url:
        connection = duckdb_with_iceberg().cursor()
        connection.execute(
            f"ATTACH '' AS written (TYPE iceberg, ENDPOINT '{url}', AUTHORIZATION_TYPE 'none')"
        )
        try:
            connection.execute("CREATE TABLE written.ns.t (id BIGINT, s VARCHAR)")
            connection.execute("INSERT INTO written.ns.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
            connection.execute("DELETE FROM written.ns.t WHERE id = 2")
            connection.execute("INSERT INTO written.ns.t VALUES (4, 'd')")
            connection.execute("ALTER TABLE written.ns.t ADD COLUMN n INTEGER")
            rows = connection.execute("SELECT id, s, n FROM written.ns.t ORDER BY id").fetchall()
            # A table with vectors has version 3 of the format, whose updates bring row ids along.
            with pytest.raises(Exception, match="has ids of rows"):
                connection.execute("UPDATE written.ns.t SET s = 'z' WHERE id = 1")
        finally:
            connection.execute("DETACH written")
    table = catalog.load_table("ns.t")
    assert rows == [(1, "a", None), (3, "c", None), (4, "d", None)]
    assert [tuple(row.values()) for row in table.scan().to_arrow().sort_by("id").to_pylist()] == rows
    operations = [entry.operation for entry in table.history()]
    assert operations == ["change schema", "append", "delete", "append", "create"]
    assert is_clean(Catalog(warehouse))

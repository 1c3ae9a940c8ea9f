"""docs/migrating.md runs: tables of a Glue catalog come in, those that cannot are named, and they go back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyiceberg.catalog
import pytest
from tests.spark.sql.pages import programs

from lakelog.catalog import Catalog
from lakelog.testing.fixtures import lakelog_s3  # noqa: F401  (a fixture)
from lakelog.testing.moto_server import S3Server

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"


def test_tables_of_a_glue_catalog_come_in_and_go_out(
    lakelog_s3: S3Server,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket = lakelog_s3.create_bucket("moving")
    where = {
        "s3.endpoint": lakelog_s3.endpoint,
        "s3.region": lakelog_s3.region,
        "s3.access-key-id": lakelog_s3.access_key,
        "s3.secret-access-key": lakelog_s3.secret_key,
        "glue.endpoint": lakelog_s3.endpoint,
        "glue.region": lakelog_s3.region,
        "warehouse": f"{bucket}/iceberg",
    }
    load = pyiceberg.catalog.load_catalog
    monkeypatch.setattr(
        pyiceberg.catalog, "load_catalog", lambda name, **options: load(name, **options, **where)
    )
    source = pyiceberg.catalog.load_catalog("glue", type="glue")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    source.create_namespace("shop")
    for name in ("orders", "people"):
        source.create_table(f"shop.{name}", rows.schema).append(rows)
    odd = pa.schema([pa.field("id", pa.uuid())])
    source.create_table("shop.odd", odd)

    names: dict[str, Any] = {}
    coming_statement, going_statement = programs(PAGE)
    text = coming_statement.text.replace(
        '("s3://lake/warehouse")', f'("{bucket}/lake", options={lakelog_s3.options})'
    )
    exec(compile(text, str(PAGE), "exec"), names)
    assert list(names["refused"]) == ["shop.odd"]
    assert capsys.readouterr().out.count("new 3 rows") == 4

    source.load_table("shop.orders").append(rows)
    assert list(names["bring"](names["tables"], dry_run=False)) == ["shop.odd"]
    lake = Catalog(f"{bucket}/lake", options=lakelog_s3.options)
    assert lake.load_table("shop.orders").row_count == 6
    assert "shop.orders again 6 rows" in capsys.readouterr().out

    for table in (lake.load_table("shop.orders"), lake.load_table("shop.people").delete("id = 2")):
        table.overwrite(table.to_arrow())
    exec(compile(going_statement.text, str(PAGE), "exec"), names)
    out = source.load_table("shop.people_of_lakelog").scan().to_arrow()
    assert sorted(out["id"].to_pylist()) == [1, 3]
    lake.load_table("shop.people").delete("id = 1")
    exec(compile(going_statement.text, str(PAGE), "exec"), names)
    assert source.load_table("shop.people_of_lakelog").scan().to_arrow()["id"].to_pylist() == [3]

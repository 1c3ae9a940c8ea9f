"""Exports in a private bucket: readers sign their requests with credentials of their own."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from tests import s3_servers
from tests.integration.iceberg.readers import duckdb_with_iceberg
from tests.patience import PATIENCE_S

from lakelog.catalog import Catalog, col
from lakelog.rest import WarehouseAnswers, serve

pytestmark = pytest.mark.s3


@pytest.mark.parametrize("name", s3_servers.NAMES)
def test_readers_sign_requests_to_a_private_bucket(name: str, tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.table import StaticTable

    with s3_servers.running(name, tmp_path / "objects") as (server, bucket):
        options = server.options
        catalog = Catalog(f"s3://{bucket}/{uuid.uuid4().hex}/w", options=options)
        catalog.create_namespace("a")
        table = catalog.create_table(
            "a.t", pa.schema({"id": pa.int64()}), properties={"lakelog.iceberg": "on"}
        )
        table = table.append(pa.table({"id": list(range(3000))})).delete(
            col("id").is_in(list(range(0, 3000, 3)))
        )
        url = table.export_iceberg().url
        signed = {
            "s3.endpoint": options["endpoint"],
            "s3.access-key-id": server.access_key,
            "s3.secret-access-key": server.secret_key,
            "s3.region": "us-east-1",
        }
        assert StaticTable.from_metadata(url, signed).scan().to_arrow().num_rows == 2000

        connection = duckdb_with_iceberg().cursor()
        host = options["endpoint"].removeprefix("http://")
        connection.execute(
            f"CREATE OR REPLACE SECRET s (TYPE s3, KEY_ID '{server.access_key}', SECRET '{server.secret_key}', "
            f"ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')"
        )
        assert connection.execute(f"SELECT count(*) FROM iceberg_scan('{table.location}')").fetchall() == [
            (2000,)
        ]

        ready = threading.Event()
        found: list = []

        def began(url: str, server: object) -> None:
            found.extend((url, server))
            ready.set()

        thread = threading.Thread(target=lambda: serve(WarehouseAnswers(catalog), port=0, began=began))
        thread.start()
        assert ready.wait(PATIENCE_S)
        try:
            remaining_catalog = load_catalog("lake", type="rest", uri=found[0], **signed)
            assert remaining_catalog.load_table("a.t").scan().to_arrow().num_rows == 2000
        finally:
            found[1].shutdown()
            thread.join()

"""Pyiceberg writes by the REST catalog to a warehouse in a bucket, with credentials of its own."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from tests import s3_servers
from tests.integration.iceberg.commits.test_forged_commits import is_clean
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog

pytestmark = pytest.mark.s3
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})


@pytest.mark.parametrize("name", s3_servers.NAMES)
def test_a_client_writes_to_a_private_bucket(name: str, tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog

    with s3_servers.running(name, tmp_path / "objects") as (server, bucket):
        catalog = Catalog(f"s3://{bucket}/{uuid.uuid4().hex}/w", options=server.options)
        catalog.create_namespace("ns")
        signed = {
            "s3.endpoint": server.options["endpoint"],
            "s3.access-key-id": server.access_key,
            "s3.secret-access-key": server.secret_key,
            "s3.region": "us-east-1",
            # Arrow's own client sends uploads in parts, which versitygw does not always complete.
            "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        }
        with served(catalog, writes=True) as url:
            lake = load_catalog("lake", type="rest", uri=url, **signed)
            table = lake.create_table("ns.t", schema=ROWS.schema)
            table.append(ROWS)
            table.delete("id = 2")
            creation = lake.create_table_transaction("ns.u", schema=ROWS.schema)
            creation.append(ROWS)
            creation.commit_transaction()
            assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
        assert catalog.load_table("ns.t").scan().to_arrow().sort_by("id")["id"].to_pylist() == [1, 3]
        assert catalog.load_table("ns.u").row_count == 3
        assert is_clean(catalog)

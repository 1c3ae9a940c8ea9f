"""No writer of a table chooses the servers, the credentials or the code of other clients by its properties.

Some clients take settings from a table before their own: https://github.com/apache/iceberg-python/issues/3931.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema.properties import checking
from lakelog.catalog.formats.iceberg.metadata_json import decoded_document, encode_signed, is_as_signed
from lakelog.rest import WritableAnswers

T = "/v1/namespaces/a/tables"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}],
}
ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
LEADING = {
    "py-io-impl": "evil.FileIO",
    "S3.Endpoint": "https://evil.example",
    "s3.endpoint": "https://evil.example",
    "s3.signer.uri": "https://evil.example",
    "client.region": "evil-1",
    "gcs.service.host": "https://evil.example",
    "adls.account-host": "evil.example",
    "hdfs.host": "evil.example",
    "hf.endpoint": "https://evil.example",
    "write.py-location-provider.impl": "evil.Places",
    "write.data.path": "s3://evil/data",
    "uri": "https://evil.example",
    "token": "evil",
    "header.x-evil": "evil",
    "DEFAULT_SCHEME": "hdfs",
    "DEFAULT_NETLOC": "evil.example:9000",
}
KEPT = {"owner": "ann", "s3": "x", "clients": "y"}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "w"))
    catalog.create_namespace("a")
    return catalog


@pytest.fixture
def older_table(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table with such properties, as older versions of lakelog take them."""
    with monkeypatch.context() as patch:
        patch.setattr(checking, "check_foreign", lambda properties: None)
        properties = {**LEADING, **KEPT, "lakelog.iceberg.version": "2"}
        table = catalog.create_table("a.t", ROWS.schema, properties=properties)
    table.append(ROWS)
    return table


@pytest.mark.parametrize("name", LEADING)
@pytest.mark.parametrize("is_staged", [False, True])
def test_a_client_cannot_create_a_table_with_it(catalog: Catalog, name: str, is_staged: bool) -> None:
    request = {"name": "t", "schema": SCHEMA, "stage-create": is_staged, "properties": {name: LEADING[name]}}
    answer = WritableAnswers(catalog).answer("POST", T, body=json.dumps(request).encode())
    assert answer.status == 400 and f"the property {name} is Iceberg's".encode() in answer.body
    assert catalog.list_tables("a") == []


@pytest.mark.parametrize("name", LEADING)
def test_a_client_cannot_set_it(catalog: Catalog, name: str) -> None:
    catalog.create_table("a.t", ROWS.schema)
    updates = [{"action": "set-properties", "updates": {name: LEADING[name]}}]
    body = json.dumps({"requirements": [], "updates": updates}).encode()
    answer = WritableAnswers(catalog).answer("POST", f"{T}/t", body=body)
    assert answer.status == 400 and f"the property {name} is Iceberg's".encode() in answer.body
    assert name not in catalog.load_table("a.t").properties


def test_clients_do_not_see_it_in_a_table_that_has_it(catalog: Catalog, older_table: Any) -> None:
    from pyiceberg.catalog import load_catalog

    with served(catalog, writes=True) as url:
        lake: Any = load_catalog("lake", type="rest", uri=url, **{"s3.endpoint": "https://own.example"})
        table = lake.load_table("a.t")
        for _ in range(2):
            assert table.io.properties["s3.endpoint"] == "https://own.example"
            assert table.io.properties["uri"] == url
            assert not (LEADING.keys() - {"s3.endpoint", "uri"}) & table.io.properties.keys()
            assert not LEADING.keys() & table.properties.keys()
            assert KEPT.items() <= table.properties.items()
            assert table.scan().to_arrow().num_rows
            table.append(ROWS)
    # A client's commit takes nothing away that the client has not seen.
    assert (LEADING | {"token": "***"}).items() <= catalog.load_table("a.t").properties.items()
    assert catalog.load_table("a.t").scan().to_arrow().num_rows == 9


def test_an_export_that_a_writer_of_the_folder_has_forged_does_not_show_it(catalog: Catalog) -> None:
    """With credentials for the table's `metadata` folder, a client can replace exports, hashes included."""
    table = catalog.create_table("a.t", ROWS.schema)
    path = Path(table.export_iceberg().url.removeprefix("file://"))
    document = decoded_document(path.read_bytes())
    path.write_bytes(encode_signed(document | {"properties": document["properties"] | LEADING}))
    assert is_as_signed(decoded_document(path.read_bytes()), path.read_bytes())
    answer = WritableAnswers(catalog).answer("GET", f"{T}/t")
    assert answer.status == 200 and b"evil" not in answer.body

"""A catalog in memory, new for each test, and a second client of the same warehouse."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog

SCHEMA = pa.schema(
    [pa.field("id", pa.int64()), pa.field("region", pa.string()), pa.field("amount", pa.float64())]
)


def rows(*ids: int, region: str = "EU") -> pa.Table:
    return pa.table(
        {"id": list(ids), "region": [region] * len(ids), "amount": [float(id) for id in ids]}, schema=SCHEMA
    )


@pytest.fixture
def warehouse() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def client(warehouse: str) -> Callable[[], Catalog]:
    """Makes a client that shares nothing with others but the warehouse."""
    return lambda: Catalog(warehouse, writer={"engine": "test"})


@pytest.fixture
def catalog(client: Callable[[], Catalog]) -> Catalog:
    return client()

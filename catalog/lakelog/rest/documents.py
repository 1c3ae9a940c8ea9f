"""The JSON of Iceberg's REST catalog protocol: one function for each document that a client reads.

A server answers with them, and a published tree holds them. They must not know which of the two it is.
Source: the OpenAPI description of Apache Iceberg's REST catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lakelog.catalog import Catalog
from lakelog.catalog.names import Identifier

SEPARATOR = "\x1f"
"""Between the parts of a namespace's name, in paths and parameters."""

_NAMESPACE = "/v1/{prefix}/namespaces"
_TABLE = f"{_NAMESPACE}/{{namespace}}/tables"
_VIEW = f"{_NAMESPACE}/{{namespace}}/views"
ENDPOINTS = [
    f"GET {_NAMESPACE}",
    f"GET {_NAMESPACE}/{{namespace}}",
    f"HEAD {_NAMESPACE}/{{namespace}}",
    f"GET {_TABLE}",
    f"GET {_TABLE}/{{table}}",
    f"HEAD {_TABLE}/{{table}}",
    f"GET {_VIEW}",
    f"GET {_VIEW}/{{view}}",
    f"HEAD {_VIEW}/{{view}}",
]


def config() -> Any:
    return {"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS}


def namespaces(names: Sequence[Identifier]) -> Any:
    return {"namespaces": names}


def namespace(catalog: Catalog, name: Identifier) -> Any:
    return {"namespace": name, "properties": catalog.load_namespace(name)}


def identifiers(names: Sequence[Identifier]) -> Any:
    """Return the list of a namespace's tables, or of its views."""
    return {"identifiers": [{"namespace": each[:-1], "name": each[-1]} for each in names]}


def loaded(metadata_url: str, metadata: bytes) -> Any:
    """Return a table, or a view."""
    return {"metadata-location": metadata_url, "metadata": msgspec.Raw(metadata), "config": {}}


def with_refs_only(metadata: bytes) -> bytes:
    """Return a table's metadata with the snapshots of tags and branches alone."""
    document = msgspec.json.decode(metadata)
    wanted = {each["snapshot-id"] for each in document["refs"].values()}
    document["snapshots"] = [each for each in document["snapshots"] if each["snapshot-id"] in wanted]
    return msgspec.json.encode(document)

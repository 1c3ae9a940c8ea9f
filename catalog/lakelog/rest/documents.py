"""The JSON of Iceberg's REST catalog protocol: a function for each document that a client reads.

A server answers with these documents, and a published tree contains them. This module must not know which of
the two uses it. Source: the OpenAPI description of Apache Iceberg's REST catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from lakelog.catalog import Catalog
from lakelog.catalog.engine.keyed_requests import LIFETIME_S
from lakelog.catalog.names import Identifier

SEPARATOR = "\x1f"
"""The separator between the parts of a namespace's name, in paths and parameters."""

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


WRITE_ENDPOINTS = [
    "POST /v1/{prefix}/namespaces",
    f"POST {_NAMESPACE}/{{namespace}}/properties",
    f"DELETE {_NAMESPACE}/{{namespace}}",
    f"POST {_TABLE}",
    f"POST {_TABLE}/{{table}}",
    f"DELETE {_TABLE}/{{table}}",
    f"POST {_TABLE}/{{table}}/metrics",
    "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
    f"POST {_VIEW}",
    f"POST {_VIEW}/{{view}}",
    f"DELETE {_VIEW}/{{view}}",
    "POST /v1/{prefix}/views/rename",
]
"""The endpoints of a server that also changes the warehouse."""

CREDENTIALS_ENDPOINT = f"GET {_TABLE}/{{table}}/credentials"
"""The endpoint of a server that hands out credentials."""


KEY_LIFETIME = f"PT{LIFETIME_S // 60}M"
"""How long a client may send a request again with the same key."""


def config(endpoints: Sequence[str] = ENDPOINTS, *, takes_keys: bool = False) -> Any:
    keys = {"idempotency-key-lifetime": KEY_LIFETIME} if takes_keys else {}
    return {"defaults": {}, "overrides": {}, **keys, "endpoints": endpoints}


def namespaces(names: Sequence[Identifier]) -> Any:
    return {"namespaces": names}


def namespace(catalog: Catalog, name: Identifier) -> Any:
    return {"namespace": name, "properties": catalog.load_namespace(name)}


def identifiers(names: Sequence[Identifier]) -> Any:
    """Return the list of a namespace's tables, or of its views."""
    return {"identifiers": [{"namespace": name[:-1], "name": name[-1]} for name in names]}


def loaded(metadata_url: str, metadata: bytes) -> Any:
    """Return a table, or a view."""
    return {"metadata-location": metadata_url, "metadata": msgspec.Raw(metadata), "config": {}}


def with_credentials(document: Any, name: Identifier, url: str, config: Mapping[str, str]) -> Any:
    """Return the document of a table with the settings by which a client reaches its files at `url`.

    Clients look for credentials in both members. The path leads to new credentials, below the address of the catalog.
    """
    namespace, table = quote(SEPARATOR.join(name[:-1]), safe=""), quote(name[-1], safe="")
    path = f"v1/namespaces/{namespace}/tables/{table}/credentials"
    return {
        **document,
        "config": {**config, "client.refresh-credentials-endpoint": path},
        **credentials(url, config),
    }


def credentials(url: str, config: Mapping[str, str]) -> Any:
    """Return credentials for the table at `url`, always as a single entry. Iceberg's Java library refuses more."""
    return {"storage-credentials": [{"prefix": f"{url.rstrip('/')}/", "config": config}]}


def with_refs_only(metadata: bytes) -> bytes:
    """Return a table's metadata with only the snapshots of tags and branches."""
    document = msgspec.json.decode(metadata)
    ref_ids = {entry["snapshot-id"] for entry in document["refs"].values()}
    document["snapshots"] = [entry for entry in document["snapshots"] if entry["snapshot-id"] in ref_ids]
    return msgspec.json.encode(document)

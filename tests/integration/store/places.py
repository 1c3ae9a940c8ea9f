"""Each kind of store, empty, for the contract tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import cloud_servers, s3_servers
from tests.integration.store.shared_store import shared_scheme

from lakelog.log import ObjectStore, open_store

HERE = ("memory", "folder", "folder-without-fsync", "shared")
KINDS = (*HERE, *s3_servers.NAMES, *cloud_servers.NAMES)


@contextmanager
def place(kind: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Give a url below which stores can be made, and the options for it."""
    if kind == "memory":
        yield f"memory://{uuid.uuid4().hex}", {}
    elif kind == "shared":
        with shared_scheme():
            yield f"shared://{uuid.uuid4().hex}/w", {}
    elif kind.startswith("folder"):
        yield str(folder / "store"), {"fsync": "off"} if kind.endswith("without-fsync") else {}
    elif kind in cloud_servers.NAMES:
        with cloud_servers.running(kind, folder / "objects") as cloud:
            yield f"{cloud.url}/{uuid.uuid4().hex}", cloud.options
    else:
        with s3_servers.running(kind, folder / "objects") as (server, bucket):
            yield f"s3://{bucket}/{uuid.uuid4().hex}", server.options


def empty_store(given: tuple[str, dict[str, str]]) -> ObjectStore:
    url, options = given
    return s3_servers.sharing_a_client(open_store(f"{url}/{uuid.uuid4().hex}", options), options)

"""The S3 servers that tests run against: moto behind a lock and versitygw, or the one that the environment names.

LAKELOG_TEST_S3_ENDPOINT and LAKELOG_TEST_S3_BUCKET name any S3, with its credentials in AWS's own variables; then the
tests run against that one only.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakelog.log import ObjectStore
from lakelog.log.stores.s3_clients import S3Clients
from lakelog.log.stores.s3_place import CLIENT
from lakelog.log.stores.s3_store import S3Store
from lakelog.testing.moto_server import REGION, S3Server, moto_server
from lakelog.testing.versitygw import INSTALL, find_versitygw, versitygw

ENDPOINT = "LAKELOG_TEST_S3_ENDPOINT"
BUCKET = "LAKELOG_TEST_S3_BUCKET"

NAMES = ("external",) if os.environ.get(ENDPOINT) else ("moto", "versitygw")


@contextmanager
def running(name: str, folder: Path) -> Iterator[tuple[S3Server, str]]:
    """Run one of NAMES until the block ends, with its credentials in the environment; give it and a bucket in it."""
    if name == "external":
        yield _external(), os.environ.get(BUCKET, "lakelog")
        return
    if name == "versitygw" and find_versitygw() is None:
        pytest.skip(
            f"no versitygw on this machine, so nothing ran against a real S3 server; install it: {INSTALL}"
        )
    # moto's servers in a process share their objects, so each needs a bucket that no other has.
    bucket = f"lake-{uuid.uuid4().hex[:12]}"
    starting = moto_server(bucket) if name == "moto" else versitygw(folder, bucket)
    with starting as server, server.credentials():
        yield server, bucket


_clients: dict[tuple[str, str, tuple[tuple[str, str], ...]], S3Clients] = {}


def sharing_a_client(store: ObjectStore, options: Mapping[str, str]) -> ObjectStore:
    """Return the store; one on S3 sends its requests as all those with these options do, which have to be of one server
    and one user. To make a client costs more than the requests of most tests."""
    if isinstance(store, S3Store):
        of = store.clients.bucket, os.environ.get(CLIENT, ""), tuple(sorted(options.items()))
        store.clients = _clients.setdefault(of, store.clients)
    return store


def _external() -> S3Server:
    return S3Server(
        os.environ[ENDPOINT],
        os.environ.get("AWS_ACCESS_KEY_ID", ""),
        os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
        os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or REGION,
    )

"""A server of a warehouse in a thread of this process, and a bucket that all clients may read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.patience import PATIENCE_S

from lakelog.catalog import Catalog
from lakelog.rest import WarehouseAnswers, WritableAnswers, serve
from lakelog.rest.serving import RunningServer
from lakelog.rest.vending import CredentialVendor
from lakelog.testing.moto_server import S3Server


@contextmanager
def served(
    warehouse: str | Catalog,
    *,
    writes: bool = False,
    vendor: CredentialVendor | None = None,
    **options: Any,
) -> Iterator[str]:
    """Serve a warehouse; the URL is that of its REST catalog. With `writes`, clients may change it.

    With `vendor`, clients that ask for credentials get them.

    `options` are those of `serve`.
    """
    servers: list[RunningServer] = []
    urls: list[str] = []
    ready = threading.Event()

    def began(url: str, server: RunningServer) -> None:
        urls.append(url)
        servers.append(server)
        ready.set()

    catalog = Catalog(warehouse) if isinstance(warehouse, str) else warehouse
    answers = (WritableAnswers if writes else WarehouseAnswers)(catalog, vendor)
    options = {"port": 0, "check_ready": answers.check_ready, **options}
    thread = threading.Thread(target=lambda: serve(answers, began=began, **options))
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield urls[0]
    finally:
        servers[0].shutdown()
        thread.join()


@contextmanager
def readable_by_all(server: S3Server, bucket: str) -> Iterator[None]:
    """Let clients without a name read a bucket."""
    policy = [
        {
            "Effect": "Allow",
            "Principal": "*",
            "Action": f"s3:{action}",
            "Resource": f"arn:aws:s3:::{bucket}{below}",
        }
        for action, below in (("GetObject", "/*"), ("ListBucket", ""))
    ]
    with server.client() as client:
        client.put_bucket_policy(
            Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": policy})
        )
        yield
        client.delete_bucket_policy(Bucket=bucket)

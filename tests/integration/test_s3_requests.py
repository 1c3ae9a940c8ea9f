"""Counted requests to S3 are those on the wire, even if the client library repeats a request."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest
from tests import s3_servers
from tests.processes.faulty_proxy import FaultyProxy, faulty_proxy

from lakelog.catalog import Catalog, Observation
from lakelog.log import wait_for_background
from lakelog.testing.moto_server import S3Server

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module", params=s3_servers.NAMES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[S3Server, str]]:
    with s3_servers.running(request.param, tmp_path_factory.mktemp("s3") / "objects") as running_pair:
        yield running_pair


def kind_of(request: tuple[str, str, int]) -> str:
    command, path, _ = request
    query = parse_qs(urlsplit(path).query, keep_blank_values=True)
    if "list-type" in query:
        return "list"
    return "delete" if "delete" in query else {"GET": "get", "PUT": "put", "HEAD": "head"}[command]


def test_requests_and_bytes_are_those_that_a_proxy_counts(server: tuple[S3Server, str]) -> None:
    at, bucket = server
    seen_observations: list[Observation] = []
    asked: list[tuple[str, str, int]] = []

    with faulty_proxy(at.endpoint) as proxy:

        def passed(command: str, path: str, size: int) -> None:
            asked.append((command, path, size))

        proxy.refuse = passed
        proxy.answers = []
        catalog = Catalog(
            f"s3://{bucket}/{uuid.uuid4().hex}",
            options={**at.options, "endpoint": proxy.endpoint},
            observe=seen_observations.append,
        )
        catalog.create_namespace("a")
        table = catalog.create_table("a.t", pa.schema({"text": pa.string()}))
        big = pa.table({"text": [f"{number * 2654435761 % 2**32:08x}" * 6 for number in range(60_000)]})
        proxy.faults = ["503", "lost-503"]  # of the next conditional puts, which are sent again
        table = table.append(big).append(big.slice(0, 10))
        table = table.delete("text = '" + "00000000" * 6 + "'")
        assert table.to_arrow().num_rows > 60_000
        table.compact()
        catalog.expire(retain_last=1, dry_run=False)
        catalog.vacuum(dry_run=False)
        wait_for_background()
        _compare(seen_observations, asked, proxy)


def _compare(seen: list[Observation], asked: list[tuple[str, str, int]], proxy: FaultyProxy) -> None:
    requests = sum((Counter(observation.requests) for observation in seen), Counter())
    requests["put"] += requests.pop("put_if_absent")
    assert requests == Counter(map(kind_of, asked)) and proxy.injected.total() == 2
    total = sum(size for each in asked if kind_of(each) == "put" for size in [each[2]])
    assert sum(observation.bytes_written for observation in seen) == total
    got = [
        size
        for command, path, status, size in proxy.answers or ()
        if kind_of((command, path, 0)) == "get" and status in (200, 206)
    ]
    assert sum(observation.bytes_read for observation in seen) == sum(got) > 1_000_000

"""Reads from S3: at any position, and through s3fs, whose answers may break off."""

from __future__ import annotations

import io
from typing import Any

import pytest

from lakelog.log.stores.s3_errors import RefusedAnswer
from lakelog.log.stores.s3_files import S3Files
from lakelog.log.stores.s3_input import BLOCK_SIZE_BYTES, S3Input
from lakelog.log.stores.s3_store import END_BYTES, S3Store

DATA = bytes(range(251)) * 40_000  # two blocks and a half


def opened_input(asked: list[tuple[int, int]]) -> S3Input:
    def fetch(first: int, end: int) -> bytes:
        asked.append((first, end))
        return DATA[first:end]

    return S3Input(len(DATA), fetch)


def test_an_object_is_read_at_any_position_and_what_follows_is_read_along() -> None:
    asked_pairs: list[tuple[int, int]] = []
    file = opened_input(asked_pairs)
    assert file.seek(10) == 10 and file.read(5) == DATA[10:15] and file.tell() == 15
    assert file.read(100) == DATA[15:115] and asked_pairs == [(10, 10 + BLOCK_SIZE_BYTES)]
    assert file.seek(-8, io.SEEK_END) == len(DATA) - 8 and file.read(100) == DATA[-8:] and file.read(1) == b""
    assert asked_pairs[1:] == [(len(DATA) - 8, len(DATA))]
    file.seek(0)
    assert io.BufferedReader(file).read() == DATA
    with pytest.raises(ValueError, match="before the beginning"):
        file.seek(-1)


def test_what_is_only_partly_there_is_completed() -> None:
    asked_pairs: list[tuple[int, int]] = []
    file = opened_input(asked_pairs)
    file.read(1)
    file.seek(BLOCK_SIZE_BYTES - 2)
    assert file.read(5) == DATA[BLOCK_SIZE_BYTES - 2 : BLOCK_SIZE_BYTES + 3]
    assert asked_pairs == [(0, BLOCK_SIZE_BYTES), (BLOCK_SIZE_BYTES, 2 * BLOCK_SIZE_BYTES)]
    file.seek(0)
    assert file.read() == DATA and asked_pairs[2:] == [(0, len(DATA))]


class Body:
    def __init__(self, breaks: bool) -> None:
        self.breaks = breaks

    async def __aenter__(self) -> Body:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def read(self) -> bytes:
        if self.breaks:
            raise ConnectionResetError("broke off")
        return DATA


@pytest.mark.parametrize(("breaks", "gets"), [(0, True), (2, True), (3, False)])
def test_a_get_whose_body_breaks_off_is_retried(
    breaks: int, gets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining_numbers = [breaks]

    async def call(operation: str, **arguments: Any) -> dict[str, Any]:
        remaining_numbers[0] -= 1
        return {"Body": Body(remaining_numbers[0] >= 0)}

    files = S3Files(
        "bucket",
        endpoint=None,
        region=None,
        path_style=False,
        connect_timeout_s=1,
        read_timeout_s=1,
        attempts_max=3,
        connections_max=1,
    )
    monkeypatch.setattr(files.fs, "_call_s3", call)
    (found,) = files.calls("get_object", [{"Key": "key"}])
    if gets:
        assert found["Body"] == DATA
    else:
        assert isinstance(found, ConnectionResetError)


LAST = len(DATA) - 1


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        ((206, DATA[-END_BYTES:], f"bytes {LAST + 1 - END_BYTES}-{LAST}/{LAST + 1}"), 1),
        ((200, DATA, None), 1),
        # Servers that do not know to count from the end.
        ((206, DATA[: END_BYTES + 1], f"bytes 0-{END_BYTES}/{LAST + 1}"), 2),
        ((206, DATA[-END_BYTES:], f"bytes {LAST + 1 - END_BYTES}-{LAST}/*"), 2),
        ((206, DATA[-END_BYTES:], None), 2),
        (RefusedAnswer("get_object", 416, "RequestedRangeNotSatisfiable", {}, 0), 2),
        (RefusedAnswer("get_object", 416, "", {}, 0), 2),
        (RefusedAnswer("get_object", 501, "NotImplemented", {}, 0), 2),
    ],
)
def test_the_end_of_a_parquet_file_is_its_end_whatever_a_server_makes_of_the_range(
    answer: Any, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = S3Store("s3://b")
    asked_texts: list[str] = []

    def call(operation: str, key: str, **arguments: Any) -> dict[str, Any]:
        asked_texts.append(operation)
        if operation == "head_object":
            return {"ETag": "e", "ContentLength": len(DATA)}
        if len(asked_texts) > 1:
            first, end = arguments["Range"].removeprefix("bytes=").split("-")
            return {"ResponseMetadata": {"HTTPStatusCode": 206}, "Body": DATA[int(first) : int(end) + 1]}
        if isinstance(answer, Exception):
            raise answer
        status, body, part = answer
        found = {"ResponseMetadata": {"HTTPStatusCode": status}, "ETag": "e", "Body": body}
        return found if part is None else {**found, "ContentRange": part}

    monkeypatch.setattr(store, "call", call)
    with store.open_input("x.parquet") as file:
        assert len(asked_texts) == requests
        file.seek(-END_BYTES, io.SEEK_END)
        assert file.read() == DATA[-END_BYTES:]
        assert len(asked_texts) == (1 if requests == 1 else 3)

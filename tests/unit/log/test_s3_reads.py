"""Reads from S3 whose body breaks off: retried, and reported in the store's own errors."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from lakelog.log.errors import StorageError
from lakelog.log.stores.s3_input import S3Input
from lakelog.log.stores.s3_store import ATTEMPTS_MAX, S3Store

DATA = bytes(range(100))


class Breaking(io.BytesIO):
    """Breaks off so many reads, each after it moved on."""

    def __init__(self, breaks: int) -> None:
        super().__init__(DATA)
        self.breaks = breaks

    def read(self, size: int | None = -1) -> bytes:
        read = super().read(size)
        if self.breaks:
            self.breaks -= 1
            raise ConnectionResetError("broke off")
        return read


def opened(breaks: int) -> S3Input:
    return S3Input(Breaking(breaks), 3, lambda error: StorageError(f"cannot read: {error}", location="x"))


@pytest.mark.parametrize("breaks", [0, 1, 2])
def test_a_read_that_broke_off_is_done_again_from_where_it_began(breaks: int) -> None:
    file = opened(breaks)
    file.seek(10)
    assert file.read(5) == DATA[10:15]
    assert file.tell() == 15
    assert io.BufferedReader(file).read() == DATA[15:]


def test_a_read_that_keeps_breaking_off_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match="cannot read"):
        opened(3).read(5)


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


class FileSystem:
    def __init__(self, breaks: int) -> None:
        self.breaks = breaks

    async def _call_s3(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self.breaks -= 1
        return {"Body": Body(self.breaks >= 0)}


@pytest.mark.parametrize(("breaks", "gets"), [(0, True), (ATTEMPTS_MAX - 1, True), (ATTEMPTS_MAX, False)])
def test_a_get_whose_body_breaks_off_is_retried(
    breaks: int, gets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = S3Store("s3://bucket/prefix")
    files = FileSystem(breaks)
    monkeypatch.setattr(store, "_fs", lambda: files)
    found = asyncio.run(store._get("key"))
    if gets:
        assert found == DATA
    else:
        assert isinstance(found, StorageError)

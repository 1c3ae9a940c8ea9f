"""An S3 object for reading at any position. Reads fetch later bytes too, where Parquet readers continue."""

import io
from collections.abc import Callable
from typing import Any

from lakelog.log.costs import tallied, tally_now

BLOCK_SIZE_BYTES = 4 * 1024 * 1024


class S3Input(io.RawIOBase):
    """A reader of an object. `fetch` returns bytes between positions, retries, and raises the store's errors.

    `end` is the object's last bytes, if they are already read.
    """

    def __init__(self, size: int, fetch: Callable[[int, int], bytes], end: bytes = b"") -> None:
        super().__init__()
        self._size = size
        self._fetch = fetch
        self._position = 0
        self._block_at = size - len(end)
        self._block = end
        # Libraries read it in threads of their own.
        self._tally = tally_now()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"position {start + offset} is before the beginning")
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return `size` bytes, by default all that remain. Raises StorageError if they cannot be read."""
        first = self._position
        end = self._size if size is None or size < 0 else min(first + size, self._size)
        if first >= end:
            return b""
        data = self._block[first - self._block_at : end - self._block_at] if first >= self._block_at else b""
        if first + len(data) < end:
            at = first + len(data)
            with tallied(self._tally or tally_now()):
                block = self._fetch(at, min(max(end, at + BLOCK_SIZE_BYTES), self._size))
            self._block_at, self._block = at, block
            data += block[: end - at]
        self._position = first + len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

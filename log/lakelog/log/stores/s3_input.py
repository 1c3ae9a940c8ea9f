"""An S3 object to read from at any position: a read that breaks off is retried, then raised as the store's error."""

import io
from collections.abc import Callable
from typing import Any

from lakelog.log.costs import tallied, tally_now
from lakelog.log.errors import LakelogError


class S3Input(io.RawIOBase):
    """The file that s3fs opened, whose reads may end in any exception of the libraries below it."""

    def __init__(self, opened: Any, attempts_max: int, error_of: Callable[[Exception], LakelogError]) -> None:
        super().__init__()
        self._opened = opened
        self._attempts_max = attempts_max
        self._error_of = error_of
        # Libraries read it by threads of their own.
        self._tally = tally_now()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._opened.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._opened.seek(offset, whence))

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, all that are left by default. StorageError where they cannot be had."""
        position = self.tell()
        for tried in range(1, self._attempts_max + 1):
            try:
                with tallied(self._tally or tally_now()):
                    return bytes(self._opened.read(size))
            except Exception as error:
                if tried == self._attempts_max:
                    raise self._error_of(error) from error
                self.seek(position)
        raise AssertionError("an attempt returns or is the last")

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._opened.close()
        super().close()

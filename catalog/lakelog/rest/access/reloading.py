"""A file that is read at the start, and again whenever it has changed.

Rule: a file that cannot be read, or that is refused, changes nothing. The last good contents stay, and the log says
why. A new file counts once it has been the same for a while, since half of a file may grant more than all of it.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from lakelog.log.clocks import steady_clock_us
from lakelog.log.errors import InvalidInput, LakelogError

T = TypeVar("T")

FILE_BYTES_MAX = 4 * 1024 * 1024
CHECK_EVERY_S = 2.0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_READ = stat.S_IRWXO
_LOGGER = logging.getLogger("lakelog.rest")

FileStamp = tuple[int, int, int]
"""The inode, size and time of a file: it changes if the file does."""


class ReloadedFile(Generic[T]):
    """The contents of a file, as `read` understands them. Threads may share it.

    Raises InvalidInput if the file is refused at the start. A `secret` file is also refused if others may read it.
    """

    def __init__(
        self,
        path: str,
        read: Callable[[bytes], T],
        *,
        secret: bool = False,
        check_every_s: float = CHECK_EVERY_S,
    ) -> None:
        self._path = path
        self._read = read
        self._secret = secret
        self._check_every_us = round(check_every_s * 1_000_000)
        self._lock = threading.Lock()
        self._checked_us = steady_clock_us()
        data, self._stamp = self._data()
        self._candidate = self._stamp
        self._value = self._parsed(data)

    @property
    def value(self) -> T:
        """The contents. Looks for a change now and then, in the thread that asks."""
        if steady_clock_us() - self._checked_us >= self._check_every_us and self._lock.acquire(
            blocking=False
        ):
            try:
                self._checked_us = steady_clock_us()
                self._check()
            finally:
                self._lock.release()
        return self._value

    def _check(self) -> None:
        try:
            stamp = _stamp(os.stat(self._path))
            if stamp == self._stamp:
                return
            if stamp != self._candidate:
                self._candidate = stamp  # it may still be written
                return
            self._stamp = stamp  # if it is refused, it is refused once
            data, read_stamp = self._data()
            if read_stamp != stamp:
                self._candidate = read_stamp
                return
            self._value = self._parsed(data)
        except (LakelogError, OSError) as error:
            _LOGGER.error("%s is not used, and the contents before it stay: %s", self._path, error)
        else:
            _LOGGER.warning("%s has changed, and is used from now on", self._path)

    def _parsed(self, data: bytes) -> T:
        try:
            return self._read(data)
        except InvalidInput as error:
            raise InvalidInput(f"{self._path}: {error.message}") from None

    def _data(self) -> tuple[bytes, FileStamp]:
        try:
            with open(self._path, "rb") as source:
                status = os.fstat(source.fileno())
                self._check_owner(status)
                data = source.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise InvalidInput(f"{self._path} cannot be read: {error.strerror}") from None
        if len(data) > FILE_BYTES_MAX:
            raise InvalidInput(f"{self._path} is larger than {FILE_BYTES_MAX:,} bytes")
        return data, _stamp(status)

    def _check_owner(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{self._path} is no file")
        if status.st_uid not in (0, os.geteuid()):
            raise InvalidInput(
                f"{self._path} belongs to another user, who could change it: give it to the server's user, or to root"
            )
        if status.st_mode & _OTHERS_WRITE:
            raise InvalidInput(f"other users may change {self._path}: run chmod go-w on it")
        if self._secret and status.st_mode & _OTHERS_READ:
            raise InvalidInput(f"other users may read {self._path}: run chmod o-rwx on it")


def _stamp(status: os.stat_result) -> FileStamp:
    return status.st_ino, status.st_size, status.st_mtime_ns

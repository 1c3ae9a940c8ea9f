"""A file that is read at the start, and again whenever it has changed.

Rule: a file that cannot be read, or that is refused, changes nothing. The last good contents stay, and the log says
why. A new file counts once it has been the same for a while, since half of a file may grant more than all of it.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from lakelog.log.clocks import steady_clock_us
from lakelog.log.errors import InvalidInput

T = TypeVar("T")

FILE_BYTES_MAX = 4 * 1024 * 1024
CHECK_EVERY_S = 2.0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_READ = stat.S_IRWXO
_LOGGER = logging.getLogger("lakelog.rest")

FileStamp = tuple[int, int, int, int]
"""The device, inode and size of a file, and the time of its last change. A change of its owner or mode counts, too."""


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
        try:
            data, self._stamp = self._data()
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
        self._candidate = self._stamp
        self._refused: FileStamp | None = None
        self._failure = ""
        self._value = self._parsed(data)

    @property
    def value(self) -> T:
        """The contents. Looks for a change as `refresh` does."""
        self.refresh()
        return self._value

    def refresh(self) -> None:
        """Look for a change, if the last look was a while ago.

        A change counts after two looks. So call it now and then, also if no request comes.
        """
        if steady_clock_us() - self._checked_us >= self._check_every_us and self._lock.acquire(
            blocking=False
        ):
            try:
                self._checked_us = steady_clock_us()
                self._check()
            finally:
                self._lock.release()

    def _check(self) -> None:
        try:
            stamp = _stamp(os.stat(self._path))
            if stamp in (self._stamp, self._refused):
                self._failure = ""
                return
            if stamp != self._candidate:
                self._candidate = stamp  # it may still be written
                return
            self._take(stamp)
        except OSError as error:
            # It is read again at the next look, as this may pass. The log has each failure once.
            if str(error) != self._failure:
                self._failure = str(error)
                self._log_failure(error)

    def _take(self, stamp: FileStamp) -> None:
        """Use the contents of this stamp, or refuse them once and for all. Raises OSError."""
        try:
            data, read_stamp = self._data()
            if read_stamp != stamp:
                self._candidate = read_stamp
                return
            self._value = self._parsed(data)
        except InvalidInput as error:
            self._refused = stamp
            self._log_failure(error)
            return
        self._stamp, self._refused, self._failure = stamp, None, ""
        _LOGGER.warning("%s has changed, and is used from now on", self._path)

    def _log_failure(self, error: Exception) -> None:
        _LOGGER.error("%s is not used, and the contents before it stay: %s", self._path, error)

    def _parsed(self, data: bytes) -> T:
        try:
            return self._read(data)
        except InvalidInput as error:
            raise InvalidInput(f"{self._path}: {error.message}") from None

    def _data(self) -> tuple[bytes, FileStamp]:
        """Return the contents and their stamp. Raises OSError, and InvalidInput for a file that is refused."""
        with open(self._path, "rb", opener=_opened) as source:
            status = os.fstat(source.fileno())
            check_owner(self._path, status, secret=self._secret)
            data = source.read(FILE_BYTES_MAX + 1)
            if _stamp(os.fstat(source.fileno())) != _stamp(status):
                raise BlockingIOError(errno.EAGAIN, "it is being written")
        if len(data) > FILE_BYTES_MAX:
            raise InvalidInput(f"{self._path} is larger than {FILE_BYTES_MAX:,} bytes")
        return data, _stamp(status)


def check_owner(path: str, status: os.stat_result, *, secret: bool) -> None:
    """Raise InvalidInput for a file that other users may change, or may read if it is `secret`."""
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{path} is no file")
    if status.st_uid not in (0, os.geteuid()):
        raise InvalidInput(
            f"{path} belongs to another user, who could change it: give it to the server's user, or to root"
        )
    if status.st_mode & _OTHERS_WRITE:
        raise InvalidInput(f"other users may change {path}: run chmod go-w on it")
    if secret and status.st_mode & _OTHERS_READ:
        raise InvalidInput(f"other users may read {path}: run chmod o-rwx on it")


def _opened(path: str, flags: int) -> int:
    """Open a file. A pipe is opened at once, and refused, since a thread would wait for its writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _stamp(status: os.stat_result) -> FileStamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns

"""A folder as a store.

Exclusive creation is a hard link from a finished temporary file. Unlike O_EXCL it never shows half an object,
and never leaves a torn object under a taken name. Durable means: file synced, linked, directory synced.
"""

import errno
import fcntl
import itertools
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO, TypeVar

from lakelog.log.clocks import StoreClock
from lakelog.log.costs import asked, open_to_read, read
from lakelog.log.errors import InvalidInput, NotFound, PermissionDenied, StorageError
from lakelog.log.grammar import check_key, check_prefix, is_key
from lakelog.log.ids import new_id
from lakelog.log.stores.copying import Stamp
from lakelog.log.stores.local_links import (
    ForeignLink,
    check_folder,
    is_folder,
    open_folder,
    open_object,
    trusted_users,
)
from lakelog.log.stores.ranges import ObjectRange

T = TypeVar("T")

FOLDER_TRIES = FILE_TRIES = 8
TEMPORARY = ".lakelog-tmp-"  # a crash can leave such a file; no listing shows it
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT}
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_NO_SUCH_NAME = {errno.ENAMETOOLONG, errno.ELOOP}


class LocalStore:
    """A folder as an ObjectStore and StampedStore.

    With fsync off, a crash of the machine (not of the process) may lose acknowledged commits.
    """

    is_bucket = False

    def __init__(self, root: str, *, fsync: bool = True) -> None:
        if not os.path.isabs(root):
            raise InvalidInput(f"{root!r} is not an absolute path: open a folder by open_store")
        self.url = root.rstrip("/") or "/"
        self._base = root.rstrip("/")
        self.fsync = fsync
        self._clock = StoreClock()

    def get(self, key: str) -> bytes | None:
        return self._get(ObjectRange(key))

    def _get(self, part: ObjectRange) -> bytes | None:
        key = part.key
        asked("get", self.url, key)
        try:
            fd = open_object(self._path(key))
            try:
                size = os.fstat(fd).st_size - part.first
                if part.size is not None:
                    size = min(size, part.size)
                size = max(size, 0)
                data = os.pread(fd, size if part.size is not None else size + 1, part.first)
                while len(data) < size:  # a signal or a size above 2 GiB cuts reads short
                    chunk = os.pread(fd, size - len(data), part.first + len(data))
                    if not chunk:
                        break
                    data += chunk
                read(len(data))
                return data
            finally:
                os.close(fd)
        except _ABSENT:
            return None
        except OSError as error:
            if error.errno in _NO_SUCH_NAME:
                return None
            raise self._error("read", key, error) from error

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def get_ranges(self, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
        return [self._get(part) for part in ranges]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        asked("put_if_absent", self.url, key, written=len(data))
        try:
            is_created = self._placed(key, path, data, _link)
        except OSError as error:
            raise self._link_error(key, error) from error
        if is_created:
            self._sync_directory(key, path)
        return is_created

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        asked("put", self.url, key, written=len(data))
        try:
            self._placed(key, path, data, os.replace)
        except OSError as error:
            raise self._error("write", key, error) from error
        self._sync_directory(key, path)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        asked("list", self.url, prefix)
        keys = self._keys(prefix, temporary=False, after=after)
        # ASCII names have the same order without it, which saves a copy of a million names.
        keys.sort(key=None if all(map(str.isascii, keys)) else os.fsencode)
        floor = os.fsencode(after)
        return (key for key in keys if os.fsencode(key) > floor)

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for key in self.list_after(prefix, after):
            try:
                yield key, os.stat(f"{self._base}/{key}").st_size
            except _ABSENT:
                continue
            except OSError as error:
                raise self._error("list", prefix, error) from error

    def stamp_of(self, key: str) -> Stamp:
        asked("head", self.url, key)
        try:
            status = os.stat(self._path(key))
        except _ABSENT:
            raise NotFound(f"{self.url}/{key} does not exist") from None
        except OSError as error:
            raise self._error("read", key, error) from error
        return status.st_ino, status.st_size, status.st_mtime_ns

    def list_stamps(self, prefix: str) -> Iterator[tuple[str, Stamp]]:
        for key in self.list_after(prefix):
            with suppress(NotFound):
                yield key, self.stamp_of(key)

    def list_folders(self, prefix: str) -> list[str]:
        check_prefix(prefix)
        asked("list", self.url, prefix)
        try:
            check_folder(self._base, prefix.rstrip("/"))
            trusted_uids = trusted_users(self._base)
            with os.scandir(f"{self._base}/{prefix}") as entries:
                return sorted(
                    (entry.name for entry in entries if is_folder(entry, trusted_uids)), key=os.fsencode
                )
        except (FileNotFoundError, NotADirectoryError, ForeignLink):
            return []
        except OSError as error:
            raise self._error("list", prefix, error) from error

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield unlocked temporary files. A file is locked while its process needs it and runs.

        Needed files may be among these: before they are locked, or if a network file system hides locks from
        other machines. This is harmless. The writer cannot place the file, sees that nothing was created, and
        writes it again.
        """
        for key in self._keys(prefix, temporary=True):
            if not is_key(key):
                continue  # in a folder of another program
            try:
                fd = os.open(self._path(key), os.O_RDWR)
            except OSError:
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield key, os.fstat(fd).st_size
            except OSError:
                continue  # it is locked, or that cannot be determined
            finally:
                os.close(fd)

    def _keys(self, prefix: str, *, temporary: bool, after: str = "") -> list[str]:
        """Return keys in any order; most of those up to `after` are left out."""
        check_prefix(prefix)
        directory, _, _ = prefix.rpartition("/")
        keys: list[str] = []
        try:
            check_folder(self._base, directory)
            self._walk(directory, prefix, keys, temporary, trusted_users(self._base), after)
        except (FileNotFoundError, NotADirectoryError, ForeignLink):
            return []
        except OSError as error:
            raise self._error("list", prefix, error) from error
        return keys

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        if keys:
            asked("delete", self.url, keys[0])
        for directory, folder_keys in itertools.groupby(keys, key=lambda key: key.rpartition("/")[0]):
            self._delete(directory, [key.rpartition("/")[2] for key in folder_keys])

    def _delete(self, directory: str, names: Sequence[str]) -> None:
        try:
            folder = open_folder(self._base, directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._error("delete in", directory, error) from error
        try:
            for name in names:
                try:
                    os.unlink(name, dir_fd=folder)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as error:
                    raise self._error("delete", f"{directory}/{name}", error) from error
        finally:
            os.close(folder)

    def open_input(self, key: str) -> BinaryIO:
        asked("open", self.url, key)
        try:
            return open_to_read(open_object(self._path(key)))
        except _ABSENT:
            raise NotFound(f"{self.url}/{key} does not exist") from None
        except OSError as error:
            if error.errno in _NO_SUCH_NAME:
                raise NotFound(f"{self.url}/{key} does not exist") from None
            raise self._error("read", key, error) from error

    def now_us(self, near: str = "") -> int | None:
        """Return the file system's time, read from the stamps of files written here (on NFS, the server's time).

        Before the first of them, makes a file without a name beside `near`. None if this client may not.
        """
        known_us = self._clock.now_us()
        if known_us is not None:
            return known_us
        folder = os.path.dirname(f"{self._base}/{near}") or "/"
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        try:
            with tempfile.TemporaryFile(prefix=TEMPORARY, dir=folder, buffering=0) as probe:
                self._clock.learn(stamp_us(probe.fileno()))
        except OSError:
            return None
        return self._clock.now_us()

    def _path(self, key: str) -> str:
        check_key(key)
        return f"{self._base}/{key}"

    def _placed(self, key: str, path: str, data: bytes, place: Callable[[str, str], T]) -> T:
        """Write a file beside `path`, and `place` it there, again if it is gone.

        Another process may have deleted it as a leftover before it was locked.
        """
        for tries_left in reversed(range(FILE_TRIES)):
            temporary_path, fd = self._write_temporary(key, path, data)
            try:
                return place(temporary_path, path)
            except FileNotFoundError:
                if not tries_left:
                    raise
            finally:
                self._unlink(temporary_path)
                os.close(fd)
        raise AssertionError("the last try returns or raises")

    def _write_temporary(self, key: str, path: str, data: bytes) -> tuple[str, int]:
        """Return the path of a new file with `data`, and a descriptor that locks it while it is needed."""
        temporary_path = f"{path[: path.rfind('/')]}/{TEMPORARY}{new_id()}"
        try:
            check_folder(self._base, key.rpartition("/")[0])
            fd = self._create(temporary_path)
        except OSError as error:
            raise self._error("write", key, error, without_effect=True) from error
        try:
            _lock(fd)
            written_bytes = os.write(fd, data)
            while written_bytes < len(data):
                written_bytes += os.write(fd, data[written_bytes:])
            if self.fsync:
                os.fsync(fd)
            self._clock.learn(stamp_us(fd))
        except BaseException as error:
            self._unlink(temporary_path)
            os.close(fd)
            if isinstance(error, OSError):
                raise self._error("write", key, error, without_effect=True) from error
            raise
        return temporary_path, fd

    def _create(self, path: str) -> int:
        """Create a file, and the folders above it.

        Other programs remove empty folders, so folders may be gone again before the file is created.
        """
        for _ in range(FOLDER_TRIES):
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:
                with suppress(FileNotFoundError):
                    self._make_directory(os.path.dirname(path))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)

    def _make_directory(self, directory: str) -> None:
        missing_folders = []
        while not os.path.isdir(directory):
            missing_folders.append(directory)
            directory = os.path.dirname(directory)
        for path in reversed(missing_folders):
            try:
                os.mkdir(path)
            except FileExistsError:
                if not os.path.isdir(path):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
            if self.fsync:
                _sync(os.path.dirname(path))

    def _sync_directory(self, key: str, path: str) -> None:
        if self.fsync:
            try:
                _sync(os.path.dirname(path))
            except OSError as error:  # it exists, but a power cut might still remove it
                location = f"{self.url}/{key}"
                raise StorageError(
                    f"{location} was written but may not be durable: {error.strerror}; check the disk and try again",
                    location=location,
                ) from error

    def _unlink(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError:
            return  # a leftover only costs space

    def _walk(
        self,
        directory: str,
        prefix: str,
        keys: list[str],
        temporary: bool,
        trusted: Collection[int],
        after: str,
    ) -> None:
        try:
            entries = os.scandir(f"{self._base}/{directory}" if directory else self._base or "/")
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            for entry in entries:
                key = f"{directory}/{entry.name}" if directory else entry.name
                # Few of a million files may be needed. ASCII strings have the order of their bytes.
                if key <= after and key.isascii() and entry.is_file(follow_symlinks=False):
                    continue
                if is_folder(entry, trusted):
                    if f"{key}/".startswith(prefix) or prefix.startswith(f"{key}/"):
                        self._walk(key, prefix, keys, temporary, trusted, after)
                elif (
                    key.startswith(prefix)
                    and entry.name.startswith(TEMPORARY) == temporary
                    and entry.is_file()
                ):
                    keys.append(key)

    def _link_error(self, key: str, error: OSError) -> StorageError:
        location = f"{self.url}/{key}"
        if error.errno in _NO_HARD_LINKS:
            return StorageError(
                f"cannot create {location}: its file system has no hard links ({error.strerror}), and without them "
                "two writers could overwrite each other; use a folder on another file system, or S3",
                location=location,
                without_effect=True,
            )
        return self._error("write", key, error, without_effect=error.errno in _FULL)

    def _error(self, verb: str, key: str, error: OSError, *, without_effect: bool = False) -> StorageError:
        location = f"{self.url}/{key}"
        reason = error.strerror or str(error)
        if isinstance(error, ForeignLink):
            return PermissionDenied(
                f"may not {verb} {location}: {reason}, who can lead writes and deletions anywhere by it; replace "
                "it by a folder, or by a link of the owner of the warehouse",
                location=location,
            )
        if error.errno in _DENIED:
            return PermissionDenied(
                f"may not {verb} {location}: {reason}; give this user the right to {verb} there",
                location=location,
            )
        if error.errno in _FULL:
            return StorageError(
                f"cannot {verb} {location}: {reason}; nothing was committed, free some space and try again",
                location=location,
                without_effect=without_effect,
            )
        if error.errno in (errno.ENOTDIR, errno.EISDIR):
            return StorageError(
                f"cannot {verb} {location}: {reason}; remove or rename the file that stands in its way",
                location=location,
                without_effect=True,
            )
        return StorageError(
            f"cannot {verb} {location}: {reason}; check the disk and try again",
            location=location,
            without_effect=without_effect,
        )


def stamp_us(fd: int) -> int:
    """Return the time of the file's last write, by the clock of its file system; some have only whole seconds."""
    return os.fstat(fd).st_mtime_ns // 1000


def _lock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # without locks no process can take the file for a leftover, because it cannot lock it either


def _link(temporary: str, path: str) -> bool:
    """Return whether this call created the file at `path`."""
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        # A network file system may have linked it and lost the answer; the link count shows it.
        return _links(temporary) > 1


def _links(path: str) -> int:
    try:
        return os.stat(path).st_nlink
    except OSError:
        return 1  # not known to be linked; the caller reads the key


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

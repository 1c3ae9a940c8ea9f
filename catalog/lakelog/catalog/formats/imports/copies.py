"""Copies of a source's files among the table's own data files, so that the source's expiry cannot take them.

The name of a copy has the hash of the path that the file has in its source, so a later import finds the copy of a file
without a list of its own. Rule: a copy belongs to the write that makes it, as any data file does, and a file that comes
into the table once more is copied once more. What a column is called in the file stays in its entry. A file that was
replaced since its source was read is an error: it has to have the stamp that it had then, once it was copied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import DataFile, copy_suffix, file_path, hash_in, path_hash
from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.core.parquet import open_parquet
from lakelog.catalog.core.state import TableState
from lakelog.catalog.formats.imports.changes import is_same_object
from lakelog.catalog.formats.imports.source import SourceVersion
from lakelog.log import OpenUrl, WriteRef
from lakelog.log.costs import Threads
from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.stores import ObjectStore, Stamp, copy_object, is_copied_by_server, list_stamps, stamp_of

BY_SERVER_AT_ONCE = 16
THROUGH_HERE_AT_ONCE = 2
"""A file is in memory as a whole then."""

Progress = Callable[[str], None]


def stamps_in(open_url: OpenUrl, folder: str) -> dict[str, Stamp]:
    """Return the stamps of all files in a folder, by path. One LIST for every 1000."""
    store, key = open_url(f"{folder}/_")
    prefix = key[:-1]
    return {f"{folder}/{name.removeprefix(prefix)}": stamp for name, stamp in list_stamps(store, prefix)}


class Copies:
    """Which file of the table is the copy of which file of a source, and what is left to be copied. `stamps` are those
    of files of the source, by path, from before it was read; of others they are looked at before the first is copied.
    """

    def __init__(
        self,
        tracked: TrackedLog[TableState],
        open_url: OpenUrl,
        progress: Progress,
        known: Iterable[DataFile] = (),
        stamps: Mapping[str, Stamp] | None = None,
    ) -> None:
        self._tracked = tracked
        self._open_url = open_url
        self._progress = progress
        self._stamps = stamps or {}
        self._known = {key: file for file in known if (key := hash_in(file.path)) is not None}
        self._left: dict[str, DataFile] = {}

    def originals(self) -> Mapping[str, DataFile]:
        """Return the known files by the paths of those that they are copies of."""
        return _Originals(self._known)

    def of(self, version: SourceVersion, write: WriteRef) -> SourceVersion:
        """Return the version with the table's files in place of the source's: new ones are those of the write, and are
        there once `copy` has run."""
        gone = {path_hash(path) for path in version.removed}
        removed = tuple(
            self._known[key].path for key in map(path_hash, version.removed) if key in self._known
        )
        added = [self._placed(file, write) for file in version.added]
        for key in gone - {path_hash(file.path) for file in version.added}:
            self._known.pop(key, None)
        return replace(version, added=tuple(added), removed=removed)

    def _placed(self, file: DataFile, write: WriteRef) -> DataFile:
        key = path_hash(file.path)
        known = self._known.get(key)
        # A file without a live row is in no version, and was not copied.
        if known is None or not known.rows or not is_same_object(known, file):
            path = file_path(write, copy_suffix(file.path))
            if file.rows:
                self._left[path] = file
        else:
            path = known.path
        placed = msgspec.structs.replace(file, path=path)
        self._known[key] = placed
        return placed

    def copy(self) -> Collection[str]:
        """Copy what is left, and return the paths of these copies. NotFound where the source's file is gone,
        InvalidInput where it was replaced since: no later import could mend that."""
        left, self._left = self._left, {}
        if not left:
            return ()
        target = self._tracked.store
        prefix = f"{self._tracked.prefix}/" if self._tracked.prefix else ""
        opened = {path: self._open_url(file.path) for path, file in left.items()}
        by_server = all(is_copied_by_server(store, target) for store, _ in opened.values())
        stamps = self._stamps_of(left, opened)

        def one(path: str) -> None:
            file = left[path]
            with _not_gone(file):
                if not copy_object(*opened[path], target, f"{prefix}{path}", stamps[path]):
                    raise _replaced(file, "its store has another object there")
            try:
                with target.open_input(f"{prefix}{path}") as copied:
                    rows = open_parquet(copied, file.size_bytes, file.footer_crc).metadata.num_rows
            except (FormatError, pa.ArrowInvalid) as error:
                raise _replaced(file, str(error)) from None
            if rows != file.physical_rows:
                raise _replaced(file, f"it has {rows:,} rows, and the source says {file.physical_rows:,}")

        threads = BY_SERVER_AT_ONCE if by_server else THROUGH_HERE_AT_ONCE
        with Threads(threads, thread_name_prefix="lakelog-copies") as pool:
            for done, _ in enumerate(pool.map(one, left), start=1):
                if done % 100 == 0 or done == len(left):
                    self._progress(f"{done:,} of {len(left):,} files of the source were copied")
        return left.keys()

    def _stamps_of(
        self, left: Mapping[str, DataFile], opened: Mapping[str, tuple[ObjectStore, str]]
    ) -> dict[str, Stamp | None]:
        """Return the stamps of the files that are copied, by the paths of the copies."""

        def one(path: str) -> Stamp | None:
            file = left[path]
            if file.path in self._stamps:
                return self._stamps[file.path]
            with _not_gone(file):
                return stamp_of(*opened[path])

        with Threads(BY_SERVER_AT_ONCE, thread_name_prefix="lakelog-stamps") as pool:
            return dict(zip(left, pool.map(one, left), strict=True))


@contextmanager
def _not_gone(file: DataFile) -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise NotFound(
            f"the file {file.path} of the source is gone since the source was read: import it again"
        ) from None


def _replaced(file: DataFile, why: str) -> InvalidInput:
    return InvalidInput(
        f"the file {file.path} of the source was replaced since the source was read ({why}): import it again"
    )


class _Originals(Mapping[str, DataFile]):
    """Known copies, looked up by the path of the original; those paths themselves are not known."""

    def __init__(self, known: Mapping[str, DataFile]) -> None:
        self._known = dict(known)

    def __getitem__(self, path: str) -> DataFile:
        return msgspec.structs.replace(self._known[path_hash(path)], path=path)

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("the paths of the originals are not known")

    def __len__(self) -> int:
        return len(self._known)

"""Copies of a source's files among the table's own data files, so that the source's expiry cannot take them.

The name of a copy has the hash of the path that the file has in its source, so a later import finds the copy of a file
without a list of its own. Rule: a copy belongs to the write that makes it, as any data file does, and a file that comes
into the table once more is copied once more. What a column is called in the file stays in its entry.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import pyarrow as pa

from lakelog.catalog.files import DataFile, file_path
from lakelog.catalog.imports.changes import is_same_object
from lakelog.catalog.imports.source import SourceVersion
from lakelog.catalog.logs import TrackedLog
from lakelog.catalog.parquet import open_parquet
from lakelog.catalog.state import TableState
from lakelog.log import OpenUrl, WriteRef
from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.stores import copy_object, is_copied_by_server

BY_SERVER_AT_ONCE = 16
THROUGH_HERE_AT_ONCE = 2
"""A file is in memory as a whole then."""

_COPY = re.compile(r"-copy-([0-9a-f]{32})\.parquet$")

Progress = Callable[[str], None]


class Copies:
    """Which file of the table is the copy of which file of a source, and what is left to be copied."""

    def __init__(
        self,
        tracked: TrackedLog[TableState],
        open_url: OpenUrl,
        progress: Progress,
        known: Iterable[DataFile] = (),
    ) -> None:
        self._tracked = tracked
        self._open_url = open_url
        self._progress = progress
        self._known = {key: file for file in known if (key := _key_of(file.path)) is not None}
        self._left: dict[str, DataFile] = {}

    def originals(self) -> Mapping[str, DataFile]:
        """Return the known files by the paths of those that they are copies of."""
        return _Originals(self._known)

    def of(self, version: SourceVersion, write: WriteRef) -> SourceVersion:
        """Return the version with the table's files in place of the source's: new ones are those of the write, and are
        there once `copy` has run."""
        gone = {_hash(path) for path in version.removed}
        removed = tuple(self._known[key].path for key in map(_hash, version.removed) if key in self._known)
        added = [self._placed(file, write) for file in version.added]
        for key in gone - {_hash(file.path) for file in version.added}:
            self._known.pop(key, None)
        return replace(version, added=tuple(added), removed=removed)

    def _placed(self, file: DataFile, write: WriteRef) -> DataFile:
        key = _hash(file.path)
        known = self._known.get(key)
        # A file without a live row is in no version, and was not copied.
        if known is None or not known.rows or not is_same_object(known, file):
            path = file_path(write, f"copy-{key}")
            if file.rows:
                self._left[path] = file
        else:
            path = known.path
        placed = msgspec.structs.replace(file, path=path)
        self._known[key] = placed
        return placed

    def copy(self) -> Collection[str]:
        """Copy what is left, and return the paths of these copies. NotFound where the source's file is gone,
        InvalidInput where it was replaced since: the copy is looked at, as no later import could mend it."""
        left, self._left = self._left, {}
        if not left:
            return ()
        target = self._tracked.store
        opened = {path: self._open_url(file.path) for path, file in left.items()}
        by_server = all(is_copied_by_server(store, target) for store, _ in opened.values())

        def one(path: str) -> None:
            store, key = opened[path]
            prefix = f"{self._tracked.prefix}/" if self._tracked.prefix else ""
            file = left[path]
            try:
                copy_object(store, key, target, f"{prefix}{path}")
            except NotFound:
                raise NotFound(
                    f"the file {file.path} of the source is gone since the source was read: import it again"
                ) from None
            try:
                with target.open_input(f"{prefix}{path}") as copied:
                    open_parquet(copied, file.size_bytes, file.footer_crc)
            except (FormatError, pa.ArrowInvalid) as error:
                raise InvalidInput(
                    f"the file {file.path} of the source was replaced since the source was read ({error}): import it "
                    "again"
                ) from None

        threads = BY_SERVER_AT_ONCE if by_server else THROUGH_HERE_AT_ONCE
        with ThreadPoolExecutor(threads, thread_name_prefix="lakelog-copies") as pool:
            for done, _ in enumerate(pool.map(one, left), start=1):
                if done % 100 == 0 or done == len(left):
                    self._progress(f"{done:,} of {len(left):,} files of the source were copied")
        return left.keys()


class _Originals(Mapping[str, DataFile]):
    """Known copies, looked up by the path of the original; those paths themselves are not known."""

    def __init__(self, known: Mapping[str, DataFile]) -> None:
        self._known = dict(known)

    def __getitem__(self, path: str) -> DataFile:
        return msgspec.structs.replace(self._known[_hash(path)], path=path)

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("the paths of the originals are not known")

    def __len__(self) -> int:
        return len(self._known)


def origin_of(path: str) -> str:
    """Return what is the same of all copies of one file of a source; the path of a file that is no copy."""
    return _key_of(path) or path


def _hash(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:32]


def _key_of(path: str) -> str | None:
    match = _COPY.search(path)
    return None if match is None else match[1]

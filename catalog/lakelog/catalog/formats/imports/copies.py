"""Copies of a source's files among the table's own, so that expiry in the source cannot delete them.

The name of a copy has the hash of the file's path in its source. So a later import finds the copy of a file
without a list of its own. Rule: a copy belongs to the write that makes it, like any data file. A file that
comes into the table again is copied again. The columns' names in the file stay in its entry. A file that was
replaced after its source was read is an error: after the copy, it must have the stamp that it had then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import DataFile, copy_suffix, file_path, hash_in, path_hash
from lakelog.catalog.core.logs import Progress, TrackedLog
from lakelog.catalog.core.parquet import open_parquet
from lakelog.catalog.core.state import TableState
from lakelog.catalog.formats.imports.changes import is_same_object
from lakelog.catalog.formats.imports.source import SourceVersion
from lakelog.log import OpenUrl, WriteRef
from lakelog.log.costs import TallyThreads
from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.stores import ObjectStore, Stamp, copies_at_once, copy_object, list_stamps, stamp_of

STAMPS_AT_ONCE = 16


def stamps_in(open_url: OpenUrl, folder: str) -> dict[str, Stamp]:
    """Return the stamps of all files in a folder, by path. Makes a LIST request for every 1000 files."""
    store, key = open_url(f"{folder}/_")
    prefix = key[:-1]
    return {f"{folder}/{name.removeprefix(prefix)}": stamp for name, stamp in list_stamps(store, prefix)}


class SourceCopies:
    """Which table file is the copy of which source file, and which copies remain to be made.

    `stamps` has stamps of the source's files, by path, from before the source was read. Missing stamps are
    read before the first file is copied.
    """

    def __init__(
        self,
        tracked: TrackedLog[TableState],
        open_url: OpenUrl,
        progress: Progress,
        known_files: Iterable[DataFile] = (),
        stamps: Mapping[str, Stamp] | None = None,
    ) -> None:
        self._tracked = tracked
        self._open_url = open_url
        self._progress = progress
        self._stamps = stamps or {}
        self._known = {key: file for file in known_files if (key := hash_in(file.path)) is not None}
        self._left: dict[str, DataFile] = {}

    def originals(self) -> Mapping[str, DataFile]:
        """Return the known copies by the paths of their originals."""
        return _Originals(self._known)

    def of(self, version: SourceVersion, write: WriteRef) -> SourceVersion:
        """Return the version with the table's files in place of the source's.

        New files belong to the write, and exist once `copy` has run.
        """
        gone_hashes = {path_hash(path) for path in version.removed}
        old_paths = tuple(
            self._known[key].path for key in map(path_hash, version.removed) if key in self._known
        )
        new_files = [self._placed(file, write) for file in version.added]
        for key in gone_hashes - {path_hash(file.path) for file in version.added}:
            self._known.pop(key, None)
        return replace(version, added=tuple(new_files), removed=old_paths)

    def _placed(self, file: DataFile, write: WriteRef) -> DataFile:
        key = path_hash(file.path)
        known_copy = self._known.get(key)
        # A file without a live row is in no version, and was not copied.
        if known_copy is None or not known_copy.rows or not is_same_object(known_copy, file):
            path = file_path(write, copy_suffix(file.path))
            if file.rows:
                self._left[path] = file
        else:
            path = known_copy.path
        new_entry = msgspec.structs.replace(file, path=path)
        self._known[key] = new_entry
        return new_entry

    def copy(self) -> Collection[str]:
        """Make the remaining copies, and return their paths.

        Raises NotFound if the source's file is gone, and InvalidInput if it was replaced. No later import
        could repair that.
        """
        originals, self._left = self._left, {}
        if not originals:
            return ()
        target = self._tracked.store
        prefix = f"{self._tracked.prefix}/" if self._tracked.prefix else ""
        objects = {path: self._open_url(file.path) for path, file in originals.items()}
        stamps = self._stamps_of(originals, objects)

        def one(path: str) -> None:
            file = originals[path]
            with _not_gone(file):
                if not copy_object(*objects[path], target, f"{prefix}{path}", stamps[path]):
                    raise _replaced(file, "its store has another object there")
            try:
                with target.open_input(f"{prefix}{path}") as file_input:
                    rows = open_parquet(file_input, file.size_bytes, file.footer_crc).metadata.num_rows
            except (FormatError, pa.ArrowInvalid) as error:
                raise _replaced(file, str(error)) from None
            if rows != file.physical_rows:
                raise _replaced(file, f"it has {rows:,} rows, and the source says {file.physical_rows:,}")

        threads = copies_at_once((store for store, _ in objects.values()), target)
        with TallyThreads(threads, thread_name_prefix="lakelog-copies") as pool:
            for count, _ in enumerate(pool.map(one, originals), start=1):
                if count % 100 == 0 or count == len(originals):
                    self._progress(f"{count:,} of {len(originals):,} files of the source were copied")
        return originals.keys()

    def _stamps_of(
        self, remaining_files: Mapping[str, DataFile], opened: Mapping[str, tuple[ObjectStore, str]]
    ) -> dict[str, Stamp | None]:
        """Return the stamps of the originals, by the paths of the copies."""

        def one(path: str) -> Stamp | None:
            file = remaining_files[path]
            if file.path in self._stamps:
                return self._stamps[file.path]
            with _not_gone(file):
                return stamp_of(*opened[path])

        with TallyThreads(STAMPS_AT_ONCE, thread_name_prefix="lakelog-stamps") as pool:
            return dict(zip(remaining_files, pool.map(one, remaining_files), strict=True))


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
    """Known copies, looked up by the path of the original. The originals' paths themselves are not known."""

    def __init__(self, known_files: Mapping[str, DataFile]) -> None:
        self._known = dict(known_files)

    def __getitem__(self, path: str) -> DataFile:
        return msgspec.structs.replace(self._known[path_hash(path)], path=path)

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("the paths of the originals are not known")

    def __len__(self) -> int:
        return len(self._known)

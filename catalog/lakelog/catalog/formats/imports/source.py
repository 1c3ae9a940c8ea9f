"""The interface of an import's source: a table of another format, or a folder of Parquet files. Pure.

A source describes everything in lakelog's words: columns with ids, partitionings, and entries of files of
other writers. It reads, and never writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.schema import PartitionSpec, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVersion:
    """A version of a source.

    `id` is the source's own: Iceberg's snapshot id, or Delta's version. `time_us` and `operation` are the
    source's time and name of its change. Column ids stay the same over all versions of a source; fields have
    no physical names. `specs` has the partitionings of all files; `spec` is the partitioning of new files.

    `added` has entries with absolute paths; in the first version, these are all live files. Their `deletes`
    contain the vector itself, of any size. `first_row` is the source's, if it has row ids. `removed` has
    paths. A file whose deletes changed is in both.
    """

    id: str
    time_us: int | None
    operation: str | None
    schema: Schema
    spec: PartitionSpec
    specs: tuple[PartitionSpec, ...]
    added: tuple[DataFile, ...]
    removed: tuple[str, ...] = ()


class ImportSource(Protocol):
    @property
    def format(self) -> str:
        """Return iceberg, delta or parquet."""
        ...

    @property
    def url(self) -> str:
        """Return the canonical place."""
        ...

    @property
    def identity(self) -> str:
        """Return the source's own id if it exists, else its `url`."""
        ...

    @property
    def metadata(self) -> str | None:
        """Return the folder of its own metadata.

        The source exists as long as this folder does. None for a folder of files.
        """
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Return its properties, including its comment."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the source's demands on its writers that an imported table does not make."""
        ...

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        """Yield the newest versions, oldest first. The first has the older versions folded into it."""
        ...

    def live(self, known_files: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        """Return the newest version, with all live files in `added`.

        `known_files` has entries of the last import, by path, and `columns` has the columns of that time. An
        unchanged file need not be read again. A source without column ids continues the ids of `columns`.
        """
        ...

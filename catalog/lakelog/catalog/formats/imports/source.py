"""What an import needs of a source: a table of another format, or a folder of Parquet files. Pure.

A source says everything in lakelog's words: columns with ids, partitionings, and entries of files of other writers.
It reads, and never writes.
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

    `id` is the source's own: Iceberg's snapshot id, Delta's version. `time_us` is when the source says that it was
    made, `operation` what it says that it did. Ids of columns stay the same over all versions of a source; fields have
    no physical names. `specs` has the partitionings of all files; `spec` is that of new ones.

    `added` has entries with absolute paths, of the first version all live files. Their `deletes` have the vector
    itself, of any size; `first_row` is the source's, where it has ids of rows. `removed` has paths. A file whose
    deletes changed is in both.
    """

    id: str
    time_us: int | None
    operation: str | None
    schema: Schema
    spec: PartitionSpec
    specs: tuple[PartitionSpec, ...]
    added: tuple[DataFile, ...]
    removed: tuple[str, ...] = ()


class Source(Protocol):
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
        """Return the source's own id where it has one, else its `url`."""
        ...

    @property
    def metadata(self) -> str | None:
        """Return the folder that has its own metadata: the source is there as long as that is. None for a folder of
        files."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Return its properties, its comment among them."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what it demands of its writers, and an imported table does not."""
        ...

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        """Yield the newest versions, oldest first. The first one has the older ones folded into it."""
        ...

    def live(self, known: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        """Return the newest version, with all live files in `added`.

        `known` has entries of files, by path, as they were imported before, and `columns` the columns of that time: a
        file that is the same need not be looked at again, and a source without ids of columns continues these.
        """
        ...

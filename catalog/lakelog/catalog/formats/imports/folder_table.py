"""What others know of a folder of Parquet files: a catalog its table, an engine the footers of its files. Pure.

Rule: a table has the columns that its catalog says, by the names that it has there in any case of letters, and the
partitions that it says, wherever these are; what else files or folders have is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from lakelog.catalog.core.parquet import FoundFile
from lakelog.catalog.core.schema import AtomicType, Field, StructType, Type
from lakelog.log.errors import Unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTable:
    """A table of Parquet files in another catalog. `places` has the folders of its partitions with the values of these;
    None where the names of folders have them."""

    columns: StructType
    partitioned_by: tuple[str, ...] = ()
    places: tuple[tuple[str, Mapping[str, str | None]], ...] | None = None

    def data_columns(self) -> list[Field]:
        """Return the columns that are in files."""
        parts = self._partitions()
        return [each for each in self.columns.fields if each.name.lower() not in parts]

    def partition_type(self, name: str) -> Type:
        """Return the type of a partition column. Unsupported for one whose texts mean another value in each zone."""
        type = next(each.type for each in self.columns.fields if each.name.lower() == name.lower())
        if type == AtomicType("timestamp"):
            raise Unsupported(
                f"the source is partitioned by {name}, a TIMESTAMP, and its folders have no time zone: insert its rows "
                "by CREATE TABLE … AS SELECT"
            )
        return type

    def of_file(self, columns: Sequence[Field]) -> list[Field]:
        """Return those columns of a file that the table has, by the table's names."""
        names = {each.name.lower(): each.name for each in self.data_columns()}
        return [
            msgspec.structs.replace(each, name=names[each.name.lower()])
            for each in columns
            if each.name.lower() in names
        ]

    def values(self, given: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the values of a partition in the order of the table's columns, by its names of them."""
        known = {name.lower(): value for name, value in given.items()}
        return {name: known[name.lower()] for name in self.partitioned_by}

    def _partitions(self) -> set[str]:
        return {name.lower() for name in self.partitioned_by}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFolder:
    """`footers` are by the paths of files; a file of another size by now is read anew."""

    table: FolderTable | None = None
    footers: Mapping[str, FoundFile] = field(default_factory=dict)

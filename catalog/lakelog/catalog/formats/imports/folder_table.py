"""A folder of Parquet files as others know it: a catalog's table, or an engine's footers. Pure.

Rule: a table has the columns and partitions of its catalog, wherever these are. Column names are the
catalog's, in any case of letters. Other columns of files and folders are left out.
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
    """A table of Parquet files in another catalog.

    `places` has the folders of its partitions with their values. It is None if the names of folders have the
    values.
    """

    columns: StructType
    partitioned_by: tuple[str, ...] = ()
    places: tuple[tuple[str, Mapping[str, str | None]], ...] | None = None

    def data_columns(self) -> list[Field]:
        """Return the columns that are in files."""
        parts = self._partitions()
        return [column for column in self.columns.fields if column.name.lower() not in parts]

    def partition_type(self, name: str) -> Type:
        """Return the type of a partition column.

        Raises Unsupported for a type whose texts depend on a time zone.
        """
        type = next(column.type for column in self.columns.fields if column.name.lower() == name.lower())
        if type == AtomicType("timestamp"):
            raise Unsupported(
                f"the source is partitioned by {name}, a TIMESTAMP, and its folders have no time zone: insert its rows "
                "by CREATE TABLE … AS SELECT"
            )
        return type

    def of_file(self, columns: Sequence[Field]) -> list[Field]:
        """Return the columns of a file that the table has, by the table's names."""
        names = {column.name.lower(): column.name for column in self.data_columns()}
        return [
            msgspec.structs.replace(column, name=names[column.name.lower()])
            for column in columns
            if column.name.lower() in names
        ]

    def values(self, given: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the values of a partition in the order of the table's columns, by the table's names."""
        values_by_name = {name.lower(): value for name, value in given.items()}
        return {name: values_by_name[name.lower()] for name in self.partitioned_by}

    def _partitions(self) -> set[str]:
        return {name.lower() for name in self.partitioned_by}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFolder:
    """`footers` has footers by the paths of files. If a file's size has changed, its footer is read again."""

    table: FolderTable | None = None
    footers: Mapping[str, FoundFile] = field(default_factory=dict)

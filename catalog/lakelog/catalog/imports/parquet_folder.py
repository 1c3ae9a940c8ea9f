"""A folder of Parquet files as a source: one version, which is what the folder has now.

Nothing but names and sizes say whether a file is the same: one that was imported, and has its size, is not looked at
again. Reading it later fails where its footer is another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec

from lakelog.catalog.files import DataFile
from lakelog.catalog.imports.bounds import with_bounds_of
from lakelog.catalog.imports.folder_columns import (
    Columns,
    check_partitions,
    listed_names,
    partition_type,
    value_text,
)
from lakelog.catalog.imports.folder_table import KnownFolder
from lakelog.catalog.imports.iceberg import OpenUrl
from lakelog.catalog.imports.source import SourceVersion
from lakelog.catalog.parquet import FoundFile, data_files, is_hidden, literal_of, partition_of, read_footer
from lakelog.catalog.schema import (
    FIRST_FIELD_ID,
    IDENTITY,
    AtomicType,
    Field,
    Metadata,
    PartitionField,
    PartitionSpec,
    Schema,
    SortOrder,
    StructType,
    Type,
)
from lakelog.log import canonical_url
from lakelog.log.errors import InvalidInput, NotFound

FOOTERS_AT_ONCE = 16


class ParquetFolder:
    """See `Source`."""

    format = "parquet"
    metadata = None
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        source: str,
        open_url: OpenUrl,
        progress: Callable[[str], None],
        known: KnownFolder | None = None,
    ) -> None:
        known = known or KnownFolder()
        self._table, self._footers = known.table, known.footers
        self._open_url = open_url
        self.url = canonical_url(source)
        self.identity = self.url
        self.properties: Mapping[str, str] = {}
        self._progress = progress
        self._listed: dict[str, int] = {}
        self._partitions: dict[str, dict[str, str | None]] = {}
        if self._table is None or self._table.places is None:
            self._list(self.url, None)
        else:
            for place, values in self._table.places:
                self._list(canonical_url(place), self._table.values(values))
        if not self._listed and self._table is None:
            raise NotFound(f"there are no files in the folder {self.url}: check the path")
        self._names = self._partitioned_by()

    def _list(self, folder: str, partition: dict[str, str | None] | None) -> None:
        """Take the files of a folder, which are of that partition; None: which the names of their folders say."""
        store, key = self._open_url(folder)
        for name, size in store.list_sizes(f"{key}/"):
            if is_hidden(name, key):
                continue
            path = f"{folder}{name.removeprefix(key)}"
            self._listed[path] = size
            within = partition_of(name.removeprefix(f"{key}/"), folder) if partition is None else partition
            self._partitions[path] = dict(within)

    def _partitioned_by(self) -> tuple[str, ...]:
        found = check_partitions(self._partitions)
        if self._table is None:
            return found
        said = self._table.partitioned_by
        if self._partitions and tuple(map(str.lower, found)) != tuple(map(str.lower, said)):
            raise InvalidInput(
                f"the folders of {self.url} are partitions by {listed_names(found)}, and its catalog says "
                f"{listed_names(said)}: repair the table there"
            )
        self._partitions = {path: self._table.values(each) for path, each in self._partitions.items()}
        return said

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        yield self.live({}, None)

    def live(self, known: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        same = {
            path: known[path]
            for path, size in self._listed.items()
            if path in known and known[path].size_bytes == size
        }
        found = self._read([path for path in self._listed if path not in same])
        merged = Columns(columns)
        if self._table is not None:
            merged.add(self._table.data_columns(), "the catalog")
        for file in found:
            there = file.columns.fields if self._table is None else self._table.of_file(file.columns.fields)
            merged.add([each for each in there if not self._is_partition(each)], f"the file {file.path}")
        types = {name: self._partition_type(name) for name in self._names}
        merged.add(
            [Field(name=name, type=type) for name, type in types.items()], f"the folders of {self.url}"
        )
        schema = merged.schema()
        spec = self._spec(schema)
        files = [msgspec.structs.replace(file, deletes=None) for file in same.values()]
        if columns is not None:
            files = list(with_bounds_of(files, columns, schema))
        return SourceVersion(
            id=self._id(),
            time_us=None,
            operation=None,
            schema=schema,
            spec=spec,
            specs=(spec,),
            added=(*files, *self._entries(found, schema, spec)),
        )

    def _is_partition(self, column: Field) -> bool:
        return column.name.lower() in {name.lower() for name in self._names}

    def _partition_type(self, name: str) -> Type:
        if self._table is not None:
            return self._table.partition_type(name)
        return partition_type(partition[name] for partition in self._partitions.values())

    def _id(self) -> str:
        said = "\n".join(f"{path} {size}" for path, size in sorted(self._listed.items()))
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def _spec(self, schema: Schema) -> PartitionSpec:
        fields = []
        for number, name in enumerate(self._names):
            column = schema.find((name,))
            assert isinstance(column.type, AtomicType), "a folder's name has single values"
            fields.append(
                PartitionField(
                    id=FIRST_FIELD_ID + number,
                    source_id=column.id,
                    name=column.name,
                    transform=IDENTITY,
                    result=column.type,
                )
            )
        return PartitionSpec(id=0, fields=tuple(fields))

    def _read(self, paths: Sequence[str]) -> list[FoundFile]:
        found = []
        with ThreadPoolExecutor(FOOTERS_AT_ONCE, thread_name_prefix="lakelog-footers") as pool:
            for file in pool.map(self._footer, paths):
                found.append(file)
                if len(found) % 1_000 == 0:
                    self._progress(f"{len(found):,} of {len(paths):,} files of the source were looked at")
        return found

    def _footer(self, path: str) -> FoundFile:
        size, known = self._listed[path], self._footers.get(path)
        if known is not None and known.size_bytes == size:
            return replace(known, partition={})
        store, name = self._open_url(path)
        try:
            file, _, old_times = read_footer(store, path, name, size, {})
        except NotFound:
            raise NotFound(
                f"the file {path} of the source is gone since its folder was listed: import it again"
            ) from None
        if not old_times:
            return file
        columns = tuple(_with_zone(each, (each.name,), old_times) for each in file.columns.fields)
        return replace(file, columns=StructType(columns))

    def _entries(self, found: Sequence[FoundFile], schema: Schema, spec: PartitionSpec) -> list[DataFile]:
        placed = []
        for file in found:
            partition = {}
            for name, text in self._partitions[file.path].items():
                type = schema.find((name,)).type
                assert isinstance(type, AtomicType), "a folder's name has single values"
                partition[name] = literal_of(value_text(text, type), type)
            placed.append(replace(file, partition=partition))
        metadata = Metadata(schema=schema, specs=(spec,), sort_order=SortOrder(), properties={})
        return data_files(placed, metadata, None, ignore_extra_columns=self._table is not None)


def _with_zone(field: Field, path: tuple[str, ...], old_times: frozenset[str]) -> Field:
    """Return a column whose times of the deprecated type INT96 are points in time, as for Spark."""
    type: Type = field.type
    if ".".join(path) in old_times:
        type = AtomicType("timestamp")
    elif isinstance(type, StructType):
        type = StructType(tuple(_with_zone(each, (*path, each.name), old_times) for each in type.fields))
    return msgspec.structs.replace(field, type=type)

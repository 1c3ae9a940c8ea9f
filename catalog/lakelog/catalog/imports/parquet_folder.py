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
from lakelog.catalog.imports.folder_columns import Columns, check_partitions, partition_type, value_text
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
from lakelog.log.errors import NotFound

FOOTERS_AT_ONCE = 16


class ParquetFolder:
    """See `Source`."""

    format = "parquet"
    metadata = None
    notes: tuple[str, ...] = ()

    def __init__(self, source: str, open_url: OpenUrl, progress: Callable[[str], None]) -> None:
        self.url = canonical_url(source)
        self.identity = self.url
        self.properties: Mapping[str, str] = {}
        self._progress = progress
        self._store, self._key = open_url(self.url)
        self._listed = {
            f"{self.url}{name.removeprefix(self._key)}": (name, size)
            for name, size in self._store.list_sizes(f"{self._key}/")
            if not is_hidden(name, self._key)
        }
        if not self._listed:
            raise NotFound(f"there are no files in the folder {self.url}: check the path")
        self._partitions = {
            path: partition_of(name.removeprefix(f"{self._key}/"), self.url)
            for path, (name, _) in self._listed.items()
        }
        self._names = check_partitions(self._partitions)

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        yield self.live({}, None)

    def live(self, known: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        same = {
            path: known[path]
            for path, (_, size) in self._listed.items()
            if path in known and known[path].size_bytes == size
        }
        found = self._read([path for path in self._listed if path not in same])
        merged = Columns(columns)
        for file in found:
            merged.add(
                [each for each in file.columns.fields if not self._is_partition(each)],
                f"the file {file.path}",
            )
        types = {
            name: partition_type(partition[name] for partition in self._partitions.values())
            for name in self._names
        }
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

    def _id(self) -> str:
        said = "\n".join(f"{path} {size}" for path, (_, size) in sorted(self._listed.items()))
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
        name, size = self._listed[path]
        try:
            file, _, old_times = read_footer(self._store, path, name, size, {})
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
        return data_files(placed, metadata, None)


def _with_zone(field: Field, path: tuple[str, ...], old_times: frozenset[str]) -> Field:
    """Return a column whose times of the deprecated type INT96 are points in time, as for Spark."""
    type: Type = field.type
    if ".".join(path) in old_times:
        type = AtomicType("timestamp")
    elif isinstance(type, StructType):
        type = StructType(tuple(_with_zone(each, (*path, each.name), old_times) for each in type.fields))
    return msgspec.structs.replace(field, type=type)

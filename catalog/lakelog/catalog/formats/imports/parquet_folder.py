"""A folder of Parquet files as a source. Its only version is the folder's present content.

Only names and sizes say whether a file is the same. An imported file with an unchanged size is not read
again. A later read of it fails if its footer differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.parquet import (
    FoundFile,
    data_files,
    is_hidden,
    literal_of,
    partition_of,
    read_footer,
)
from lakelog.catalog.core.schema import (
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
    children,
    with_children,
)
from lakelog.catalog.errors import SourceDiverged
from lakelog.catalog.formats.imports.bounds import with_bounds_of
from lakelog.catalog.formats.imports.claims import check_files_unclaimed, is_claim
from lakelog.catalog.formats.imports.folder_columns import (
    FolderColumns,
    check_partitions,
    listed_names,
    partition_type,
    value_text,
)
from lakelog.catalog.formats.imports.folder_table import KnownFolder
from lakelog.catalog.formats.imports.source import SourceVersion
from lakelog.log import OpenUrl, canonical_url
from lakelog.log.errors import InvalidInput, NotFound, Unsupported
from lakelog.log.parallel import in_threads
from lakelog.log.stores import ObjectStore

_LOGS = {
    "_delta_log": ("Delta", "import it in the format delta"),
    ".hoodie": ("Hudi", "copy its rows by CREATE TABLE … AS SELECT"),
}
"""Folders in which tables of other formats have their logs, with the remedy."""

BY_NAME = "table:"
"""The beginning of the identity of a folder that a catalog has as a table."""


class ParquetFolder:
    """See `ImportSource`."""

    format = "parquet"
    metadata = None
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        source: str,
        open_url: OpenUrl,
        progress: Callable[[str], None],
        known_folder: KnownFolder | None = None,
    ) -> None:
        known_folder = known_folder or KnownFolder()
        self._table, self._footers = known_folder.table, known_folder.footers
        self._open_url = open_url
        self.url = canonical_url(source)
        # A catalog may have fewer files of the folder, or files elsewhere. So neither is a later version of
        # the other.
        self.identity = self.url if self._table is None else f"{BY_NAME}{self.url}"
        self.properties: Mapping[str, str] = {}
        self._progress = progress
        self._listed: dict[str, tuple[ObjectStore, str, int]] = {}
        self._partitions: dict[str, dict[str, str | None]] = {}
        self._places: dict[str, dict[str, str | None]] = {}
        if self._table is None or self._table.places is None:
            self._list(self.url, None)
        else:
            self._refuse_logs()
            for place, values in self._table.places:
                if (folder := canonical_url(place)) in self._places:
                    raise InvalidInput(
                        f"two partitions of the table at {self.url} have the folder {folder}, so that each row is "
                        "there twice: insert its rows by a query"
                    )
                self._places[folder] = self._table.values(values)
            for folder, partition in self._places.items():
                self._list(folder, partition)
        if not self._listed and self._table is None:
            raise NotFound(
                f"there are no files in the folder {self.url}: check the path, and give a folder rather than a file"
            )
        self._names = self._partitioned_by()

    def _list(self, folder: str, partition: dict[str, str | None] | None) -> None:
        """Take the files of a folder.

        They belong to `partition`; if it is None, the names of folders say to which.
        """
        store, key = self._open_url(folder)
        prefix = f"{key}/" if key else ""
        sizes = dict(store.list_sizes(prefix))
        _refuse_tables(folder, (name.removeprefix(prefix) for name in sizes))
        claims = [f"{folder}/{name.removeprefix(prefix)}" for name in sizes if is_claim(name)]
        check_files_unclaimed(self._open_url, claims)
        for name, size in sizes.items():
            if is_hidden(name, key):
                continue
            inside = name.removeprefix(prefix)
            path = f"{folder}/{inside}"
            if partition is not None and "/" in inside:
                # Spark reads files directly in the folder of a partition.
                if path.rpartition("/")[0] in self._places:
                    continue
                raise InvalidInput(
                    f"{path} is in a folder within that of a partition, {folder}, where Spark reads no files: move it "
                    "away, or into the partition's folder"
                )
            self._listed[path] = store, name, size
            self._partitions[path] = dict(partition_of(inside, folder) if partition is None else partition)

    def _refuse_logs(self) -> None:
        """Check for logs of other formats, as listing the folder does, if only partitions are listed."""
        for name in _LOGS:
            store, key = self._open_url(f"{self.url}/{name}")
            _refuse_tables(self.url, (name for _ in islice(store.list_after(f"{key}/"), 1)))

    def _partitioned_by(self) -> tuple[str, ...]:
        folder_names = check_partitions(self._partitions)
        if self._table is None:
            return folder_names
        catalog_names = self._table.partitioned_by
        if self._partitions and tuple(map(str.lower, folder_names)) != tuple(map(str.lower, catalog_names)):
            raise InvalidInput(
                f"the folders of {self.url} are partitions by {listed_names(folder_names)}, and its catalog says "
                f"{listed_names(catalog_names)}: repair the table there"
            )
        self._partitions = {path: self._table.values(values) for path, values in self._partitions.items()}
        return catalog_names

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        yield self.live({}, None)

    def live(self, known_files: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        same = {
            path: known_files[path]
            for path, (_, _, size) in self._listed.items()
            if path in known_files and known_files[path].size_bytes == size
        }
        footers = self._read([path for path in self._listed if path not in same])
        all_columns = FolderColumns(columns)
        if self._table is not None:
            all_columns.add(self._table.data_columns(), "the catalog")
        for file in footers:
            file_columns = (
                file.columns.fields if self._table is None else self._table.of_file(file.columns.fields)
            )
            all_columns.add(
                [column for column in file_columns if not self._is_partition(column)], f"the file {file.path}"
            )
        types = {name: self._partition_type(name, columns) for name in self._names}
        all_columns.add(
            [Field(name=name, type=type) for name, type in types.items()], f"the folders of {self.url}"
        )
        schema = all_columns.schema()
        self._check_partitions_stay(same.values(), schema)
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
            added=(*files, *self._entries(footers, schema, spec)),
        )

    def _check_partitions_stay(self, known_files: Iterable[DataFile], schema: Schema) -> None:
        """Raise SourceDiverged if a catalog moved a folder to another partition since the last import."""
        columns = [schema.find((name,)) for name in self._names]
        for file in known_files if self._places else ():
            for column, text in zip(columns, self._partitions[file.path].values(), strict=True):
                constant = file.constants.get(column.id)
                # A CHAR is padded.
                if constant is None or _trimmed(constant.value) != _trimmed(
                    _literal(text, AtomicType(constant.type))
                ):
                    raise SourceDiverged(
                        f"{file.path} is in another partition by {column.name} than at the last import, {text}: import "
                        "the source as another table"
                    )

    def _is_partition(self, column: Field) -> bool:
        return column.name.lower() in {name.lower() for name in self._names}

    def _partition_type(self, name: str, columns: Schema | None) -> Type:
        """Return the type of a partition column. A column that was text stays text, whatever values remain."""
        if self._table is not None:
            return self._table.partition_type(name)
        old_column = None if columns is None else columns.get((name,))
        if old_column is not None and old_column.type == AtomicType("string"):
            return old_column.type
        return partition_type(partition[name] for partition in self._partitions.values())

    def _id(self) -> str:
        listing = "\n".join(f"{path} {size}" for path, (_, _, size) in sorted(self._listed.items()))
        return hashlib.sha256(listing.encode()).hexdigest()[:16]

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
        footers = []
        for file in in_threads(self._footer, paths, "lakelog-footers"):
            footers.append(file)
            if len(footers) % 1_000 == 0:
                self._progress(f"{len(footers):,} of {len(paths):,} files of the source were looked at")
        return footers

    def _footer(self, path: str) -> FoundFile:
        (store, name, size), known_footer = self._listed[path], self._footers.get(path)
        if known_footer is not None and known_footer.size_bytes == size and _has_its_types(known_footer):
            return replace(known_footer, partition={})
        try:
            file, _, old_times = read_footer(store, path, name, size, {})
        except NotFound:
            raise NotFound(
                f"the file {path} of the source is gone since its folder was listed: import it again"
            ) from None
        if not old_times:
            return file
        columns = tuple(_with_zone(column, (column.name,), old_times) for column in file.columns.fields)
        return replace(file, columns=StructType(columns))

    def _entries(
        self, found_files: Sequence[FoundFile], schema: Schema, spec: PartitionSpec
    ) -> list[DataFile]:
        files = []
        for file in found_files:
            partition = {}
            for name, text in self._partitions[file.path].items():
                type = schema.find((name,)).type
                assert isinstance(type, AtomicType), "a folder's name has single values"
                partition[name] = _literal(text, type)
            files.append(replace(file, partition=partition))
        metadata = Metadata(schema=schema, specs=(spec,), sort_order=SortOrder(), properties={})
        return data_files(files, metadata, None, ignore_extra_columns=self._table is not None)


def _literal(text: str | None, type: AtomicType) -> Any:
    return literal_of(value_text(text, type), type)


def _trimmed(value: Any) -> Any:
    return value.rstrip(" ") if isinstance(value, str) else value


def _has_its_types(file: FoundFile) -> bool:
    """Return whether the types that an engine found are certainly the file's.

    Spark takes a column without a type, which has no value in the file, for an INT.
    """
    whole = [column for column in file.columns.fields if column.type == AtomicType("integer")]
    column_stats = [file.stats.get((column.name,)) for column in whole]
    return all(
        stats is not None and stats.nulls is not None and stats.nulls < file.rows for stats in column_stats
    )


def _refuse_tables(url: str, names: Iterable[str]) -> None:
    """Raise Unsupported for the folder of a table with a log, in which some files are not live."""
    for name in names:
        kind, instead = _LOGS.get(name.partition("/")[0], (None, None))
        if kind is not None:
            raise Unsupported(
                f"{url} is a table of {kind}, some of whose files may have rows that were deleted: {instead}"
            )


def _with_zone(field: Field, path: tuple[str, ...], old_times: frozenset[str]) -> Field:
    """Return a column whose times of the deprecated type INT96 are points in time, as in Spark."""
    type: Type = field.type
    if ".".join(path) in old_times:
        type = AtomicType("timestamp")
    elif isinstance(type, StructType):
        type = StructType(tuple(_with_zone(part, (*path, part.name), old_times) for part in type.fields))
    elif any(part.startswith(f"{'.'.join(path)}.") for part in old_times):
        # Writers name the parts of lists and maps differently. A writer of INT96 has no other times.
        type = _all_with_zone(type)
    return msgspec.structs.replace(field, type=type)


def _all_with_zone(type: Type) -> Type:
    if type == AtomicType("timestamp_ntz"):
        return AtomicType("timestamp")
    parts = (msgspec.structs.replace(part, type=_all_with_zone(part.type)) for part in children(type))
    return with_children(type, tuple(parts))

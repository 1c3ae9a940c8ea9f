"""The layout of a table's live data files: by partition, by size, and along the column by which rows are clustered.

Pure computation on the table of files, vectorised if there may be many. It must not read a data file.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DELETED
from lakelog.catalog.core.planning import array_of, partition_values
from lakelog.catalog.core.schema import (
    TARGET_FILE_SIZE,
    Metadata,
    PartitionField,
    shown_names,
)
from lakelog.catalog.keeping.upkeep import SMALL, KeySpans, depths_of, keys_of, size_classes
from lakelog.catalog.looking.pictures.model import FilePicture, LayoutPicture, PartitionPicture
from lakelog.catalog.looking.pictures.words import partition_value
from lakelog.log.secrets import masked_urls

PARTITIONS_MAX = 5_000
FILES_MAX = 200
"""The layout lists so many of the largest files, so many with most deleted rows, and so many along the key."""

PLACES = 1000


def layout_of(files: pa.Table, metadata: Metadata) -> LayoutPicture:
    """Return the layout of `files`, in the form of `FileSet.chunks`. The key is the first column by which rows are
    clustered, else sorted."""
    key = next(iter(keys_of(metadata)), None)
    target = TARGET_FILE_SIZE.of(metadata.properties)
    deleted_counts = pc.fill_null(array_of(files, DELETED), 0) if DELETED in files.column_names else None
    files = files.append_column(
        "gone", pa.repeat(0, files.num_rows) if deleted_counts is None else deleted_counts
    )
    parts = _Parts(files, metadata)
    spans = None if key is None else _Spans(files, key, metadata)
    return LayoutPicture(
        file_count=files.num_rows,
        rows=_sum(files, "rows"),
        size_bytes=_sum(files, "size"),
        deleted_rows=_sum(files, "gone"),
        target_bytes=target,
        partitions=parts.grouped(target),
        sizes=size_classes(files),
        files=_listed(files, parts, spans),
        key=None if spans is None or not spans.known else spans.name,
        overlap=None if spans is None else spans.overlap,
        keys=depths_of(files, metadata),
    )


def _sum(files: pa.Table, name: str) -> int:
    return int(pc.sum(files[name]).as_py() or 0)


class _Parts:
    """The partitions of files, under every partitioning that the table had."""

    def __init__(self, files: pa.Table, metadata: Metadata) -> None:
        self._files = files
        self._specs = {
            spec.id: list(zip(shown_names(spec, metadata.schema), spec.fields, strict=True))
            for spec in metadata.specs
        }
        fields: dict[int, PartitionField] = {
            field.id: field for spec in metadata.specs for field in spec.fields
        }
        self._fields = list(fields.values())
        self._values = {field.id: partition_values(files, field) for field in self._fields}

    def text(self, spec: int, values: dict[int, Any]) -> str:
        """Return the values of a partition: `day=2026-01-02, region=EU`."""
        return ", ".join(
            f"{name}={'NULL' if value is None else value}"
            for name, field in self._specs.get(spec, ())
            for value in [partition_value(values[field.id], field.transform)]
        )

    def at(self, place: int) -> str:
        values = {id: array[place].as_py() for id, array in self._values.items()}
        return self.text(self._files["spec"][place].as_py(), values)

    def grouped(self, target: int) -> tuple[PartitionPicture, ...]:
        """Return the partitions, the largest first."""
        if not any(self._specs.values()):
            return ()
        files = self._files
        small = pc.less(files["size"], int(target * SMALL)).cast(pa.int64())
        keys = {f"p{id}": array for id, array in self._values.items()}
        counts = {name: array_of(files, name) for name in ("rows", "size", "gone")}
        table = pa.table({"spec": array_of(files, "spec"), **keys, **counts, "small": small})
        table = table.append_column("files", pa.repeat(1, files.num_rows))
        names = ("size", "rows", "gone", "small", "files")
        sums = pa.TableGroupBy(table, ["spec", *keys]).aggregate([(name, "sum") for name in names])
        sums = sums.sort_by([("size_sum", "descending")])
        partitions = [self._partition(row) for row in sums.slice(0, PARTITIONS_MAX).to_pylist()]
        smaller_partitions = sums.slice(PARTITIONS_MAX)
        if smaller_partitions.num_rows:
            total = {f"{name}_sum": _sum(smaller_partitions, f"{name}_sum") for name in names}
            partitions.append(
                _partition(
                    f"{smaller_partitions.num_rows:,} smaller ones", total, smaller_partitions.num_rows
                )
            )
        return tuple(partitions)

    def _partition(self, row: dict[str, Any]) -> PartitionPicture:
        values = {field.id: row[f"p{field.id}"] for field in self._fields}
        return _partition(self.text(row["spec"], values), row, 1)


def _partition(values: str, sums: dict[str, Any], count: int) -> PartitionPicture:
    return PartitionPicture(
        values=values,
        files=sums["files_sum"],
        rows=sums["rows_sum"],
        size_bytes=sums["size_sum"],
        deleted_rows=sums["gone_sum"],
        small_files=sums["small_sum"],
        count=count,
    )


class _Spans(KeySpans):
    """The spans of files along a column, as they are drawn."""

    def __init__(self, files: pa.Table, id: int, metadata: Metadata) -> None:
        super().__init__(files, id, metadata)
        # A place along the key is that of a value among all bounds, so that each file has its share of the drawing.
        self._all = sorted({*self.sorted_lows, *self.sorted_highs})

    def sample(self) -> list[int]:
        """Return files at even distances in the order of the key."""
        places_in_order = sorted(self.known, key=lambda place: (self.lows[place], self.highs[place]))
        step = max(1, -(-len(places_in_order) // FILES_MAX))
        return places_in_order[::step]

    def of(self, place: int) -> dict[str, Any]:
        if not self.known or self.lows[place] is None or self.highs[place] is None:
            return {}
        most = max(1, len(self._all) - 1)
        low, high = self.lows[place], self.highs[place]
        return {
            "low": str(low),
            "high": str(high),
            "first": bisect_left(self._all, low) * PLACES // most,
            "last": bisect_left(self._all, high) * PLACES // most,
        }


def _listed(files: pa.Table, parts: _Parts, spans: _Spans | None) -> tuple[FilePicture, ...]:
    largest = _top(files, "size")
    with_deleted_rows = [place for place in _top(files, "gone") if files["gone"][place].as_py()]
    places = dict.fromkeys(chain(largest, with_deleted_rows, spans.sample() if spans is not None else ()))
    return tuple(
        FilePicture(
            path=masked_urls(files["path"][place].as_py()),
            partition=parts.at(place),
            rows=files["rows"][place].as_py(),
            size_bytes=files["size"][place].as_py(),
            deleted_rows=files["gone"][place].as_py(),
            **(spans.of(place) if spans is not None else {}),
        )
        for place in places
    )


def _top(files: pa.Table, name: str) -> list[int]:
    indices = pc.sort_indices(files, sort_keys=[(name, "descending"), ("path", "ascending")])
    return [int(place) for place in indices.slice(0, FILES_MAX).to_pylist()]

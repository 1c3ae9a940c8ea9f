"""New identity values for written files that cannot be committed with their present values.

A writer that loses the race for values takes as many new values, by a commit of its own that cannot conflict,
and rewrites its files with them. So a write does this at most once, however many others write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.commits import gone_as_no_such_table
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.opening import footer_crc_of
from lakelog.catalog.core.parquet.writing import OpenFile, codec_of
from lakelog.catalog.core.schema.identity import ValuesTaken, check_range, identity_fields, next_values
from lakelog.catalog.core.schema.schema import dotted
from lakelog.catalog.core.state.events import IdentityTaken, encode
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import ValuesGone
from lakelog.catalog.next_step import start_over
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import CommitUnknown, NotFound, StorageError


@dataclass(frozen=True, slots=True)
class RenumberedFiles:
    """Files with values of their own. `written` are the paths of rewritten files, `replaced` the paths of
    their originals."""

    files: list[DataFile]
    written: list[str]
    replaced: list[str]


@dataclass(frozen=True, slots=True)
class ValueShift:
    """A shift of a column's values that were taken for a write, `by` a number in their direction of growth.

    Values before `first` belong to rows that an update keeps.
    """

    first: int
    by: int

    def of(self, value: int) -> int:
        moves = value >= self.first if self.by > 0 else value <= self.first
        return value + self.by if moves else value

    def of_all(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        first, by = pa.scalar(self.first, pa.int64()), pa.scalar(self.by, pa.int64())
        moves = pc.greater_equal(values, first) if self.by > 0 else pc.less_equal(values, first)
        return pc.if_else(moves, pc.add_checked(values, by), values)


def renumbered(head: TableHead, files: Sequence[DataFile], values: Sequence[ValuesTaken]) -> RenumberedFiles:
    """Take as many values as `values` has, beyond all taken values, and return `files` with the new values.

    Raises ValuesGone if other values are needed and the files also hold values that the user gave. Costs a
    commit, and if the values differ, a GET and a PUT for each file.
    """
    new_values = reserved(head, values)
    moves: dict[int, ValueShift] = {}
    for old, new in zip(values, new_values, strict=True):
        if new.first != old.first:
            moves[old.column] = ValueShift(old.first, new.first - old.first)
            if old.given:
                raise ValuesGone(
                    f"the write to {head.name} conflicts with other writers, which took the same values of "
                    f"{dotted(head.schema.path_of(old.column))}. Its rows cannot get new ones, because some of them "
                    f"have explicit values. Nothing was changed: {start_over()}",
                    version=head.tracked.outside.current().version,
                )
    if not moves:
        return RenumberedFiles(list(files), [], [])
    mark = new_values[0].first
    new_files: list[DataFile] = []
    for file in files:
        new_files.append(moved(head, file, moves, mark))
    return RenumberedFiles(new_files, [file.path for file in new_files], [file.path for file in files])


def reserved(head: TableHead, values: Sequence[ValuesTaken]) -> list[ValuesTaken]:
    """Take as many values of each column as `values` has, by a commit that all clients see at once."""
    log, schema = head.tracked.outside, head.schema
    fields_by_id = {field.id: field for field, _ in identity_fields(schema)}
    result: list[ValuesTaken] = []

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        if log is head.tracked:
            # A transaction may have renamed the table, which other clients do not see yet.
            head.check_name(view)
        begin = next_values(schema, view.state.identities)
        result.clear()
        for entry in values:
            first = begin[entry.column]
            last = first + entry.last - entry.first
            check_range(fields_by_id[entry.column], first)
            check_range(fields_by_id[entry.column], last)
            result.append(ValuesTaken(column=entry.column, first=first, last=last))
        events = [IdentityTaken(column=entry.column, first=entry.first, last=entry.last) for entry in result]
        return Draft(events=encode(events))

    with gone_as_no_such_table(head.name):
        try:
            log.commit(log.known or log.current(), decide)
        except CommitUnknown as error:
            # Values may have been taken in vain, but the write itself certainly did not happen.
            raise StorageError(
                f"nothing was written to {head.name}: whether values of its identity column were taken is not known "
                f"({error}); retry",
                location=error.location,
            ) from error
    return result


def moved(head: TableHead, file: DataFile, moves: Mapping[int, ValueShift], mark: int) -> DataFile:
    """Put a copy of a file, under a name of its own, with the values of these columns moved by `moves`."""
    log, metadata = head.tracked, head.metadata
    prefix = f"{log.prefix}/" if log.prefix else ""
    data = log.store.get(prefix + file.path)
    if data is None:
        raise NotFound(f"the data file {file.path} was just written, but does not exist: write it again")
    columns = {metadata.schema.field_by_id(id).physical: move for id, move in moves.items()}
    content = _rewritten(data, columns, codec_of(metadata.properties))
    # The mark is unique, so no other attempt at the same write puts another file there.
    path = f"{file.path.removesuffix('.parquet')}-from{mark}.parquet"
    log.store.put(prefix + path, content)
    return msgspec.structs.replace(
        file,
        path=path,
        size_bytes=len(content),
        stats={id: _shifted(stats, moves.get(id)) for id, stats in file.stats.items()},
        crc=crc32(content),
        footer_crc=footer_crc_of(content),
    )


def _rewritten(data: bytes, moves: Mapping[str, ValueShift], codec: str) -> bytes:
    source = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    # The schema as it is in the file, because Arrow does not know all of Spark's types.
    floats = [field.name for field in source.schema_arrow if pa.types.is_floating(field.type)]
    target = OpenFile(source.schema_arrow, codec, floats)
    for group in range(source.num_row_groups):
        rows = source.read_row_group(group)
        for column, move in moves.items():
            place = rows.schema.get_field_index(column)
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, move.of_all(rows.column(place)))
        target.write(rows, ())
    content, _ = target.close()
    return content


def _shifted(stats: Any, move: ValueShift | None) -> Any:
    if move is None or stats.min is None or stats.max is None:
        return stats
    return msgspec.structs.replace(stats, min=move.of(stats.min), max=move.of(stats.max))

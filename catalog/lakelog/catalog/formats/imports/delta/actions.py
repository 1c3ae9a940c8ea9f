"""What the objects of a Delta log contain: actions, of a commit as JSON, of a checkpoint as Parquet or JSON.

Unknown actions and members are skipped, as Delta asks of readers: what they must not skip is a feature of the protocol.
Pure: the bytes are handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.core.schema import from_arrow
from lakelog.log.decoding import UNREADABLE, said
from lakelog.log.errors import FormatError
from lakelog.log.grammar import TIME_MAX_US

ROWS_AT_ONCE = 10_000
DEFINITION = ("metaData", "protocol")
EVERYTHING = (*DEFINITION, "add", "sidecar")
"""Of a checkpoint: tombstones, transactions and domains are for writers."""


class Vector(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where the deleted rows of a file are: `storage_type` is u (beside the table), p (a path) or i (inline)."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{at}"


class Add(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file with its deleted rows. `stats` is JSON; `parsed` is what a checkpoint has in its place, as JSON literals
    of the columns' types."""

    path: str
    partition_values: dict[str, str | None] = {}
    size: int
    stats: str | None = None
    deletion_vector: Vector | None = None
    base_row_id: int | None = None
    parsed: dict[str, Any] | None = None

    @property
    def vector_id(self) -> str | None:
        return None if self.deletion_vector is None else self.deletion_vector.unique_id


class Remove(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    path: str
    deletion_vector: Vector | None = None

    @property
    def vector_id(self) -> str | None:
        return None if self.deletion_vector is None else self.deletion_vector.unique_id


class Format(msgspec.Struct, frozen=True):
    provider: str = "parquet"


class TableMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str | None] = {}
    description: str | None = None
    format: Format = Format()


class Protocol(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    path: str


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a writer says of its commit, in milliseconds and words; only `in_commit_timestamp` has a form."""

    timestamp: Any = None
    in_commit_timestamp: Any = None
    operation: Any = None

    @property
    def time_us(self) -> int | None:
        for each in (self.in_commit_timestamp, self.timestamp):
            if isinstance(each, int) and not isinstance(each, bool) and 0 <= each * 1000 <= TIME_MAX_US:
                return each * 1000
        return None

    @property
    def word(self) -> str | None:
        return self.operation if isinstance(self.operation, str) else None


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    add: Add | None = None
    remove: Remove | None = None
    # Not camel case of its own: the protocol's word.
    metadata: TableMetadata | None = msgspec.field(default=None, name="metaData")
    protocol: Protocol | None = None
    # Of any form: see `commit_info_of`.
    commit_info: Any = None
    sidecar: Sidecar | None = None


_ACTIONS = msgspec.json.Decoder(Action)


def commit_info_of(actions: Iterable[Action]) -> CommitInfo:
    """Return what the actions of a commit say of it: nothing where that is not an object, as it may be."""
    given = next((each.commit_info for each in actions if each.commit_info is not None), None)
    return msgspec.convert(given, CommitInfo) if isinstance(given, dict) else CommitInfo()


def actions_of_json(data: bytes, url: str) -> list[Action]:
    """Return the actions of a commit, or of a checkpoint in JSON, at `url`. FormatError naming it."""
    try:
        return _ACTIONS.decode_lines(data)
    except UNREADABLE as error:
        raise FormatError(
            f"{url} is not an object of a Delta log: {said(error)}; it was truncated or altered"
        ) from None


def actions_of_parquet(data: bytes, url: str, kinds: Sequence[str]) -> Iterator[Action]:
    """Yield the actions of these kinds of a checkpoint, or of a part of one, at `url`. FormatError naming it."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
        columns = [name for name in file.schema_arrow.names if name in kinds]
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=columns):
            for name in columns:
                yield from _of_column(name, batch.column(name).drop_null())
    except (pa.ArrowException, OSError, *UNREADABLE) as error:
        raise FormatError(
            f"{url} is not a checkpoint of a Delta log: {said(error)}; it was truncated or altered"
        ) from None


def _of_column(name: str, values: pa.StructArray) -> Iterator[Action]:
    """Yield the actions in a column of a checkpoint."""
    if not len(values):
        return
    parsed: list[Any] = [None] * len(values)
    kept = [values.type.field(index).name for index in range(values.type.num_fields)]
    if "stats_parsed" in kept:
        parsed = _literals(_child(values, "stats_parsed"))
    kept = [each for each in kept if not each.endswith("_parsed")]
    rows = pa.StructArray.from_arrays([_child(values, each) for each in kept], names=kept).to_pylist()
    for row, stats in zip(rows, parsed, strict=True):
        given = {key: _with_mappings(key, value) for key, value in row.items() if value is not None}
        action = msgspec.convert({name: given}, Action)
        if action.add is not None and action.add.stats is None and stats is not None:
            action = Action(add=msgspec.structs.replace(action.add, parsed=stats))
        yield action


def _with_mappings(key: str, value: Any) -> Any:
    """Return a value of Arrow's as JSON has it: a map is a list of pairs there."""
    if key in ("partitionValues", "configuration"):
        return dict(value)
    if key == "format":
        return {inner: each for inner, each in value.items() if inner == "provider" and each is not None}
    return value


def _child(values: pa.StructArray, name: str) -> pa.Array:
    """Return the values of a field, NULL where their struct is."""
    return values.flatten()[values.type.get_field_index(name)]


def _literals(values: pa.Array) -> list[Any]:
    """Return typed statistics as JSON literals, structs as mappings. What has no such form is not known."""
    type = values.type
    if pa.types.is_date(type):
        # As text: a number of days would be one of microseconds, where the column was widened since.
        days: list[Any] = values.cast(pa.string()).to_pylist()
        return days
    if pa.types.is_struct(type):
        names = [type.field(index).name for index in range(type.num_fields)]
        columns = [_literals(_child(values, name)) for name in names]
        found: list[Any] = []
        for row, valid in enumerate(values.is_valid().to_pylist()):
            found.append(
                {name: column[row] for name, column in zip(names, columns, strict=True)} if valid else None
            )
        return found
    try:
        if pa.types.is_timestamp(type) and type.unit != "us":
            values = values.cast(pa.timestamp("us", type.tz), safe=False)
        return from_arrow(values)
    except (pa.ArrowException, ValueError, OverflowError):
        return [None] * len(values)


def configuration_of(metadata: TableMetadata, name: str) -> str | None:
    """Return a setting of the table, whose names Delta does not take by their case."""
    lowered = {key.lower(): value for key, value in metadata.configuration.items()}
    return lowered.get(name.lower())

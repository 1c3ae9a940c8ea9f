"""The actions in the objects of a Delta log: a commit's as JSON, a checkpoint's as Parquet or JSON.

Unknown actions and members are skipped, as Delta requires of readers. A part that readers must not skip is a
feature of the protocol. Pure: the caller provides the bytes.
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
"""The actions that are read of a checkpoint. Tombstones, transactions and domains are for writers."""


class DeltaVector(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The place of a file's deleted rows. `storage_type` is u (beside the table), p (a path) or i (inline)."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{at}"


class AddAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file with its deleted rows.

    `stats` is JSON. `parsed` has a checkpoint's typed statistics instead, as JSON literals of the columns'
    types.
    """

    path: str
    partition_values: dict[str, str | None] = {}
    size: int
    stats: str | None = None
    deletion_vector: DeltaVector | None = None
    base_row_id: int | None = None
    parsed: dict[str, Any] | None = None

    @property
    def vector_id(self) -> str | None:
        return None if self.deletion_vector is None else self.deletion_vector.unique_id


class RemoveAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    path: str
    deletion_vector: DeltaVector | None = None

    @property
    def vector_id(self) -> str | None:
        return None if self.deletion_vector is None else self.deletion_vector.unique_id


class DeltaFormat(msgspec.Struct, frozen=True):
    provider: str = "parquet"


class TableMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str | None] = {}
    description: str | None = None
    format: DeltaFormat = DeltaFormat()


class DeltaProtocol(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


class DeltaSidecar(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    path: str


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A writer's description of its commit, with times in milliseconds.

    Only `in_commit_timestamp` has a fixed form.
    """

    timestamp: Any = None
    in_commit_timestamp: Any = None
    operation: Any = None

    @property
    def time_us(self) -> int | None:
        for time_ms in (self.in_commit_timestamp, self.timestamp):
            if (
                isinstance(time_ms, int)
                and not isinstance(time_ms, bool)
                and 0 <= time_ms * 1000 <= TIME_MAX_US
            ):
                return time_ms * 1000
        return None

    @property
    def word(self) -> str | None:
        return self.operation if isinstance(self.operation, str) else None


class DeltaAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    add: AddAction | None = None
    remove: RemoveAction | None = None
    # The protocol's own word, which is not the camel case of the member.
    metadata: TableMetadata | None = msgspec.field(default=None, name="metaData")
    protocol: DeltaProtocol | None = None
    # Of any form (see `commit_info_of`).
    commit_info: Any = None
    sidecar: DeltaSidecar | None = None


_ACTIONS = msgspec.json.Decoder(DeltaAction)


def commit_info_of(actions: Iterable[DeltaAction]) -> CommitInfo:
    """Return the description of a commit in its actions.

    Empty if it is not an object, which the protocol allows.
    """
    info = next((action.commit_info for action in actions if action.commit_info is not None), None)
    return msgspec.convert(info, CommitInfo) if isinstance(info, dict) else CommitInfo()


def actions_of_json(data: bytes, url: str) -> list[DeltaAction]:
    """Return the actions of a commit, or of a JSON checkpoint, at `url`. Raises FormatError with the URL."""
    try:
        return _ACTIONS.decode_lines(data)
    except UNREADABLE as error:
        raise FormatError(
            f"{url} is not an object of a Delta log: {said(error)}; it was truncated or altered"
        ) from None


def actions_of_parquet(data: bytes, url: str, kinds: Sequence[str]) -> Iterator[DeltaAction]:
    """Yield the actions of these kinds in a checkpoint, or in a part of it, at `url`.

    Raises FormatError with the URL.
    """
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


def _of_column(name: str, values: pa.StructArray) -> Iterator[DeltaAction]:
    """Yield the actions in a column of a checkpoint."""
    if not len(values):
        return
    typed_stats: list[Any] = [None] * len(values)
    field_names = [values.type.field(index).name for index in range(values.type.num_fields)]
    if "stats_parsed" in field_names:
        typed_stats = _literals(_child(values, "stats_parsed"))
    field_names = [field_name for field_name in field_names if not field_name.endswith("_parsed")]
    rows = pa.StructArray.from_arrays(
        [_child(values, field_name) for field_name in field_names], names=field_names
    ).to_pylist()
    for row, stats in zip(rows, typed_stats, strict=True):
        members = {key: _with_mappings(key, value) for key, value in row.items() if value is not None}
        action = msgspec.convert({name: members}, DeltaAction)
        if action.add is not None and action.add.stats is None and stats is not None:
            action = DeltaAction(add=msgspec.structs.replace(action.add, parsed=stats))
        yield action


def _with_mappings(key: str, value: Any) -> Any:
    """Return an Arrow value in JSON's form. A map is a list of pairs in Arrow."""
    if key in ("partitionValues", "configuration"):
        return dict(value)
    if key == "format":
        return {inner: text for inner, text in value.items() if inner == "provider" and text is not None}
    return value


def _child(values: pa.StructArray, name: str) -> pa.Array:
    """Return the values of a field, with NULL if their struct is NULL."""
    return values.flatten()[values.type.get_field_index(name)]


def _literals(values: pa.Array) -> list[Any]:
    """Return typed statistics as JSON literals, with structs as mappings.

    None for values that have no such form.
    """
    type = values.type
    if pa.types.is_date(type):
        # As text, because a number of days would be read as microseconds if the column was widened later.
        days: list[Any] = values.cast(pa.string()).to_pylist()
        return days
    if pa.types.is_struct(type):
        names = [type.field(index).name for index in range(type.num_fields)]
        columns = [_literals(_child(values, name)) for name in names]
        literals: list[Any] = []
        for row, valid in enumerate(values.is_valid().to_pylist()):
            literals.append(
                {name: column[row] for name, column in zip(names, columns, strict=True)} if valid else None
            )
        return literals
    try:
        if pa.types.is_timestamp(type) and type.unit != "us":
            values = values.cast(pa.timestamp("us", type.tz), safe=False)
        return from_arrow(values)
    except (pa.ArrowException, ValueError, OverflowError):
        return [None] * len(values)


def configuration_of(metadata: TableMetadata, name: str) -> str | None:
    """Return a setting of the table. Delta does not distinguish upper and lower case in its name."""
    settings = {key.lower(): value for key, value in metadata.configuration.items()}
    return settings.get(name.lower())

"""Files of other writers, as jobs look for them and find them."""

from __future__ import annotations

from lakelog.catalog import ColumnStats, Scalar
from lakelog.spark.requests.base import Message, Path


class ForeignSource(Message, frozen=True, kw_only=True):
    """The place of another writer's files: below a path, or in a table of the session catalog."""

    path: str | None = None
    table: Path | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.table is None):
            raise ValueError("files are below a path or in a table")


class FooterFound(Message, frozen=True, kw_only=True):
    """A file of another writer.

    `schema` is the number of its schema among all, and `stats` are by paths in the file. `footer` is the
    CRC-32 of its footer. With `old_calendar`, days before the year 1582 are days of the Julian calendar.
    """

    path: str
    size: int
    rows: int
    footer: int
    schema: int
    partition: dict[str, Scalar]
    stats: tuple[tuple[Path, ColumnStats], ...]
    old_calendar: bool


class PartitionPlace(Message, frozen=True, kw_only=True):
    """The folder of a partition, and the values of its columns as texts; None stands for NULL."""

    path: str
    values: dict[str, str | None]

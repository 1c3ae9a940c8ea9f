"""The parts that jobs and their results have many of."""

from __future__ import annotations

from lakelog.catalog import Scalar
from lakelog.spark.requests.base import Message


class ObjectToCopy(Message, frozen=True, kw_only=True):
    """An object by its URL, and the target of its copy. Without a target it is only read."""

    source: str
    target: str | None = None


class ColumnComputed(Message, frozen=True, kw_only=True):
    """The statistics of a whole column."""

    name: str
    distinct: int | None
    nulls: int | None
    min: Scalar
    max: Scalar
    average_bytes: int | None
    most_bytes: int | None


class ChecksumTaken(Message, frozen=True, kw_only=True):
    """The size of a file in bytes, and the CRC-32 of its bytes."""

    url: str
    size: int
    crc: int


class ObjectCopied(Message, frozen=True, kw_only=True):
    """The size of an object in bytes, and the SHA-256 of its bytes in hexadecimal digits, "" if it does not
    exist."""

    size: int
    sha256: str

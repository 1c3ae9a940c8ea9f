"""What jobs, and what comes of them, have many of."""

from __future__ import annotations

from lakelog.catalog.core.schema import Scalar
from lakelog.spark.requests.base import Message


class ObjectToCopy(Message, frozen=True, kw_only=True):
    """An object by its URL, and to where it is copied; without a target it is only read."""

    source: str
    target: str | None = None


class ColumnComputed(Message, frozen=True, kw_only=True):
    """What is known of a whole column."""

    name: str
    distinct: int | None
    nulls: int | None
    min: Scalar
    max: Scalar
    average_bytes: int | None
    most_bytes: int | None


class ChecksumTaken(Message, frozen=True, kw_only=True):
    """The size of a file in bytes, and the CRC-32 of these."""

    url: str
    size: int
    crc: int


class ObjectCopied(Message, frozen=True, kw_only=True):
    """The size of an object in bytes, and the SHA-256 of these in hexadecimal digits, "" where it is not there."""

    size: int
    sha256: str

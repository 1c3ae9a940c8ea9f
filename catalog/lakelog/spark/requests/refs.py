"""Tags and branches of a table."""

from __future__ import annotations

from lakelog.spark.requests.base import LoadedChange, Message


class AsOf(Message, frozen=True, kw_only=True):
    """What a tag or branch begins as: a version, a time, another tag or branch; else the loaded version."""

    version: int | None = None
    timestamp_us: int | None = None
    ref: str | None = None


class CreateRef(LoadedChange, frozen=True, kw_only=True, tag="create_ref"):
    """Make a tag or branch, as `kind` says.

    `where` says what is to be there: `new` for none of that name, or `new-or-there`, `any` (which is replaced), or
    `there` (which is replaced too).
    """

    kind: str
    name: str
    where: str
    as_of: AsOf


class DropRef(LoadedChange, frozen=True, kw_only=True, tag="drop_ref"):
    """Drop a tag or branch, as `kind` says."""

    kind: str
    name: str
    if_exists: bool

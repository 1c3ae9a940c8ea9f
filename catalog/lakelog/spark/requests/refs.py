"""Tags and branches of a table."""

from __future__ import annotations

from lakelog.spark.requests.base import LoadedChange, Message


class AsOf(Message, frozen=True, kw_only=True):
    """The start of a tag or branch: a version, a time, another tag or branch, else the loaded version."""

    version: int | None = None
    timestamp_us: int | None = None
    ref: str | None = None


class CreateRef(LoadedChange, frozen=True, kw_only=True, tag="create_ref"):
    """Make a tag or branch, as `kind` says.

    `where` says whether the name may exist. With `new`, it must not exist. With `new-or-there`, an existing
    ref stays as it is. With `any`, an existing ref is replaced. With `there`, it must exist, and is replaced.
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

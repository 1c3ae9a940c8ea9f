"""A table's health, as values for the command, procedures, Python and pictures alike. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec


class _Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class SizeClass(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The files below a size, and not below the previous size."""

    below_bytes: int
    files: int
    size_bytes: int


class KeyDepth(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """How files lie along a column by which rows are clustered or sorted.

    `overlap` is how many files, on average, may hold a value of a file: 1 if none overlap. `deepest` is how
    many files may hold the same value, at worst. `files` of them have known bounds.
    """

    column: str
    files: int
    overlap: float
    deepest: int


class LastDay(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The commits of the last 24 hours.

    `upkeep` of them changed no row. `rebased` others lost at least one race: `passed` versions came between
    their base and themselves.
    """

    commits: int = 0
    upkeep: int = 0
    rebased: int = 0
    passed: int = 0


class Advice(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A fact about health, and its remedy: a command line, and a statement of Spark's SQL.

    For an `action`, it has the expected reads and writes, and the expected savings: files that a reader need
    not open (`saves_files`), and bytes that can be deleted then (`frees_bytes`). None: not known without a
    request.
    """

    level: Literal["good", "could", "should", "damage"]
    what: str
    command: str | None = None
    sql: str | None = None
    action: str | None = None
    reads_files: int | None = None
    reads_bytes: int | None = None
    writes_files: int | None = None
    writes_bytes: int | None = None
    saves_files: int | None = None
    frees_bytes: int | None = None
    requests: int | None = None


class Health(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The health of a table, from its metadata alone.

    Only time travel needs the `old_versions`. `past_files` with `past_bytes` were removed from the table in
    readable versions. So an expiry of all these versions, and a vacuum, would free the files. The count is an
    estimate. It is a lower bound if only the newest commits were read (`read_from` is the oldest of these).
    `unreachable_files` and `unreachable_bytes` would be deleted by a vacuum now. They are counted by a
    listing, if requested.

    `manifests` are the objects that a reader of all files reads. `since_manifests` are the changes of files
    that are only in commits. `problem` is the reason if the table's health is not known, or if its policy
    cannot be followed.
    """

    name: str
    location: str
    version: int = 0
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    deleted_rows: int = 0
    target_bytes: int = 0
    small_files: int = 0
    sizes: tuple[SizeClass, ...] = ()
    keys: tuple[KeyDepth, ...] = ()
    old_versions: int = 0
    past_files: int = 0
    past_bytes: int = 0
    read_from: int = 0
    unreachable_files: int | None = None
    unreachable_bytes: int | None = None
    manifests: int = 0
    since_manifests: int = 0
    last_day: LastDay = LastDay()
    policy: dict[str, str] = {}
    advice: tuple[Advice, ...] = ()
    problem: str | None = None

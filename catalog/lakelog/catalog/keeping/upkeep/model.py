"""What is known of a table's health, as values: for the command, procedures, Python and pictures alike. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec


class _Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class SizeClass(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The files below a size, and not below the one before."""

    below_bytes: int
    files: int
    size_bytes: int


class KeyDepth(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """How files lie along a column by which rows are clustered or sorted.

    `overlap` is how many files, on average, may hold a value that one holds: 1 where none overlap. `deepest` is how
    many may hold one and the same value, at worst. `files` of them have known bounds.
    """

    column: str
    files: int
    overlap: float
    deepest: int


class LastDay(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """The commits of the last 24 hours.

    `upkeep` of them changed no row. `rebased` others lost at least one race: `passed` versions came between what they
    were prepared on and themselves.
    """

    commits: int = 0
    upkeep: int = 0
    rebased: int = 0
    passed: int = 0


class Advice(_Said, frozen=True, kw_only=True, omit_defaults=True):
    """A fact about the health of something, and what mends it: a command line, and a statement of Spark's SQL.

    Of an `action`: what it would read and write, and what it is expected to save: files that a reader need not open
    (`saves_files`), and bytes that can be deleted then (`frees_bytes`). None: not known without a request.
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
    """How a table is, from its metadata alone.

    `old_versions` only time travel needs; `past_files` with `past_bytes` were removed from the table in one of the
    versions that can be read, so that an expiry of all of them, and a vacuum, would free these: an estimate, and a
    lower bound where only the newest commits were read (`read_from` is the oldest of these). `unreachable_files` and
    `unreachable_bytes` are what a vacuum would delete now, counted by listing them, where that was requested.

    `manifests` are the objects that a reader of all files reads, `since_manifests` the changes of files that are in
    commits only. `problem` is why no more is known of the table, or why its policy cannot be followed.
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

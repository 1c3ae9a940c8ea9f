"""The findings, actions and losses of an erasure: plain values for people, programs and the receipt."""

from __future__ import annotations

import msgspec


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """An object that cannot be read any more.

    `kind` is rows, versions, tag, cut, dropped-table, unfinished-clone, repairs, streams, temporary-folder or
    temporary-files. `name` identifies the object.
    """

    kind: str
    name: str
    why: str = ""


class ErasedTable(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a log, or the expected result. `kind`: table, clone, dropped-table or namespace.

    `files` of its lines hold `rows` rows to erase, including rows that are marked as deleted. `past_files`
    are in older versions, or in none. `old_bounds` objects have bounds of files that are gone, and that may
    have had such rows. `erased_at` is the first version without any of them. `written` and `deleted` name
    objects. `error` is the reason if it was left as it is: then rows remain there.
    """

    kind: str
    name: str
    location: str
    files: int = 0
    rows: int = 0
    past_files: int = 0
    old_bounds: int = 0
    versions: int = 0
    erased_at: int | None = None
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    checked_objects: int = 0
    checked_rows: int = 0
    error: str | None = None

    @property
    def holds_any(self) -> bool:
        return bool(self.files or self.past_files)

    @property
    def details(self) -> str:
        """Return the text to show beside the counts. Empty if there is nothing to report."""
        bounds = f"{self.old_bounds:,} objects have bounds of files that are gone" if self.old_bounds else ""
        return self.error or bounds


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an erasure, or the expected result in a dry run.

    `lost` cannot be read any more. `left` still holds rows to erase, or may. `out_of_reach` cannot be checked
    by any call. `version` has the receipt, the text `statement`, in a commit with the hash `commit_hash`.
    `signature` is the signature of the text by the key `signed_by`. All of these are None in a dry run, and
    if there was nothing to forget.
    """

    erasure: str
    table: str
    filter: str
    dry_run: bool
    tables: tuple[ErasedTable, ...]
    lost: tuple[Lost, ...] = ()
    left: tuple[str, ...] = ()
    out_of_reach: tuple[str, ...] = ()
    version: int | None = None
    commit_hash: str | None = None
    statement: str | None = None
    signature: str | None = None
    signed_by: str | None = None

    @property
    def is_needed(self) -> bool:
        """Return whether there is anything to forget."""
        return any(table.holds_any or table.versions for table in self.tables)

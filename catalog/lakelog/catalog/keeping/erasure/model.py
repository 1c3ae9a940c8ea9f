"""What an erasure finds, does and loses, as plain values: for people, for programs, and for the receipt."""

from __future__ import annotations

import msgspec


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """What can be read no more: `kind` is rows, versions, tag, cut, dropped-table, unfinished-clone, repairs, streams,
    temporary-folder or temporary-files, `name` which one."""

    kind: str
    name: str
    why: str = ""


class ErasedTable(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to one log, or would be. `kind`: table, clone, dropped-table or namespace.

    `files` of its lines hold `rows` such rows, with those that are marked as deleted; `past_files` are in older
    versions, or in none. `old_bounds` objects have bounds of files that are gone, in which such rows may have been.
    `erased_at` is the first version without any of them. `written` and `deleted` name objects.
    `error` is why it was left as it is: then rows are left there.
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
        """What to show beside the counts; empty if there is nothing to say."""
        bounds = f"{self.old_bounds:,} objects have bounds of files that are gone" if self.old_bounds else ""
        return self.error or bounds


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure has done, or in a dry run would do.

    `lost` can be read no more; `left` still holds such rows, or may; `out_of_reach` is what no call can look at.
    `version` has the receipt, the text `statement`, in a commit with the hash `commit_hash`; `signature` is that of the
    text by the key `signed_by`. All of these are None in a dry run, and where there was nothing to be forgotten.
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
        """Whether there is anything to be forgotten."""
        return any(each.holds_any or each.versions for each in self.tables)

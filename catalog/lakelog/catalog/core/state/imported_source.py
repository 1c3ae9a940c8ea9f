"""What a table's log says of the source that it was imported from. Pure."""

from __future__ import annotations

import msgspec

from lakelog.log.grammar import Id, Int64, Number, Word


class ImportedSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version of another table format's table, or of a folder, whose files a table has.

    `identity` is the source's own id where it has one, else its `url`. `snapshot` and `time_us` are what the source
    calls that version, and when it says that it was made; `operation` is what it says that it did. Where the tag `ref`
    (an id) is given, that one has exactly the source's files and rows of that version. `metadata` is the folder that
    has the source's own metadata; None for a folder of files. With `copies`, the table has copies of its files. `gone`
    has the files, with the checksums of their footers, that imports have removed, and of which only the table had
    deleted rows: paths, or of copies the hashes in their names.
    """

    format: Word
    url: str
    identity: str
    snapshot: str
    time_us: Int64 | None = None
    operation: str | None = None
    ref: Id | None = None
    metadata: str | None = None
    copies: bool = False
    gone: dict[str, Number | None] | msgspec.UnsetType = msgspec.UNSET

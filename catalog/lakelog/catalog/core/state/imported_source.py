"""A table log's record of the source that the table was imported from. Pure."""

from __future__ import annotations

import msgspec

from lakelog.log.grammar import Id, Int64, Number, Word


class ImportedSource(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A version of another format's table, or of a folder, whose files a table has.

    `identity` is the source's own id if it has an id, else its `url`. `snapshot`, `time_us` and `operation`
    are the source's own name for that version, its time and its operation. If the tag `ref` (an id) is given,
    it has exactly the source's files and rows of that version. `metadata` is the folder of the source's own
    metadata, or None for a folder of files. With `copies`, the table has copies of its files. `gone` has
    files that imports have removed and of which only the table had deleted rows, with the checksums of their
    footers. Its keys are paths, or for copies the hashes in their names.
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
    gone: dict[str, Number | None] = {}

"""Tags and branches: names for contents of a table other than its present contents. Pure.

A tag keeps a version as it was, with its columns. A branch is a second line of contents that is written to
like the table itself, whose own line is called main. The columns and everything else of the table are the
same for all lines. Their files are in the table's state. Files that a tag or branch needs stay until it is
dropped, even if versions expire.

Lines know which changes of each other they have, which decides whether a line may replace another. A line
counts the changes of its contents, and records how many changes of other lines it contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeAlias

import msgspec

from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.names import check_name
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import Id, Number

MAIN = "main"
"""The name and id of a table's own line, for code that distinguishes lines."""

TAG, BRANCH = "tag", "branch"

RefKind: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(?:tag|branch)$(?!\n)")]


class ContentLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The origin of a line of contents: its number of changes, and how many changes of other lines it
    contains.

    Other lines are named by their ids. For main, changes are counted from the table's first tag or branch on.
    A tag is not a line. It names the line that had its contents at some time, and `contains` is that line's
    number of changes when the tag was made. It names none if no line had them, or if the client that wrote
    its snapshot did not record it.
    """

    changes: Number = 0
    contains: dict[Id, Number] = {}

    def changed(self) -> ContentLine:
        return msgspec.structs.replace(self, changes=self.changes + 1)

    def having(self, others: Mapping[str, int]) -> ContentLine:
        return msgspec.structs.replace(self, contains={**self.contains, **others})

    def without(self, id: str) -> ContentLine:
        contains = {line_id: changes for line_id, changes in self.contains.items() if line_id != id}
        return msgspec.structs.replace(self, contains=contains)

    @property
    def origin(self) -> str | None:
        """For a tag, the id of the line that once had its contents, if it is known and still exists."""
        return next(iter(self.contains), None)

    def has_all_of(self, id: str, other_line: ContentLine) -> bool:
        """Return whether the other line would lose nothing if it became this line."""
        return self.contains.get(id) == other_line.changes


ready(ContentLine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A tag or branch. `version` is the version whose contents it began with. `metadata` is only a tag's.

    A branch that was dropped and re-created is a different branch, because its `id` differs.
    """

    kind: str
    id: str
    version: int
    files: FileSet
    metadata: Metadata | None = None
    line: ContentLine = field(default_factory=ContentLine)

    def __repr__(self) -> str:
        return f"<{self.kind} made from version {self.version}>"

    def changed(self, files: FileSet) -> Ref:
        return replace(self, files=files, line=self.line.changed())


def check_ref_name(name: str, kind: str) -> None:
    """Raise InvalidInput for an invalid name of a tag or branch."""
    check_name(name, kind)
    if name.lower() == MAIN:
        raise InvalidInput(
            f"{name} is not a valid name for a {kind}: it stands for the table itself. Choose another name"
        )


def check_no_branches(branches: Sequence[str], title: str, what: str) -> None:
    """Raise Unsupported if a table has branches, whose rows would no longer fit it."""
    if branches:
        raise Unsupported(
            f"{title} cannot be {what} while it has branches, which share its columns: {', '.join(branches)}. "
            "Drop the branches first; tags may stay"
        )

"""Tags and branches: names for contents of a table other than its present ones. Pure.

A tag keeps a version as it was, with its columns. A branch is a second line of contents that is written to like the
table itself, whose own line is called main; the columns and all else of the table are the same for all lines. Their
files are in the table's state: files that a tag or branch needs stay until it is dropped, even if versions expire.

Lines know which changes of one another they have, which decides whether one may replace another: a line counts the
changes of its contents, and records how many changes of other lines it contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from lakelog.catalog.core.files import FileSet
from lakelog.catalog.core.schema import Metadata, ready
from lakelog.catalog.names import check_name
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import Id, Number

MAIN = "main"
"""The name of a table's own line, where lines are distinguished; and its id."""

TAG, BRANCH = "tag", "branch"


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The origin of a line of contents: how often it was changed, and how many changes of other lines it contains.

    Others are named by their ids. Of main, changes are counted from the table's first tag or branch on. A tag, which is
    no line, names the one that had its contents at some time: `contains` is how often that was changed by the time
    when the tag was made. It names none where no line did, or its snapshot is of a client that did not note it.
    """

    changes: Number = 0
    contains: dict[Id, Number] = {}

    def changed(self) -> Line:
        return msgspec.structs.replace(self, changes=self.changes + 1)

    def having(self, others: Mapping[str, int]) -> Line:
        return msgspec.structs.replace(self, contains={**self.contains, **others})

    def without(self, id: str) -> Line:
        contains = {other: changes for other, changes in self.contains.items() if other != id}
        return msgspec.structs.replace(self, contains=contains)

    @property
    def origin(self) -> str | None:
        """Of a tag, the id of the line that once had its contents, if it is known and still exists."""
        return next(iter(self.contains), None)

    def has_all_of(self, id: str, other: Line) -> bool:
        """Return whether nothing of another line would be lost if it became this one."""
        return self.contains.get(id) == other.changes


ready(Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A tag or branch. `version` is the one whose contents it began with; `metadata` is a tag's only.

    A branch that was dropped and re-created is another one: its `id` differs.
    """

    kind: str
    id: str
    version: int
    files: FileSet
    metadata: Metadata | None = None
    line: Line = field(default_factory=Line)

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
    """Raise Unsupported where a table has branches, whose rows would no longer fit it."""
    if branches:
        raise Unsupported(
            f"{title} cannot be {what} while it has branches, which share its columns: {', '.join(branches)}. "
            "Drop the branches first; tags may stay"
        )

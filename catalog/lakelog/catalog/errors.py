"""The catalog's errors: leaves of the tree in `lakelog.log.errors`.

NotFound       NoSuchColumn, NoSuchConstraint, NoSuchFunction, NoSuchNamespace, NoSuchRef,
               NoSuchTable (TableRenamed), NoSuchView, NoSuchWarehouse
AlreadyExists  ColumnExists, ConstraintExists, FunctionExists, NamespaceExists, RefExists,
               TableExists (LocationTaken, ViewExists)
InvalidInput   CheckViolated, ClockNotTrusted, MultiplePrimaryKeys, NamespaceNotEmpty, OwnersUnknown, RowsUnproven,
               SourceDiverged
ConflictError  BatchCommitted, CommitConflict (NameReassigned, ValuesGone), StreamStopped
FormatError    LinkedElsewhere
LakelogError   DoneInPart
"""

from __future__ import annotations

from lakelog.log.errors import AlreadyExists, ConflictError, FormatError, InvalidInput, LakelogError, NotFound


class NoSuchColumn(NotFound):
    """A column or nested field of that name is not in the schema."""

    kind = "no-such-column"


class ColumnExists(AlreadyExists):
    """Another column of the same struct has that name (case-insensitive)."""

    kind = "column-already-exists"


class NoSuchNamespace(NotFound):
    """There is no namespace of that name, or it was dropped."""

    kind = "no-such-namespace"


class NoSuchWarehouse(NotFound):
    """The warehouse is a folder that does not exist. Check the path. The first write creates it."""

    kind = "no-such-warehouse"
    explained = True


class NoSuchTable(NotFound):
    """There is no table of that name or at that place, or it was dropped."""

    kind = "no-such-table"


class TableRenamed(NoSuchTable):
    """The table was loaded by a name that it no longer has.

    Load that name again, or the table by its new name.
    """

    kind = "table-renamed"
    explained = True


class NoSuchRef(NotFound):
    """The table has no tag or branch of that name, or it was dropped."""

    kind = "no-such-ref"


class RefExists(AlreadyExists):
    """The table has a tag or branch of that name."""

    kind = "ref-already-exists"


class NoSuchView(NotFound):
    """There is no view of that name, or it was dropped."""

    kind = "no-such-view"


class NoSuchFunction(NotFound):
    """There is no function of that name, or it was dropped."""

    kind = "no-such-function"


class NamespaceExists(AlreadyExists):
    """The name of a new namespace is taken."""

    kind = "namespace-already-exists"


class TableExists(AlreadyExists):
    """The name of a new table is taken."""

    kind = "table-already-exists"


class ViewExists(TableExists):
    """The name of a new view or table is taken by a view. Tables and views share their names."""

    kind = "view-already-exists"


class SourceDiverged(InvalidInput):
    """A table and the source that it was imported from were both changed, so rows could be lost or come back."""

    kind = "source-diverged"
    explained = True


class OwnersUnknown(InvalidInput):
    """It cannot be seen now whether another table has the files that a table has adopted.

    Retry after the named log is readable.
    """

    kind = "owners-unknown"
    explained = True


class FunctionExists(AlreadyExists):
    """The name of a new function is taken."""

    kind = "function-already-exists"


class LocationTaken(TableExists):
    """Another table, of any name, is at the place that was chosen for a new table."""

    kind = "already-exists"


class NamespaceNotEmpty(InvalidInput):
    """A namespace that is not empty can be dropped with CASCADE only."""

    kind = "namespace-not-empty"


class BatchCommitted(ConflictError):
    """The table has that batch of a stream, so it is not committed again."""

    kind = "batch-committed"


class CommitConflict(ConflictError):
    """Another commit changed data that this commit relied on. Start over from the table as it is now."""

    kind = "commit-conflict"


class NameReassigned(CommitConflict):
    """Another table got the name of a staged table before its commit.

    Stage it again, to replace the table that has the name now.
    """

    kind = "name-reassigned"


class StreamStopped(ConflictError):
    """A stream that reads a table cannot go on from its position. The message says how it can."""

    kind = "stream-stopped"


class ValuesGone(CommitConflict):
    """Another commit took the identity values of this commit's rows. Retry with other values."""

    # It is for good if the rows cannot get other values because some of their values were given.
    def __init__(self, message: str, *, version: int | None = None, is_for_good: bool = True) -> None:
        super().__init__(message, version=version)
        self.is_for_good = is_for_good


class ConstraintExists(AlreadyExists):
    """The table has a constraint of that name (case-insensitive)."""

    kind = "constraint-already-exists"


class NoSuchConstraint(NotFound):
    """The table has no constraint of that name."""

    kind = "no-such-constraint"


class MultiplePrimaryKeys(InvalidInput):
    """The table has a primary key, and a table has at most one."""

    kind = "multiple-primary-keys"


class CheckViolated(InvalidInput):
    """Rows that are to be written make the condition of a CHECK false."""

    kind = "check-violated"
    explained = True


class RowsUnproven(InvalidInput):
    """A change needs a condition to hold for all rows, and statistics do not prove it.

    The data must be scanned.
    """

    kind = "rows-unproven"
    explained = True


class ClockNotTrusted(InvalidInput):
    """Only this host's clock says that something is old enough to be deleted.

    Check the clock, then say that it is right.
    """

    kind = "clock-not-trusted"
    explained = True


class DoneInPart(LakelogError):
    """Some commits of a request that takes several have happened, and stay.

    The message says which work is left.
    """

    kind = "done-in-part"
    explained = True


class LinkedElsewhere(FormatError):
    """A name leads to a log that has another name, or none. Nothing is changed there because of it."""

    kind = "linked-elsewhere"

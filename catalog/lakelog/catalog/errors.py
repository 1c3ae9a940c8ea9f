"""What can go wrong in the catalog: leaves of the tree in `lakelog.log.errors`.

NotFound       NoSuchColumn, NoSuchFunction, NoSuchNamespace, NoSuchTable, NoSuchView
AlreadyExists  ColumnExists, FunctionExists, NamespaceExists, TableExists (LocationTaken, ViewExists)
InvalidInput   NamespaceNotEmpty
ConflictError  CommitConflict
"""

from __future__ import annotations

from lakelog.log.errors import AlreadyExists, ConflictError, InvalidInput, NotFound


class NoSuchColumn(NotFound):
    """A column or nested field of that name is not in the schema."""

    kind = "no-such-column"


class ColumnExists(AlreadyExists):
    """Another column of the same struct has that name already, but for upper and lower case."""

    kind = "column-already-exists"


class NoSuchNamespace(NotFound):
    """There is no namespace of that name, or not any more."""

    kind = "no-such-namespace"


class NoSuchTable(NotFound):
    """There is no table of that name or at that place, or not any more."""

    kind = "no-such-table"


class NoSuchView(NotFound):
    """There is no view of that name, or not any more."""

    kind = "no-such-view"


class NoSuchFunction(NotFound):
    """There is no function of that name, or not any more."""

    kind = "no-such-function"


class NamespaceExists(AlreadyExists):
    """The name of a new namespace is taken."""

    kind = "namespace-already-exists"


class TableExists(AlreadyExists):
    """The name of a new table is taken."""

    kind = "table-already-exists"


class ViewExists(TableExists):
    """The name of a new view or table is a view's: tables and views share their names."""

    kind = "view-already-exists"


class FunctionExists(AlreadyExists):
    """The name of a new function is taken."""

    kind = "function-already-exists"


class LocationTaken(TableExists):
    """Another table is at the place that was chosen for a new one, whatever its name."""

    kind = "already-exists"


class NamespaceNotEmpty(InvalidInput):
    """A namespace that still holds something is not dropped without CASCADE."""

    kind = "namespace-not-empty"


class CommitConflict(ConflictError):
    """Another commit changed what this one relied on: start over from the table as it is now."""

    kind = "commit-conflict"

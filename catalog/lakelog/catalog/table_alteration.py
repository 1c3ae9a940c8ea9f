"""Several changes of a table's definition as a single commit.

    with table.alteration() as change:
        change.add_column("channel", pa.string())
        change.rename_column("day", "weekday")
    table = change.table

Each change is checked when its method is called, against the table's version and the changes before it. The
commit decides all of them again on the newest version. It must not know how a table is committed, because it
only hands the changes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import ClassVar, Generic, Self, TypeVar

from lakelog.catalog.core.logs import OfThisProcess
from lakelog.catalog.core.schema import (
    AlteredDefinition,
    DefinitionMethods,
    Metadata,
    Schema,
    TableChange,
    changed,
)
from lakelog.log.errors import InvalidInput

T = TypeVar("T")


class TableAlteration(DefinitionMethods, OfThisProcess, Generic[T]):
    """Changes of a table that are collected in a `with` block, and committed at its end. An error drops all of them.

    Each method returns the alteration itself. Made by `Table.alteration`.
    """

    _instead: ClassVar[str] = "give the table"

    def __init__(self, definition: Metadata, commit: Callable[[Sequence[TableChange]], T]) -> None:
        self._definition: Metadata | AlteredDefinition = definition
        self._commit = commit
        self._changes: list[TableChange] = []
        self._is_open = True
        self._table: T | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._check_open()
        self._is_open = False
        if kind is None:
            self._table = self._commit(self._changes)

    @property
    def table(self) -> T:
        """The table with the changes, after the `with` block has ended."""
        if self._table is None:
            state = "has not ended" if self._is_open else "ended by an error"
            raise InvalidInput(
                f"there is no altered table, as the block {state}: read `table` once it has ended"
            )
        return self._table

    def _altered(self, changes: Sequence[TableChange]) -> Self:
        self._check_open()
        self._definition = changed(self._definition, changes)
        self._changes += changes
        return self

    @property
    def _columns_now(self) -> Schema:
        return self._definition.schema

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidInput(
                "the block of this alteration has ended: begin another one by table.alteration()"
            )

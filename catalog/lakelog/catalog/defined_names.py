"""The catalog's methods for views and functions: names that stand for definitions, not for logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.catalog.core.ddl import (
    drop_definition,
    find_definition,
    load_definition,
    raise_missing,
    rename_definition,
    undrop_definition,
)
from lakelog.catalog.core.logs import LogCache, NameTree, Token, observed
from lakelog.catalog.core.schema import FUNCTION, SPACES, VIEW, FunctionDefinition, ViewDefinition
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import Identifier, Name, identifier, table_identifier
from lakelog.log.errors import FormatError

if TYPE_CHECKING:
    pass


@observed(lambda catalog: catalog._logs)
@explaining
class DefinedNames:
    """Views and functions. They are parts of their namespace's log, so a change is a plain commit there."""

    def __init__(self, logs: LogCache) -> None:
        self._logs = logs
        self._tree = NameTree(logs)

    # Views

    def load_view(self, name: Name) -> ViewDefinition:
        """Return a view. Raises NoSuchView."""
        definition = load_definition(self._tree, VIEW, table_identifier(name)).definition
        if not isinstance(definition, ViewDefinition):
            raise FormatError(
                f"the log has a function where views are, under {name!r}: find out which client wrote it"
            )
        return definition

    def view_exists(self, name: Name) -> bool:
        return find_definition(self._tree, VIEW, table_identifier(name)) is not None

    def list_views(self, namespace: Name = ()) -> list[Identifier]:
        """Return the views directly in `namespace`, sorted. Raises NoSuchNamespace."""
        return self._defined(namespace, VIEW)

    def rename_view(self, old: Name, new: Name, *, token: Token | None = None) -> None:
        """Give a view another name, in its namespace or another.

        Raises NoSuchView, TableExists or NoSuchNamespace.
        """
        rename_definition(self._tree, VIEW, table_identifier(old), table_identifier(new), token)

    def drop_view(self, name: Name, *, missing_ok: bool = False, token: Token | None = None) -> bool:
        """Drop a view.

        If it does not exist, raises NoSuchView, or returns False with `missing_ok`. It can be restored until
        vacuum purges it.
        """
        return self._drop(VIEW, name, missing_ok, token)

    def undrop_view(
        self, name: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the view that was dropped last under that name, as `undrop_table` does."""
        target = None if to is None else table_identifier(to)
        return undrop_definition(self._tree, VIEW, table_identifier(name), id, target, token)

    # Functions

    def load_function(self, name: Name) -> FunctionDefinition:
        """Return a function. Raises NoSuchFunction."""
        definition = load_definition(self._tree, FUNCTION, table_identifier(name)).definition
        if not isinstance(definition, FunctionDefinition):
            raise FormatError(
                f"the log has a view where functions are, under {name!r}: find out which client wrote it"
            )
        return definition

    def function_exists(self, name: Name) -> bool:
        return find_definition(self._tree, FUNCTION, table_identifier(name)) is not None

    def list_functions(self, namespace: Name = ()) -> list[Identifier]:
        """Return the functions directly in `namespace`, sorted. Raises NoSuchNamespace."""
        return self._defined(namespace, FUNCTION)

    def drop_function(self, name: Name, *, missing_ok: bool = False, token: Token | None = None) -> bool:
        """Drop a function.

        If it does not exist, raises NoSuchFunction, or returns False with `missing_ok`. It can be restored
        until vacuum purges it.
        """
        return self._drop(FUNCTION, name, missing_ok, token)

    def undrop_function(
        self, name: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the function that was dropped last under that name, as `undrop_table` does."""
        target = None if to is None else table_identifier(to)
        return undrop_definition(self._tree, FUNCTION, table_identifier(name), id, target, token)

    # Inside

    def _drop(self, kind: str, name: Name, missing_ok: bool, token: Token | None) -> bool:
        path = table_identifier(name)
        did_drop = drop_definition(self._tree, kind, path, token)
        if not did_drop and not missing_ok:
            raise_missing(self._tree, kind, path)
        return did_drop

    def _defined(self, namespace: Name, kind: str) -> list[Identifier]:
        path, space = identifier(namespace), SPACES[kind]
        return [(*path, name) for name in self._tree.listed(path, space).names(space, kind)]

"""The catalog's methods for views and functions: names that stand for definitions, not for logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.catalog.core.ddl import (
    define,
    drop_definition,
    find_definition,
    load_definition,
    rename_definition,
    undrop_definition,
)
from lakelog.catalog.core.logs import LogCache, NameTree, Token, observed
from lakelog.catalog.core.schema import FUNCTION, SPACES, VIEW, Definition, FunctionDefinition, ViewDefinition
from lakelog.catalog.errors import FunctionExists, ViewExists
from lakelog.catalog.names import Identifier, Name, identifier, table_identifier
from lakelog.log.errors import FormatError, InvalidInput

if TYPE_CHECKING:
    from lakelog.catalog.formats.iceberg import ExportedView


@observed(lambda catalog: catalog._logs)
class DefinedNames:
    """Views and functions. Each is a part of its namespace's log, so that a change of one is a plain commit there."""

    def __init__(self, logs: LogCache) -> None:
        self._logs = logs
        self._tree = NameTree(logs)

    def author_of(self, name: Name, kind: str) -> str | None:
        """Return who wrote a view or function (`kind`) as it is now, and in which version of which log; None where that
        commit has expired."""
        from lakelog.catalog.looking.audit import author_of_definition

        return author_of_definition(self._tree, kind, table_identifier(name))

    # Views

    def create_view(
        self,
        name: Name,
        view: ViewDefinition,
        *,
        or_replace: bool = False,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> None:
        """Create a view. ViewExists (unless `or_replace` or `if_not_exists`), TableExists, NoSuchNamespace."""
        try:
            self._define(name, view, create=True, replace=or_replace, token=token)
        except ViewExists:
            if not if_not_exists:
                raise

    def replace_view(
        self,
        name: Name,
        view: ViewDefinition,
        *,
        expected: ViewDefinition | None = None,
        token: Token | None = None,
    ) -> None:
        """Replace an existing view by `view`. NoSuchView; CommitConflict when it is no longer `expected`."""
        self._define(name, view, create=False, replace=True, expected=expected, token=token)

    def load_view(self, name: Name) -> ViewDefinition:
        """Return a view. NoSuchView."""
        found = load_definition(self._tree, VIEW, table_identifier(name)).definition
        if not isinstance(found, ViewDefinition):
            raise FormatError(
                f"the log has a function where views are, under {name!r}: find out which client wrote it"
            )
        return found

    def view_exists(self, name: Name) -> bool:
        return find_definition(self._tree, VIEW, table_identifier(name)) is not None

    def list_views(self, namespace: Name = ()) -> list[Identifier]:
        """Return the views directly in `namespace`, sorted. NoSuchNamespace."""
        return self._defined(namespace, VIEW)

    def rename_view(self, old: Name, new: Name, *, token: Token | None = None) -> None:
        """Give a view another name, in its namespace or another one. NoSuchView, TableExists, NoSuchNamespace."""
        rename_definition(self._tree, VIEW, table_identifier(old), table_identifier(new), token)

    def drop_view(self, name: Name, *, token: Token | None = None) -> bool:
        """Drop a view; False where it does not exist. It can be restored until vacuum purges it."""
        return drop_definition(self._tree, VIEW, table_identifier(name), token)

    def undrop_view(
        self, name: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the view that was dropped last under that name, as `undrop_table` does."""
        target = None if to is None else table_identifier(to)
        return undrop_definition(self._tree, VIEW, table_identifier(name), id, target, token)

    def iceberg_views(self, namespace: Name) -> tuple[dict[Identifier, ExportedView], dict[Identifier, str]]:
        """Return the views directly in `namespace` as readers of Iceberg have them, and those that cannot be such, with
        the reasons. NoSuchNamespace.

        Costs the commits since the oldest of their definitions, where there are views.
        """
        from lakelog.catalog.formats.iceberg import view_document
        from lakelog.catalog.looking.audit import commits_of_definitions

        path = identifier(namespace)
        found = self._tree.namespace(path)
        found.tracked.transaction.note_name_read(SPACES[VIEW], None)
        views = found.view.state.definitions.get(SPACES[VIEW], {})
        commits = commits_of_definitions(found, VIEW, views)
        functions: dict[Identifier, list[str]] = {}
        shown: dict[Identifier, ExportedView] = {}
        left_out: dict[Identifier, str] = {}
        for name, defined in sorted(views.items()):
            view = defined.definition
            assert isinstance(view, ViewDefinition)
            if view.namespace not in functions:
                there = (
                    self.list_functions(view.namespace) if self._tree.find_namespace(view.namespace) else []
                )
                functions[view.namespace] = [each[-1] for each in there]
            commit = commits.get(name)
            try:
                shown[*path, name] = view_document(
                    view,
                    name=name,
                    id=defined.id,
                    location=self._logs.url(found.tracked.location),
                    version=1 if commit is None else commit.version,
                    time_us=0 if commit is None else commit.time_us,
                    functions=functions[view.namespace],
                )
            except InvalidInput as error:
                left_out[*path, name] = str(error)
        return shown, left_out

    # Functions

    def create_function(
        self,
        name: Name,
        function: FunctionDefinition,
        *,
        or_replace: bool = False,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> None:
        """Create a function. FunctionExists (unless `or_replace` or `if_not_exists`), NoSuchNamespace."""
        try:
            self._define(name, function, create=True, replace=or_replace, token=token)
        except FunctionExists:
            if not if_not_exists:
                raise

    def load_function(self, name: Name) -> FunctionDefinition:
        """Return a function. NoSuchFunction."""
        found = load_definition(self._tree, FUNCTION, table_identifier(name)).definition
        if not isinstance(found, FunctionDefinition):
            raise FormatError(
                f"the log has a view where functions are, under {name!r}: find out which client wrote it"
            )
        return found

    def function_exists(self, name: Name) -> bool:
        return find_definition(self._tree, FUNCTION, table_identifier(name)) is not None

    def list_functions(self, namespace: Name = ()) -> list[Identifier]:
        """Return the functions directly in `namespace`, sorted. NoSuchNamespace."""
        return self._defined(namespace, FUNCTION)

    def drop_function(self, name: Name, *, token: Token | None = None) -> bool:
        """Drop a function; False where it does not exist. It can be restored until vacuum purges it."""
        return drop_definition(self._tree, FUNCTION, table_identifier(name), token)

    def undrop_function(
        self, name: Name, *, id: str | None = None, to: Name | None = None, token: Token | None = None
    ) -> Identifier:
        """Restore the function that was dropped last under that name, as `undrop_table` does."""
        target = None if to is None else table_identifier(to)
        return undrop_definition(self._tree, FUNCTION, table_identifier(name), id, target, token)

    # Inside

    def _define(
        self,
        name: Name,
        definition: Definition,
        *,
        create: bool,
        replace: bool,
        expected: Definition | None = None,
        token: Token | None = None,
    ) -> None:
        define(
            self._tree,
            table_identifier(name),
            definition,
            create=create,
            replace=replace,
            expected=expected,
            token=token,
        )

    def _defined(self, namespace: Name, kind: str) -> list[Identifier]:
        path, space = identifier(namespace), SPACES[kind]
        return [(*path, name) for name in self._tree.listed(path, space).defined_names(space)]

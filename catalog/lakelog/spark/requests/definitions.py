"""Views and functions."""

from __future__ import annotations

from lakelog.catalog import FunctionDefinition, Token, ViewDefinition
from lakelog.spark.requests.base import (
    Answer,
    CatalogRequest,
    NameListing,
    NamespaceRequest,
    Path,
    UserStatement,
)


class ListViews(NamespaceRequest, frozen=True, tag="list_views"):
    """List the views directly in a namespace."""


class ViewList(Answer, frozen=True, kw_only=True):
    views: tuple[Path, ...]


class ListRelations(NameListing, frozen=True, tag="list_relations"):
    """List the tables and views directly in a namespace."""


class RelationList(Answer, frozen=True, kw_only=True):
    tables: tuple[Path, ...]
    views: tuple[Path, ...]


class ViewRequest(CatalogRequest, frozen=True, kw_only=True):
    """A request about a view."""

    identifier: Path


class ViewChange(ViewRequest, frozen=True, kw_only=True):
    """A change of a view."""

    token: Token | None
    query: UserStatement | None = None


class LookUpView(ViewRequest, frozen=True, tag="view_exists"):
    """Return whether the view exists."""


class DefineView(ViewChange, frozen=True, kw_only=True, tag="define_view"):
    """Create a view, or with `replace` also replace it.

    Without `create`, only replace it. `expected` is the definition that a replacement was made from. It must
    not have changed.
    """

    view: ViewDefinition
    create: bool
    replace: bool
    expected: ViewDefinition | None = None


class DropView(ViewChange, frozen=True, tag="drop_view"):
    """Drop a view."""


class RenameView(ViewChange, frozen=True, kw_only=True, tag="rename_view"):
    """Give a view another name."""

    to: Path


class ListFunctions(NamespaceRequest, frozen=True, tag="list_functions"):
    """List the functions directly in a namespace."""


class FunctionList(Answer, frozen=True, kw_only=True):
    functions: tuple[Path, ...]


class FunctionRequest(CatalogRequest, frozen=True, kw_only=True):
    """A request about a function. The case of its name matters only if `case_sensitive`."""

    identifier: Path
    case_sensitive: bool


class FunctionChange(FunctionRequest, frozen=True, kw_only=True):
    """A change of a function."""

    token: Token | None
    query: UserStatement | None = None


class LoadFunction(FunctionRequest, frozen=True, kw_only=True, tag="load_function"):
    """Return the definition of a function if it exists.

    If it `runs`, the catalog's `stored-code` may refuse it.
    """

    runs: bool = False


class FoundFunction(Answer, frozen=True, kw_only=True):
    function: FunctionDefinition | None


class CreateFunction(FunctionChange, frozen=True, kw_only=True, tag="create_function"):
    """Create a function."""

    definition: FunctionDefinition
    or_replace: bool
    if_not_exists: bool


class DropFunction(FunctionChange, frozen=True, tag="drop_function"):
    """Drop a function."""

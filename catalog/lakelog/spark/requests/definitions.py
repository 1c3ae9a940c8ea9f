"""Views and functions."""

from __future__ import annotations

from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.schema import FunctionDefinition, ViewDefinition
from lakelog.spark.requests.base import Answer, InCatalog, Listing, OfNamespace, Path, Statement


class ListViews(OfNamespace, frozen=True, tag="list_views"):
    """Which views are directly in a namespace."""


class Views(Answer, frozen=True, kw_only=True):
    views: tuple[Path, ...]


class ListRelations(Listing, frozen=True, tag="list_relations"):
    """Which tables and views are directly in a namespace."""


class Relations(Answer, frozen=True, kw_only=True):
    tables: tuple[Path, ...]
    views: tuple[Path, ...]


class OfView(InCatalog, frozen=True, kw_only=True):
    """About a view."""

    identifier: Path


class ViewChange(OfView, frozen=True, kw_only=True):
    """A change of a view."""

    token: Token | None
    query: Statement | None = None


class ViewExists(OfView, frozen=True, tag="view_exists"):
    """Whether there is such a view."""


class DefineView(ViewChange, frozen=True, kw_only=True, tag="define_view"):
    """Create a view, or with `replace` also replace it; without `create` only replace it.

    `expected` is the definition that a replacement was made from: it has to be there still.
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


class ListFunctions(OfNamespace, frozen=True, tag="list_functions"):
    """Which functions are directly in a namespace."""


class Functions(Answer, frozen=True, kw_only=True):
    functions: tuple[Path, ...]


class OfFunction(InCatalog, frozen=True, kw_only=True):
    """About a function, whatever the case of its name unless the session minds it."""

    identifier: Path
    case_sensitive: bool


class FunctionChange(OfFunction, frozen=True, kw_only=True):
    """A change of a function."""

    token: Token | None
    query: Statement | None = None


class LoadFunction(OfFunction, frozen=True, kw_only=True, tag="load_function"):
    """The definition of a function, if there is one. Where it `runs`, the catalog's `stored-code` may refuse it."""

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

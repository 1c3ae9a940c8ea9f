"""Definitions of views and functions, which have no log of their own: the log of their namespace stores them.

A definition is stored and returned as an engine gave it. lakelog does not read its SQL.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from lakelog.catalog.core.schema.properties.checking import check_text
from lakelog.catalog.core.schema.properties.known import RESERVED
from lakelog.catalog.core.schema.spark_types import SparkType
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.log import Json
from lakelog.log.errors import InvalidInput
from lakelog.log.secrets import masked_urls

DEFINITION_LIMIT_BYTES = 1024 * 1024


class _Definition(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    pass


class ViewColumn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column of a view. `type` is its type as Spark's JSON. `metadata` is the engine's own."""

    name: str
    type: SparkType
    nullable: bool = True
    comment: str | None = None
    metadata: dict[str, Json] = {}


class Dependency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A dependency of a query: the name of a table or of a function."""

    table: tuple[str, ...] | None = None
    function: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.function is None):
            raise ValueError("a dependency is a table or a function")


class ViewDefinition(_Definition, frozen=True, tag="view"):
    """A named query. Users see `columns`. The query's own names for them are `query_columns`.

    Names in `text` without a catalog or namespace belong to `catalog` and `namespace`. A `catalog` of None is
    the view's own catalog, under any name. `configs` are the engine's settings that the text was parsed with.
    `schema_mode` says what happens if the query's columns change. `dependencies` are the objects that the
    query uses, as the engine reported them.
    """

    text: str
    columns: tuple[ViewColumn, ...]
    query_columns: tuple[str, ...] = ()
    catalog: str | None = None
    namespace: tuple[str, ...] = ()
    configs: dict[str, str] = {}
    schema_mode: str | None = None
    properties: dict[str, str] = {}
    dependencies: tuple[Dependency, ...] | None = None


class FunctionDefinition(_Definition, frozen=True, tag="function"):
    """A function. `language` is the kind of `body`: `sql` (an expression or query), or `java` (a class name).

    `parameters` and `returns` are column lists or types in SQL, as the engine understands them. `resources`
    are the kinds and URLs of files that a class needs. Names in an SQL body belong to `catalog` and
    `namespace`, and the engine's settings `configs` apply to it. `properties` are the engine's own.
    """

    language: str
    body: str
    parameters: str | None = None
    returns: str | None = None
    is_table: bool = False
    is_query: bool = False
    comment: str | None = None
    catalog: str | None = None
    namespace: tuple[str, ...] = ()
    configs: dict[str, str] = {}
    resources: tuple[tuple[str, str], ...] = ()
    properties: dict[str, str] = {}


Definition: TypeAlias = ViewDefinition | FunctionDefinition

ready(Definition)

VIEW, FUNCTION = "view", "function"

SPACES = {VIEW: "relation", FUNCTION: "function"}
"""The namespace's name space of each kind of definition. Views share theirs with tables."""

EntryKind: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(?:table|namespace|view|function)$(?!\n)")]
"""What a name leads to."""

NameSpace: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(?:relation|namespace|function)$(?!\n)")]
"""The space of a name in its namespace."""


def kind_of(definition: Definition) -> str:
    """Return the kind of the definition's entry: a view or a function."""
    return VIEW if isinstance(definition, ViewDefinition) else FUNCTION


def _texts(definition: Definition) -> tuple[str, ...]:
    """Return the strings of a definition that are meaningful only unchanged."""
    if isinstance(definition, ViewDefinition):
        return (definition.text,)
    return (definition.body, definition.parameters or "", *(url for _, url in definition.resources))


def _check_types(definition: Definition) -> None:
    """Raise InvalidInput if a member has a value of another type, which structs take and no reader does."""
    try:
        msgspec.convert(msgspec.to_builtins(definition), type(definition))
    except (msgspec.ValidationError, RecursionError, OverflowError, TypeError) as error:
        raise InvalidInput(
            f"the {kind_of(definition)} cannot be stored ({error}): give texts of Unicode, and JSON that is not nested "
            "deeply"
        ) from error


def check_definition(definition: Definition) -> None:
    """Raise InvalidInput if the definition cannot be stored."""
    if not isinstance(definition, ViewDefinition | FunctionDefinition):
        raise InvalidInput(
            f"a {type(definition).__name__} is not a definition: give a ViewDefinition or FunctionDefinition"
        )
    _check_types(definition)
    if isinstance(definition, FunctionDefinition) and definition.language not in ("sql", "java"):
        raise InvalidInput(f"{definition.language!r} is not a language of functions: use sql or java")
    for text in _texts(definition):
        if masked_urls(text) != text:
            raise InvalidInput(
                f"the {kind_of(definition)} has keys or a signature in a URL, which would stay in the log for ever: "
                "give credentials by the session's own settings"
            )
    for key, value in definition.properties.items():
        check_text(key, value)
        if key.startswith(RESERVED):
            raise InvalidInput(
                f"the property {key} is not known: names under {RESERVED} are reserved, and a "
                f"{kind_of(definition)} has no such properties"
            )
    try:
        size = len(msgspec.json.encode(definition))
    except (RecursionError, OverflowError, UnicodeEncodeError, TypeError) as error:
        raise InvalidInput(
            f"the {kind_of(definition)} cannot be stored: {error}; give texts of Unicode, and JSON that is not "
            "nested deeply"
        ) from error
    if size > DEFINITION_LIMIT_BYTES:
        raise InvalidInput(
            f"the {kind_of(definition)} takes {size:,} bytes; the limit is {DEFINITION_LIMIT_BYTES:,}: make it shorter"
        )

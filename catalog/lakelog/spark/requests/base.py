"""The common parts of requests and answers.

A table is named by its `identifier` or its `location`. A loaded table is named by a `LoadedTable`, from its
facts. Requests that change something carry a `token`, a `stage` or a `write` of an earlier request, so that a
retry is the same change. Or the frame names a request to be answered first, and the answer becomes that
member.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from lakelog.catalog import Token

Path: TypeAlias = tuple[str, ...]
"""The parts of a name."""

FreeJson: TypeAlias = dict[str, Any]
"""JSON that the bridge does not interpret: a schema in Spark's form, or arguments that a procedure declares."""


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A message or a part of a message across the bridge."""


class Request(Message, frozen=True, tag_field="method"):
    """A request of the adapter."""


class Answer(Message, frozen=True):
    """The answer to a request. Some answers come with bytes, which the request's docstring says."""


class UserStatement(Message, frozen=True, kw_only=True):
    """The user and the statement of a change. The catalog's settings say how much of `text` Python keeps."""

    user: str
    application: str
    query: str | None
    text: str | None


class LoadedRef(Message, frozen=True, kw_only=True):
    """The tag or branch that a loaded table is on. `kind` is `tag` or `branch`."""

    name: str
    id: str
    kind: str


class NamedRef(Message, frozen=True, kw_only=True):
    """A tag or branch as a statement names it. If `kind` is given, it has to be of that kind."""

    name: str
    kind: str | None = None


class FoundBy(Message, frozen=True, kw_only=True):
    """The name that a table was loaded by, and the location of the namespace's log that the name led through."""

    identifier: Path
    namespace: str


class LoadedTable(Message, frozen=True, kw_only=True):
    """A version of a table that the adapter has loaded.

    `past` says whether the user requested that version. `step` counts the changes of the transaction, in
    which a table changes without a new version. A table with `found_by` is changed only while it has that
    name.
    """

    location: str
    id: str
    version: int
    past: bool
    step: int
    ref: LoadedRef | None = None
    found_by: FoundBy | None = None


class CatalogRequest(Request, frozen=True, kw_only=True):
    """A request to the catalog, or to its `transaction` if one is open."""

    transaction: str | None = None


class NamespaceRequest(CatalogRequest, frozen=True, kw_only=True):
    """A request about a namespace; `()` is the root."""

    namespace: Path


class NameListing(NamespaceRequest, frozen=True, kw_only=True):
    """List the names directly in a namespace.

    Names that the pattern `like` does not match may be left out.
    """

    like: str | None = None


class NamedObject(CatalogRequest, frozen=True, kw_only=True):
    """A request about the object at a name or a place. Exactly one of the two is given."""

    identifier: Path | None = None
    location: str | None = None

    def __post_init__(self) -> None:
        if (self.identifier is None) == (self.location is None):
            raise ValueError("a table is named by its identifier or its location")


class LoadedTableRequest(LoadedTable, Request, frozen=True, kw_only=True):
    """A request about a loaded table."""

    transaction: str | None = None


class NamespaceChange(NamespaceRequest, frozen=True, kw_only=True):
    """A change of a namespace."""

    token: Token | None
    query: UserStatement | None = None


class NamedChange(NamedObject, frozen=True, kw_only=True):
    """A change of the object at a name or a place."""

    token: Token | None
    query: UserStatement | None = None


class LoadedChange(LoadedTableRequest, frozen=True, kw_only=True):
    """A change of a loaded table, which may have a newer version now."""

    token: Token | None
    query: UserStatement | None = None


class EmptyAnswer(Answer, frozen=True):
    """The request is done."""


class ExistsAnswer(Answer, frozen=True, kw_only=True):
    exists: bool


class DroppedAnswer(Answer, frozen=True, kw_only=True):
    """Whether there was anything to drop."""

    dropped: bool


class PossibleAnswer(Answer, frozen=True, kw_only=True):
    possible: bool

"""What requests and answers have in common.

A table is named by its `identifier` or its `location`; one that was loaded by what its facts say, which is a
`LoadedTable`. Requests that change something carry a `token`, a `stage` or a `write`, made by an earlier request, so
that a retry is the same change; or the frame says which request is to be answered first, and the answer
becomes that member.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from lakelog.catalog.core.logs import Token

Path: TypeAlias = tuple[str, ...]
"""The parts of a name."""

FreeJson: TypeAlias = dict[str, Any]
"""JSON that is not the bridge's to understand: a schema in Spark's form, or arguments that a procedure declares."""


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What crosses the bridge."""


class Request(Message, frozen=True, tag_field="method"):
    """What the adapter asks."""


class Answer(Message, frozen=True):
    """What a request is answered. Some have bytes beside them, which the request's docstring says."""


class Statement(Message, frozen=True, kw_only=True):
    """The user and the statement of a change; Python keeps of `text` what the catalog's settings say."""

    user: str
    application: str
    query: str | None
    text: str | None


class Ref(Message, frozen=True, kw_only=True):
    """The tag or branch that a loaded table is on. `kind` is `tag` or `branch`."""

    name: str
    id: str
    kind: str


class NamedRef(Message, frozen=True, kw_only=True):
    """A tag or branch as a statement names it; with `kind` it has to be of that."""

    name: str
    kind: str | None = None


class FoundBy(Message, frozen=True, kw_only=True):
    """The name that a table was loaded by, and the location of the namespace's log that this led through."""

    identifier: Path
    namespace: str


class LoadedTable(Message, frozen=True, kw_only=True):
    """A version of a table that the adapter has loaded. `past`: the user asked for that version.

    `step` counts the changes of the transaction, where a table changes without a new version. One with `found_by` is
    changed only while it has that name.
    """

    location: str
    id: str
    version: int
    past: bool
    step: int
    ref: Ref | None = None
    found_by: FoundBy | None = None


class InCatalog(Request, frozen=True, kw_only=True):
    """Of the catalog, or of its `transaction` where one is open."""

    transaction: str | None = None


class OfNamespace(InCatalog, frozen=True, kw_only=True):
    """About a namespace; `()` is the root."""

    namespace: Path


class Listing(OfNamespace, frozen=True, kw_only=True):
    """Which names are directly in a namespace. Those may be left out that the pattern `like` does not match."""

    like: str | None = None


class Named(InCatalog, frozen=True, kw_only=True):
    """About the object at a name or a place, of which one is given."""

    identifier: Path | None = None
    location: str | None = None

    def __post_init__(self) -> None:
        if (self.identifier is None) == (self.location is None):
            raise ValueError("a table is named by its identifier or its location")


class OfLoaded(LoadedTable, Request, frozen=True, kw_only=True):
    """About a table that was loaded."""

    transaction: str | None = None


class NamespaceChange(OfNamespace, frozen=True, kw_only=True):
    """A change of a namespace."""

    token: Token | None
    query: Statement | None = None


class NamedChange(Named, frozen=True, kw_only=True):
    """A change of the object at a name or a place."""

    token: Token | None
    query: Statement | None = None


class LoadedChange(OfLoaded, frozen=True, kw_only=True):
    """A change of a table that was loaded, which may have become newer since."""

    token: Token | None
    query: Statement | None = None


class Done(Answer, frozen=True):
    """It is done."""


class Exists(Answer, frozen=True, kw_only=True):
    exists: bool


class Dropped(Answer, frozen=True, kw_only=True):
    """Whether there was anything to drop."""

    dropped: bool


class Possible(Answer, frozen=True, kw_only=True):
    possible: bool

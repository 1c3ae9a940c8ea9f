"""The bodies of requests that change something, as Iceberg's REST catalog protocol has them. Pure.

Members that these forms do not name are ignored, as the protocol may get more. Source: the OpenAPI description of
Apache Iceberg's REST catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from lakelog.catalog.formats.iceberg_commits import ClientCommit
from lakelog.catalog.names import Identifier
from lakelog.log.errors import InvalidInput
from lakelog.rest import documents
from lakelog.rest.client_words import RequestNames

Json = Mapping[str, Any]
T = TypeVar("T")


class StagedTableForm(msgspec.Struct, frozen=True):
    """The place and the id of a table in its metadata."""

    location: str
    uuid: str = msgspec.field(name="table-uuid")


class NewNamespace(msgspec.Struct, frozen=True):
    """The request to create a namespace."""

    namespace: tuple[str, ...]
    properties: dict[str, str] | None = None


class PropertyUpdates(msgspec.Struct, frozen=True):
    """The request to set and remove properties of a namespace."""

    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class ClientIdentifier(msgspec.Struct, frozen=True):
    """The name of a table or view in requests."""

    namespace: tuple[str, ...]
    name: str

    @property
    def identifier(self) -> Identifier:
        return (*self.namespace, self.name)


class RenameRequest(msgspec.Struct, frozen=True):
    """The request to rename a table or view."""

    source: ClientIdentifier
    destination: ClientIdentifier

    def names(self, *, is_of_view: bool) -> RequestNames:
        return RequestNames(
            [self.source.identifier], is_of_view=is_of_view, new_name=self.destination.identifier
        )


class TableCommitRequest(msgspec.Struct, frozen=True):
    """The request to commit to a table."""

    requirements: list[dict[str, Any]]
    updates: list[dict[str, Any]]
    identifier: ClientIdentifier | None = None

    @property
    def commit(self) -> ClientCommit:
        return ClientCommit(self.requirements, self.updates)


class JointCommitRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """The request to commit to several tables."""

    table_changes: list[TableCommitRequest]


class RequestBody:
    """The body of a request. It is decoded when its form is known."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def of(self, type_: type[T]) -> T:
        """Return the body as a struct. Raises InvalidInput for JSON of another form."""
        try:
            return msgspec.json.decode(self._data, type=type_)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the body is not what this request takes: {error}") from None

    def json(self) -> Json:
        return self.of(dict[str, Any])


def name_of_new(request: Json, kind: str) -> str:
    """Return the name in a request to create a table or view. Raises InvalidInput without a good name."""
    name = request.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"the request to create a {kind} has no name")
    refuse_separator((name,))
    return name


def check_new_name(new: ClientIdentifier) -> None:
    """Raise InvalidInput for a name that paths of this protocol cannot have."""
    if not new.namespace:
        raise InvalidInput(
            f"the new name {new.name!r} is in no namespace, where no client would find it: give one"
        )
    refuse_separator((new.name,))


def refuse_separator(names: tuple[str, ...]) -> None:
    if any(documents.SEPARATOR in name for name in names):
        raise InvalidInput("a name has the character that separates names in paths: choose another name")

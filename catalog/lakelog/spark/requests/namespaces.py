"""Namespaces."""

from __future__ import annotations

from lakelog.spark.requests.base import Answer, NamespaceChange, NamespaceRequest, Path


class ListNamespaces(NamespaceRequest, frozen=True, kw_only=True, tag="list_namespaces"):
    """List the namespaces directly in this namespace.

    With `if_any`, a warehouse that does not exist has none.
    """

    if_any: bool = False


class NamespaceList(Answer, frozen=True, kw_only=True):
    namespaces: tuple[Path, ...]


class LookUpNamespace(NamespaceRequest, frozen=True, tag="namespace_exists"):
    """Return whether the namespace exists."""


class LoadNamespace(NamespaceRequest, frozen=True, tag="load_namespace"):
    """Return the properties of a namespace."""


class NamespaceFacts(Answer, frozen=True, kw_only=True):
    properties: dict[str, str]


class CreateNamespace(NamespaceChange, frozen=True, kw_only=True, tag="create_namespace"):
    """Create a namespace."""

    properties: dict[str, str]


class AlterNamespace(NamespaceChange, frozen=True, kw_only=True, tag="alter_namespace"):
    """Set and remove properties of a namespace."""

    set: dict[str, str]
    remove: tuple[str, ...]


class DropNamespace(NamespaceChange, frozen=True, kw_only=True, tag="drop_namespace"):
    """Drop a namespace. With `cascade`, it need not be empty."""

    cascade: bool

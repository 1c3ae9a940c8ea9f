"""Namespaces."""

from __future__ import annotations

from lakelog.spark.requests.base import Answer, NamespaceChange, OfNamespace, Path


class ListNamespaces(OfNamespace, frozen=True, kw_only=True, tag="list_namespaces"):
    """Which namespaces are directly in this one. `if_any`: a warehouse that does not exist yet has none."""

    if_any: bool = False


class Namespaces(Answer, frozen=True, kw_only=True):
    namespaces: tuple[Path, ...]


class NamespaceExists(OfNamespace, frozen=True, tag="namespace_exists"):
    """Whether there is such a namespace."""


class LoadNamespace(OfNamespace, frozen=True, tag="load_namespace"):
    """The properties of a namespace."""


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
    """Drop a namespace, with `cascade` also one that is not empty."""

    cascade: bool

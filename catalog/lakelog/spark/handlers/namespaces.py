"""Namespaces."""

from __future__ import annotations

from lakelog.catalog import NoSuchWarehouse
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import namespaces as ask
from lakelog.spark.requests.base import Done, Dropped, Exists


def list_namespaces(at: OpenCatalog, asked: ask.ListNamespaces) -> ask.Namespaces:
    try:
        return ask.Namespaces(namespaces=tuple(at.of(asked.transaction).list_namespaces(asked.namespace)))
    except NoSuchWarehouse:
        if not asked.if_any:
            raise
        return ask.Namespaces(namespaces=())


def exists(at: OpenCatalog, asked: ask.NamespaceExists) -> Exists:
    return Exists(exists=at.of(asked.transaction).namespace_exists(asked.namespace))


def load(at: OpenCatalog, asked: ask.LoadNamespace) -> ask.NamespaceFacts:
    return ask.NamespaceFacts(properties=dict(at.of(asked.transaction).load_namespace(asked.namespace)))


def create(at: OpenCatalog, asked: ask.CreateNamespace) -> Done:
    at.of(asked.transaction).create_namespace(asked.namespace, asked.properties, token=asked.token)
    return Done()


def alter(at: OpenCatalog, asked: ask.AlterNamespace) -> Done:
    at.of(asked.transaction).alter_namespace(
        asked.namespace, set=asked.set, remove=asked.remove, token=asked.token
    )
    return Done()


def drop(at: OpenCatalog, asked: ask.DropNamespace) -> Dropped:
    dropped = at.of(asked.transaction).drop_namespace(
        asked.namespace, cascade=asked.cascade, token=asked.token
    )
    return Dropped(dropped=dropped)

"""Namespaces."""

from __future__ import annotations

from lakelog.catalog import NoSuchWarehouse
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import namespaces as ask
from lakelog.spark.requests.base import DroppedAnswer, EmptyAnswer, ExistsAnswer


def list_namespaces(at: ServedCatalog, asked: ask.ListNamespaces) -> ask.NamespaceList:
    try:
        return ask.NamespaceList(namespaces=tuple(at.of(asked.transaction).list_namespaces(asked.namespace)))
    except NoSuchWarehouse:
        if not asked.if_any:
            raise
        return ask.NamespaceList(namespaces=())


def exists(at: ServedCatalog, asked: ask.LookUpNamespace) -> ExistsAnswer:
    return ExistsAnswer(exists=at.of(asked.transaction).namespace_exists(asked.namespace))


def load(at: ServedCatalog, asked: ask.LoadNamespace) -> ask.NamespaceFacts:
    return ask.NamespaceFacts(properties=dict(at.of(asked.transaction).load_namespace(asked.namespace)))


def create(at: ServedCatalog, asked: ask.CreateNamespace) -> EmptyAnswer:
    at.of(asked.transaction).create_namespace(asked.namespace, asked.properties, token=asked.token)
    return EmptyAnswer()


def alter(at: ServedCatalog, asked: ask.AlterNamespace) -> EmptyAnswer:
    at.of(asked.transaction).alter_namespace(
        asked.namespace, set=asked.set, remove=asked.remove, token=asked.token
    )
    return EmptyAnswer()


def drop(at: ServedCatalog, asked: ask.DropNamespace) -> DroppedAnswer:
    dropped = at.of(asked.transaction).drop_namespace(
        asked.namespace, missing_ok=True, cascade=asked.cascade, token=asked.token
    )
    return DroppedAnswer(dropped=dropped)

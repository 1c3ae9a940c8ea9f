"""Views, and lists of tables and views together."""

from __future__ import annotations

import pyarrow as pa

from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import definitions as ask
from lakelog.spark.requests.base import Done, Dropped, Exists, Path
from lakelog.spark.show_patterns import may_match


def list_views(at: OpenCatalog, asked: ask.ListViews) -> ask.Views:
    return ask.Views(views=tuple(at.of(asked.transaction).list_views(asked.namespace)))


def list_relations(at: OpenCatalog, asked: ask.ListRelations) -> ask.Relations:
    def paths(names: pa.StringArray) -> tuple[Path, ...]:
        return tuple((*asked.namespace, name) for name in may_match(names, asked.like).to_pylist())

    tables, views = at.of(asked.transaction).relation_names(asked.namespace)
    return ask.Relations(tables=paths(tables), views=paths(views))


def exists(at: OpenCatalog, asked: ask.ViewExists) -> Exists:
    return Exists(exists=at.of(asked.transaction).view_exists(asked.identifier))


def define(at: OpenCatalog, asked: ask.DefineView) -> Done:
    catalog = at.of(asked.transaction)
    if asked.create:
        catalog.create_view(asked.identifier, asked.view, or_replace=asked.replace, token=asked.token)
    else:
        catalog.replace_view(asked.identifier, asked.view, expected=asked.expected, token=asked.token)
    return Done()


def drop(at: OpenCatalog, asked: ask.DropView) -> Dropped:
    return Dropped(dropped=at.of(asked.transaction).drop_view(asked.identifier, token=asked.token))


def rename(at: OpenCatalog, asked: ask.RenameView) -> Done:
    at.of(asked.transaction).rename_view(asked.identifier, asked.to, token=asked.token)
    return Done()

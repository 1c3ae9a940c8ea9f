"""Views, and lists of tables and views together."""

from __future__ import annotations

import pyarrow as pa

from lakelog.catalog import engine
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import definitions as ask
from lakelog.spark.requests.base import DroppedAnswer, EmptyAnswer, ExistsAnswer, Path
from lakelog.spark.show_patterns import may_match


def list_views(at: ServedCatalog, asked: ask.ListViews) -> ask.ViewList:
    return ask.ViewList(views=tuple(at.of(asked.transaction).list_views(asked.namespace)))


def list_relations(at: ServedCatalog, asked: ask.ListRelations) -> ask.RelationList:
    def paths(names: pa.StringArray) -> tuple[Path, ...]:
        return tuple((*asked.namespace, name) for name in may_match(names, asked.like).to_pylist())

    tables, views = engine.relation_names(at.of(asked.transaction), asked.namespace)
    return ask.RelationList(tables=paths(tables), views=paths(views))


def exists(at: ServedCatalog, asked: ask.LookUpView) -> ExistsAnswer:
    return ExistsAnswer(exists=at.of(asked.transaction).view_exists(asked.identifier))


def define(at: ServedCatalog, asked: ask.DefineView) -> EmptyAnswer:
    catalog = at.of(asked.transaction)
    if asked.create:
        engine.create_view(catalog, asked.identifier, asked.view, or_replace=asked.replace, token=asked.token)
    else:
        engine.replace_view(catalog, asked.identifier, asked.view, expected=asked.expected, token=asked.token)
    return EmptyAnswer()


def drop(at: ServedCatalog, asked: ask.DropView) -> DroppedAnswer:
    return DroppedAnswer(
        dropped=at.of(asked.transaction).drop_view(asked.identifier, missing_ok=True, token=asked.token)
    )


def rename(at: ServedCatalog, asked: ask.RenameView) -> EmptyAnswer:
    at.of(asked.transaction).rename_view(asked.identifier, asked.to, token=asked.token)
    return EmptyAnswer()

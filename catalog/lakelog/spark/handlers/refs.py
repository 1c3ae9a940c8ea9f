"""Tags and branches of a table."""

from __future__ import annotations

from lakelog.catalog import engine
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import refs as ask
from lakelog.spark.requests.base import EmptyAnswer


def create(at: ServedCatalog, asked: ask.CreateRef) -> EmptyAnswer:
    table = at.writable(asked)
    if asked.as_of.ref is not None:
        table = table.at(ref=asked.as_of.ref)
    if asked.as_of.timestamp_us is not None:
        table = table.at(timestamp=asked.as_of.timestamp_us)
    is_tag, version = asked.kind == "tag", asked.as_of.version
    if asked.where == "there":
        replace = engine.replace_tag if is_tag else engine.replace_branch
        replace(table, asked.name, version, token=asked.token)
    else:
        (table.create_tag if is_tag else table.create_branch)(
            asked.name,
            version,
            replace=asked.where == "any",
            if_not_exists=asked.where == "new-or-there",
            token=asked.token,
        )
    return EmptyAnswer()


def drop(at: ServedCatalog, asked: ask.DropRef) -> EmptyAnswer:
    table = at.writable(asked)
    drop = table.drop_tag if asked.kind == "tag" else table.drop_branch
    drop(asked.name, missing_ok=asked.if_exists, token=asked.token)
    return EmptyAnswer()

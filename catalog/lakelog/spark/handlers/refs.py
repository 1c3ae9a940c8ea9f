"""Tags and branches of a table."""

from __future__ import annotations

from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import refs as ask
from lakelog.spark.requests.base import Done


def create(at: OpenCatalog, asked: ask.CreateRef) -> Done:
    table = at.writable(asked)
    if asked.as_of.ref is not None:
        table = table.at(ref=asked.as_of.ref)
    if asked.as_of.timestamp_us is not None:
        table = table.at(timestamp_us=asked.as_of.timestamp_us)
    is_tag, version = asked.kind == "tag", asked.as_of.version
    if asked.where == "there":
        replace = table.replace_tag if is_tag else table.replace_branch
        replace(asked.name, version, token=asked.token)
    else:
        (table.create_tag if is_tag else table.create_branch)(
            asked.name,
            version,
            replace=asked.where == "any",
            if_not_exists=asked.where == "new-or-there",
            token=asked.token,
        )
    return Done()


def drop(at: OpenCatalog, asked: ask.DropRef) -> Done:
    table = at.writable(asked)
    drop = table.drop_tag if asked.kind == "tag" else table.drop_branch
    drop(asked.name, if_exists=asked.if_exists, token=asked.token)
    return Done()

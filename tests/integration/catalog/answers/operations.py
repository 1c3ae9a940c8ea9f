"""One of each public operation that changes something, on a warehouse that has something for each of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog import Catalog, FunctionDefinition, Token, ViewDefinition, col, engine
from lakelog.log import LakelogError

NO_TIME = dt.timedelta(0)
SCHEMA = pa.schema({"id": pa.int64(), "day": pa.string()})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "day": [f"d{id % 2}" for id in ids]}, schema=SCHEMA)


def view(text: str) -> ViewDefinition:
    return ViewDefinition(text=text, columns=())


def function(body: str) -> FunctionDefinition:
    return FunctionDefinition(language="sql", body=body)


def prepare(warehouse: str) -> None:
    catalog = Catalog(warehouse)
    catalog.create_namespace("a")
    catalog.create_namespace("a.sub")
    table = catalog.create_table("a.t", SCHEMA, partition_by=["day"]).append(rows(1, 2)).append(rows(3, 4))
    table.create_tag("old", 2).create_branch("line").create_branch("other")
    catalog.load_table("a.t", ref="other").append(rows(9))
    catalog.create_table("a.gone", SCHEMA).append(rows(5))
    catalog.drop_table("a.gone")
    catalog.create_table("lone", SCHEMA, location=f"{warehouse}-places/lone").append(rows(6))
    engine.commit_stage(
        catalog, engine.stage(catalog, "create", None, SCHEMA, location=f"{warehouse}-places/left")
    )
    catalog.create_namespace("lost")
    catalog.create_table("lost.t", SCHEMA)
    catalog.drop_namespace("lost", cascade=True)
    engine.create_view(catalog, "a.v", view("SELECT 1"))
    engine.create_view(catalog, "a.w", view("SELECT 2"))
    catalog.drop_view("a.w")
    engine.create_function(catalog, "a.f", function("1"))
    catalog.save_cut("before")
    catalog.save_cut("before", namespace="a")
    catalog.create_table("spare", SCHEMA).append(rows(8))


@dataclass(frozen=True, slots=True)
class Operation:
    """`run` changes something; `name` is what its token is taken for, None if it has none."""

    run: Callable[[Catalog, Token | None], object]
    name: str | None = None
    in_steps: bool = False
    """It is several commits, so that a failure may come in between, and has to say so."""
    reports: bool = False
    """It goes from place to place, and reports what could not be done in each."""


def _transaction(catalog: Catalog, token: Token | None) -> None:
    with catalog.transaction() as tx:
        tx.create_namespace("b")
        tx.create_table("b.new", SCHEMA).append(rows(5))
        tx.load_table("a.t").append(rows(7))
        tx.rename_table("lone", "b.lone")


def _vacuum(catalog: Catalog, token: Token | None) -> None:
    """Of a namespace, whose places are reported one by one: raise what is reported of any."""
    report = catalog.vacuum(namespace="a", older_than=NO_TIME, dropped_older_than=NO_TIME, dry_run=False)
    for each in report:
        if each.error is not None:
            raise LakelogError(each.error)


PROPERTY = [{"change": "set-property", "key": "k", "value": "v"}]

OPERATIONS: dict[str, Operation] = {
    "create namespace": Operation(lambda c, t: c.create_namespace("a.new", token=t), "a"),
    "alter namespace": Operation(lambda c, t: c.alter_namespace("a", set={"k": "v"}, token=t), "a"),
    "drop namespace": Operation(lambda c, t: c.drop_namespace("a", cascade=True, token=t), "a"),
    "undrop namespace": Operation(lambda c, t: c.undrop_namespace("lost", token=t), ""),
    "create table": Operation(lambda c, t: c.create_table("a.new", SCHEMA)),
    "create table at a place": Operation(
        lambda c, t: c.create_table("new", SCHEMA, location=f"{c.warehouse}-places/new")
    ),
    "replace table": Operation(
        lambda c, t: engine.commit_stage(c, engine.stage(c, "replace", "lone", SCHEMA))
    ),
    "create or replace table": Operation(
        lambda c, t: engine.commit_stage(c, engine.stage(c, "create-or-replace", "lone", SCHEMA))
    ),
    "rename table": Operation(lambda c, t: c.rename_table("a.t", "a.new", token=t), "a.t"),
    "move table": Operation(lambda c, t: c.rename_table("a.t", "a.sub.new", token=t), "a.t"),
    "register table": Operation(
        lambda c, t: c.register_table("a.left", f"{c.warehouse}-places/left", take_over=True, token=t), "a"
    ),
    "drop table": Operation(lambda c, t: c.drop_table("lone", token=t), "lone"),
    "drop table by its place": Operation(lambda c, t: engine.drop_table_at(c, f"{c.warehouse}-places/lone")),
    "undrop table": Operation(lambda c, t: c.undrop_table("a.gone", token=t), "a"),
    "purge table": Operation(lambda c, t: c.drop_table("spare", purge=True, token=t), "spare", in_steps=True),
    "create view": Operation(lambda c, t: engine.create_view(c, "a.new", view("SELECT 3"), token=t), "a"),
    "replace view": Operation(lambda c, t: engine.replace_view(c, "a.v", view("SELECT 3"), token=t), "a"),
    "rename view": Operation(lambda c, t: c.rename_view("a.v", "a.sub.v", token=t), "a"),
    "drop view": Operation(lambda c, t: c.drop_view("a.v", token=t), "a"),
    "undrop view": Operation(lambda c, t: c.undrop_view("a.w", token=t), "a"),
    "save cut": Operation(lambda c, t: c.save_cut("new", token=t), ""),
    "drop cut": Operation(lambda c, t: c.drop_cut("before", token=t), ""),
    "save cut of a namespace": Operation(lambda c, t: c.save_cut("new", namespace="a", token=t), "a"),
    "drop cut of a namespace": Operation(lambda c, t: c.drop_cut("before", namespace="a", token=t), "a"),
    "transaction": Operation(_transaction),
    "append": Operation(lambda c, t: c.load_table("a.t").append(rows(8), token=t), "a.t"),
    "overwrite": Operation(lambda c, t: c.load_table("a.t").overwrite(rows(8), token=t), "a.t"),
    "overwrite partitions": Operation(
        lambda c, t: c.load_table("a.t").overwrite_partitions(rows(8), token=t), "a.t"
    ),
    "truncate": Operation(lambda c, t: c.load_table("a.t").truncate(token=t), "a.t"),
    "delete": Operation(lambda c, t: c.load_table("a.t").delete(col("id") == 3, token=t), "a.t"),
    "merge": Operation(lambda c, t: c.load_table("a.t").upsert(rows(3, 8), on="id", token=t), "a.t"),
    "update": Operation(
        lambda c, t: c.load_table("a.t").update({"day": None}, col("id") == 3, token=t), "a.t"
    ),
    "alter table": Operation(lambda c, t: c.load_table("a.t").alter(PROPERTY, token=t), "a.t"),
    "compact": Operation(lambda c, t: c.load_table("a.t").compact(), in_steps=True),
    "rollback": Operation(lambda c, t: c.load_table("a.t").rollback_to_version(2, token=t), "a.t"),
    "set current version": Operation(lambda c, t: c.load_table("a.t").set_current_version(2, token=t), "a.t"),
    "create tag": Operation(lambda c, t: c.load_table("a.t").create_tag("new", token=t), "a.t"),
    "drop tag": Operation(lambda c, t: c.load_table("a.t").drop_tag("old", token=t), "a.t"),
    "create branch": Operation(lambda c, t: c.load_table("a.t").create_branch("new", token=t), "a.t"),
    "write to a branch": Operation(
        lambda c, t: c.load_table("a.t", ref="line").append(rows(8), token=t), "a.t"
    ),
    "fast forward": Operation(lambda c, t: c.load_table("a.t").fast_forward("line", "other", token=t), "a.t"),
    "drop partition": Operation(
        lambda c, t: engine.drop_partitions(c.load_table("a.t"), [{"day": "d1"}], token=t), "a.t"
    ),
    "rename partition": Operation(
        lambda c, t: engine.rename_partition(c.load_table("a.t"), {"day": "d1"}, {"day": "d7"}, token=t),
        "a.t",
    ),
    "truncate partition": Operation(
        lambda c, t: engine.truncate_partitions(c.load_table("a.t"), [{"day": "d1"}], token=t), "a.t"
    ),
    "add partition": Operation(
        lambda c, t: engine.add_partitions(c.load_table("a.t"), [{"day": "d7"}], token=t), "a.t"
    ),
    "replace branch": Operation(
        lambda c, t: engine.replace_branch(c.load_table("a.t"), "line", 2, token=t), "a.t"
    ),
    "drop branch": Operation(lambda c, t: c.load_table("a.t").drop_branch("line", token=t), "a.t"),
    "create function": Operation(
        lambda c, t: engine.create_function(c, "a.new", function("1"), token=t), "a"
    ),
    "drop function": Operation(lambda c, t: c.drop_function("a.f", token=t), "a"),
    "vacuum": Operation(_vacuum, in_steps=True, reports=True),
    "expire": Operation(lambda c, t: c.expire("a.t", retain_last=1, dry_run=False), in_steps=True),
}

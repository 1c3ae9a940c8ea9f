"""Tables by their names and places."""

from __future__ import annotations

from lakelog.catalog import Table
from lakelog.catalog.core.schema import VIEW
from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.names import quoted
from lakelog.log.errors import Unsupported
from lakelog.spark.handles import on_named, on_ref
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import tables as ask
from lakelog.spark.requests.base import Done, Dropped, Exists, Named
from lakelog.spark.show_patterns import may_match
from lakelog.spark.stored_code import computed_by_writes, problem_of_table, problem_of_view, refused


def list_tables(at: OpenCatalog, asked: ask.ListTables) -> ask.Tables:
    names = at.of(asked.transaction).table_names(asked.namespace)
    return ask.Tables(
        tables=tuple((*asked.namespace, name) for name in may_match(names, asked.like).to_pylist())
    )


def exists(at: OpenCatalog, asked: ask.TableExists) -> Exists:
    if asked.identifier is not None:
        return Exists(exists=at.of(asked.transaction).table_exists(asked.identifier))
    try:
        named(at, asked)
    except NoSuchTable:
        return Exists(exists=False)
    return Exists(exists=True)


def load(at: OpenCatalog, asked: ask.LoadTable) -> ask.TableFacts:
    table = named(at, asked, version=asked.version, timestamp_us=asked.timestamp_us)
    if asked.on is not None:
        table = on_named(table, asked.on.name, asked.on.kind)
    _refuse(at, table, problem_of_table(table, at.stored_code))
    is_past = asked.version is not None or asked.timestamp_us is not None
    return at.handles.facts(table, asked.transaction, past=is_past or table.is_tag)


def load_relation(at: OpenCatalog, asked: ask.LoadRelation) -> ask.TableFacts | ask.FoundView:
    if asked.identifier is None:
        table = named(at, asked)
        _refuse(at, table, problem_of_table(table, at.stored_code))
        return at.handles.facts(table, asked.transaction, past=table.is_tag)
    catalog = at.of(asked.transaction)
    found = catalog.load_relation(asked.identifier)
    if isinstance(found, Table):
        _refuse(at, found, problem_of_table(found, at.stored_code))
        return at.handles.facts(found, asked.transaction)
    problem = problem_of_view(found, at.stored_code)
    if problem is not None:
        author = catalog.author_of(asked.identifier, VIEW)
        raise refused(f"the view {quoted(asked.identifier)}", problem, at.stored_code, author)
    return ask.FoundView(view=found)


def may_compute(at: OpenCatalog, asked: ask.MayCompute) -> Done:
    table = at.loaded(asked)
    _refuse(at, table, computed_by_writes(table, at.stored_code))
    return Done()


def _refuse(at: OpenCatalog, table: Table, problem: tuple[str, str] | None) -> None:
    if problem is not None:
        text, why = problem
        raise refused(f"the table {table.name}", why, at.stored_code, table.author_of(text))


def alter(at: OpenCatalog, asked: ask.AlterTable) -> ask.TableFacts:
    table = named(at, asked)
    if asked.identifier is None:
        table = on_ref(table, asked.ref)
    seen = None if asked.looked_at is None else at.handles.loaded(asked.looked_at, asked.transaction)
    altered = table.alter(asked.changes, looked_at=seen, token=asked.token)
    return at.handles.facts(altered, asked.transaction)


def drop(at: OpenCatalog, asked: ask.DropTable) -> Dropped:
    catalog = at.of(asked.transaction)
    if asked.identifier is not None:
        return Dropped(dropped=catalog.drop_table(asked.identifier, purge=asked.purge, token=asked.token))
    assert asked.location is not None, "a table is named by one of both"
    if asked.purge:
        raise Unsupported(
            f"the table at {asked.location} keeps its files when it is dropped: leave out PURGE"
        )
    return Dropped(dropped=catalog.drop_table_at(asked.location, token=asked.token))


def rename(at: OpenCatalog, asked: ask.RenameTable) -> Done:
    assert asked.identifier is not None, "a table that is named by its place has no other name"
    at.of(asked.transaction).rename_table(asked.identifier, asked.to, token=asked.token)
    return Done()


def named(
    at: OpenCatalog, asked: Named, *, version: int | None = None, timestamp_us: int | None = None
) -> Table:
    """Return the table that a request names. NoSuchTable, NoSuchNamespace."""
    catalog = at.of(asked.transaction)
    if asked.identifier is not None:
        return catalog.load_table(asked.identifier, version=version, timestamp_us=timestamp_us)
    assert asked.location is not None, "a table is named by one of both"
    return catalog.table_at(asked.location, version=version, timestamp_us=timestamp_us)

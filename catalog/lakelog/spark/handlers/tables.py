"""Tables by their names and places."""

from __future__ import annotations

from lakelog.catalog import Table, engine
from lakelog.catalog.engine import VIEW
from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.names import quoted
from lakelog.log.errors import Unsupported
from lakelog.spark.handles import on_named, on_ref
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import tables as ask
from lakelog.spark.requests.base import DroppedAnswer, EmptyAnswer, ExistsAnswer, NamedObject
from lakelog.spark.show_patterns import may_match
from lakelog.spark.stored_code import computed_by_writes, problem_of_table, problem_of_view, refused


def list_tables(at: ServedCatalog, asked: ask.ListTables) -> ask.TableList:
    names = engine.table_names(at.of(asked.transaction), asked.namespace)
    return ask.TableList(
        tables=tuple((*asked.namespace, name) for name in may_match(names, asked.like).to_pylist())
    )


def exists(at: ServedCatalog, asked: ask.LookUpTable) -> ExistsAnswer:
    if asked.identifier is not None:
        return ExistsAnswer(exists=at.of(asked.transaction).table_exists(asked.identifier))
    try:
        named(at, asked)
    except NoSuchTable:
        return ExistsAnswer(exists=False)
    return ExistsAnswer(exists=True)


def load(at: ServedCatalog, asked: ask.LoadTable) -> ask.TableFacts:
    table = named(at, asked, version=asked.version, timestamp=asked.timestamp_us)
    if asked.on is not None:
        table = on_named(table, asked.on.name, asked.on.kind)
    _refuse(at, table, problem_of_table(table, at.stored_code))
    is_past = asked.version is not None or asked.timestamp_us is not None
    return at.handles.facts(table, asked.transaction, past=is_past or table.is_tag)


def load_relation(at: ServedCatalog, asked: ask.LoadRelation) -> ask.TableFacts | ask.FoundView:
    if asked.identifier is None:
        table = named(at, asked)
        _refuse(at, table, problem_of_table(table, at.stored_code))
        return at.handles.facts(table, asked.transaction, past=table.is_tag)
    catalog = at.of(asked.transaction)
    table_or_view = engine.load_relation(catalog, asked.identifier)
    if isinstance(table_or_view, Table):
        _refuse(at, table_or_view, problem_of_table(table_or_view, at.stored_code))
        return at.handles.facts(table_or_view, asked.transaction)
    problem = problem_of_view(table_or_view, at.stored_code)
    if problem is not None:
        author = engine.author_of_definition(catalog, asked.identifier, VIEW)
        raise refused(f"the view {quoted(asked.identifier)}", problem, at.stored_code, author)
    return ask.FoundView(view=table_or_view)


def may_compute(at: ServedCatalog, asked: ask.MayCompute) -> EmptyAnswer:
    table = at.loaded(asked)
    _refuse(at, table, computed_by_writes(table, at.stored_code))
    return EmptyAnswer()


def _refuse(at: ServedCatalog, table: Table, problem: tuple[str, str] | None) -> None:
    if problem is not None:
        text, why = problem
        raise refused(f"the table {table.name}", why, at.stored_code, engine.author_of_text(table, text))


def alter(at: ServedCatalog, asked: ask.AlterTable) -> ask.TableFacts:
    table = named(at, asked)
    if asked.identifier is None:
        table = on_ref(table, asked.ref)
    checked_table = None if asked.looked_at is None else at.handles.loaded(asked.looked_at, asked.transaction)
    new_table = table.alter(asked.changes, looked_at=checked_table, token=asked.token)
    return at.handles.facts(new_table, asked.transaction)


def drop(at: ServedCatalog, asked: ask.DropTable) -> DroppedAnswer:
    catalog = at.of(asked.transaction)
    if asked.identifier is not None:
        return DroppedAnswer(
            dropped=catalog.drop_table(
                asked.identifier, missing_ok=True, purge=asked.purge, token=asked.token
            )
        )
    assert asked.location is not None, "a table is named by one of both"
    if asked.purge:
        raise Unsupported(
            f"the table at {asked.location} keeps its files when it is dropped: leave out PURGE"
        )
    return DroppedAnswer(dropped=engine.drop_table_at(catalog, asked.location, token=asked.token))


def rename(at: ServedCatalog, asked: ask.RenameTable) -> EmptyAnswer:
    assert asked.identifier is not None, "a table that is named by its place has no other name"
    at.of(asked.transaction).rename_table(asked.identifier, asked.to, token=asked.token)
    return EmptyAnswer()


def named(
    at: ServedCatalog, asked: NamedObject, *, version: int | None = None, timestamp: int | None = None
) -> Table:
    """Return the table that a request names. Raises NoSuchTable or NoSuchNamespace."""
    catalog = at.of(asked.transaction)
    if asked.identifier is not None:
        return catalog.load_table(asked.identifier, version=version, timestamp=timestamp)
    assert asked.location is not None, "a table is named by one of both"
    return catalog.table_at(asked.location, version=version, timestamp=timestamp)

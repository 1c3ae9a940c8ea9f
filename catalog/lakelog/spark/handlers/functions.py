"""Functions. One is found whatever the case of its name, unless the session minds it (`case_sensitive`)."""

from __future__ import annotations

from lakelog.catalog.core.schema import FUNCTION
from lakelog.catalog.errors import NoSuchFunction, NoSuchNamespace
from lakelog.catalog.names import quoted
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import definitions as ask
from lakelog.spark.requests.base import Done, Dropped, Path
from lakelog.spark.stored_code import problem_of_function, refused


def list_functions(at: OpenCatalog, asked: ask.ListFunctions) -> ask.Functions:
    return ask.Functions(functions=tuple(at.of(asked.transaction).list_functions(asked.namespace)))


def load(at: OpenCatalog, asked: ask.LoadFunction) -> ask.FoundFunction:
    catalog, name = at.of(asked.transaction), _named(at, asked)
    try:
        found = catalog.load_function(name)
    except (NoSuchFunction, NoSuchNamespace):
        return ask.FoundFunction(function=None)
    problem = problem_of_function(found, at.stored_code) if asked.runs else None
    if problem is not None:
        author = catalog.author_of(name, FUNCTION)
        raise refused(f"the function {quoted(name)}", problem, at.stored_code, author)
    return ask.FoundFunction(function=found)


def create(at: OpenCatalog, asked: ask.CreateFunction) -> Done:
    at.of(asked.transaction).create_function(
        _named(at, asked),
        asked.definition,
        or_replace=asked.or_replace,
        if_not_exists=asked.if_not_exists,
        token=asked.token,
    )
    return Done()


def drop(at: OpenCatalog, asked: ask.DropFunction) -> Dropped:
    return Dropped(dropped=at.of(asked.transaction).drop_function(_named(at, asked), token=asked.token))


def _named(at: OpenCatalog, asked: ask.OfFunction) -> Path:
    """Return the name of the function that is meant; the name that was given where there is none."""
    *namespace, name = asked.identifier
    catalog = at.of(asked.transaction)
    if not asked.case_sensitive and not catalog.function_exists(asked.identifier):
        try:
            there = [found for *_, found in catalog.list_functions(namespace)]
        except NoSuchNamespace:
            there = []
        name = next((found for found in there if found.lower() == name.lower()), name)
    return (*namespace, name)

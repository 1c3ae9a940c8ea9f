"""Functions. One is found whatever the case of its name, unless the session minds it (`case_sensitive`)."""

from __future__ import annotations

from lakelog.catalog.errors import NoSuchFunction, NoSuchNamespace
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import definitions as ask
from lakelog.spark.requests.base import Done, Dropped, Path


def list_functions(at: OpenCatalog, asked: ask.ListFunctions) -> ask.Functions:
    return ask.Functions(functions=tuple(at.of(asked.transaction).list_functions(asked.namespace)))


def load(at: OpenCatalog, asked: ask.LoadFunction) -> ask.FoundFunction:
    try:
        found = at.of(asked.transaction).load_function(_named(at, asked))
    except (NoSuchFunction, NoSuchNamespace):
        return ask.FoundFunction(function=None)
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

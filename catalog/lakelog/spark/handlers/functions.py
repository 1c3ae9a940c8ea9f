"""Functions. The case of a name matters only if `case_sensitive`."""

from __future__ import annotations

from lakelog.catalog import engine
from lakelog.catalog.engine import FUNCTION
from lakelog.catalog.errors import NoSuchFunction, NoSuchNamespace
from lakelog.catalog.names import quoted
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import definitions as ask
from lakelog.spark.requests.base import DroppedAnswer, EmptyAnswer, Path
from lakelog.spark.stored_code import problem_of_function, refused


def list_functions(at: ServedCatalog, asked: ask.ListFunctions) -> ask.FunctionList:
    return ask.FunctionList(functions=tuple(at.of(asked.transaction).list_functions(asked.namespace)))


def load(at: ServedCatalog, asked: ask.LoadFunction) -> ask.FoundFunction:
    catalog, name = at.of(asked.transaction), _named(at, asked)
    try:
        function = catalog.load_function(name)
    except (NoSuchFunction, NoSuchNamespace):
        return ask.FoundFunction(function=None)
    problem = problem_of_function(function, at.stored_code) if asked.runs else None
    if problem is not None:
        author = engine.author_of_definition(catalog, name, FUNCTION)
        raise refused(f"the function {quoted(name)}", problem, at.stored_code, author)
    return ask.FoundFunction(function=function)


def create(at: ServedCatalog, asked: ask.CreateFunction) -> EmptyAnswer:
    engine.create_function(
        at.of(asked.transaction),
        _named(at, asked),
        asked.definition,
        or_replace=asked.or_replace,
        if_not_exists=asked.if_not_exists,
        token=asked.token,
    )
    return EmptyAnswer()


def drop(at: ServedCatalog, asked: ask.DropFunction) -> DroppedAnswer:
    catalog = at.of(asked.transaction)
    return DroppedAnswer(dropped=catalog.drop_function(_named(at, asked), missing_ok=True, token=asked.token))


def _named(at: ServedCatalog, asked: ask.FunctionRequest) -> Path:
    """Return the name of the existing function, or the given name if there is none."""
    *namespace, name = asked.identifier
    catalog = at.of(asked.transaction)
    if not asked.case_sensitive and not catalog.function_exists(asked.identifier):
        try:
            function_names = [function_name for *_, function_name in catalog.list_functions(namespace)]
        except NoSuchNamespace:
            function_names = []
        name = next(
            (function_name for function_name in function_names if function_name.lower() == name.lower()), name
        )
    return (*namespace, name)

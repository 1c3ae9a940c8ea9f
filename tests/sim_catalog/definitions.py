"""Clients who define, replace, rename, drop and restore views and functions, among the names of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.sim_catalog.model import ABSENT, OK, Asked, Path, State

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.schema.definition import FUNCTION, VIEW, FunctionDefinition, ViewDefinition
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.transaction import Transaction

if TYPE_CHECKING:
    from tests.sim_catalog.names import Names

KINDS = (VIEW, VIEW, FUNCTION)

Do = Callable[[CatalogNames], Any]


def look(names: Names, catalog: CatalogNames) -> None:
    """See what a name stands for, or which names of a namespace stand for something."""
    kind, path = names.world.rng.choice(KINDS), names.path()
    if names.world.rng.random() < 0.3:
        names.ask(catalog, Asked("list defined", (kind, path[0])), partial(listed_texts, kind, path[0]))
    else:
        names.ask(catalog, Asked("meaning", (kind, path)), partial(meaning, kind, path))


def change(names: Names, catalog: CatalogNames) -> None:
    token = catalog.token(full(names.path()))
    request, do = chosen(names, catalog, token)
    names.ask(catalog, request, do, token.commit_id)


def step(names: Names, tx: Transaction) -> Asked | None:
    """Do something in a transaction; raise what refuses it."""
    request, do = chosen(names, tx, None)
    return request if do(tx) == OK else None


def chosen(names: Names, catalog: CatalogNames, token: Token | None) -> tuple[Asked, Do]:
    """Return a change, and what asks for it and answers what became of it."""
    rng = names.world.rng
    kind, path, to = rng.choice(KINDS), names.path(), names.path()
    label = rng.choice(("define", "define", "replace", "drop", "rename", "rename", "restore"))
    if label == "rename":
        kind = VIEW  # functions have no other names
    views = catalog.list_views if kind == VIEW else catalog.list_functions
    if label != "define" and rng.random() < 0.7 and (known_texts := views(full(path)[:-1])):
        path = (path[0], rng.choice(known_texts)[-1])
    if rng.random() < 0.3:
        dropped_entries = [entry for entry in catalog.dropped(full(path)[:-1]) if entry.kind == kind]
        if dropped_entries:
            label, path = "restore", (path[0], rng.choice(dropped_entries).name[-1])
    if label == "drop":
        drop = Catalog.drop_view if kind == VIEW else Catalog.drop_function
        return Asked(
            "undefine", (kind, path)
        ), lambda catalog: OK if drop(catalog, full(path), missing_ok=True, token=token) else ABSENT
    if label == "restore":
        restore = Catalog.undrop_view if kind == VIEW else Catalog.undrop_function
        to = to if rng.random() < 0.4 else path
        return Asked(
            "define again", (kind, path, to)
        ), lambda catalog: restore(catalog, full(path), to=full(to), token=token) and OK
    if label == "rename":
        return Asked(
            "rename view", (path, to)
        ), lambda catalog: catalog.rename_view(full(path), full(to), token=token) or OK
    mark = names.world.new_id()[:6]
    if label == "replace" and kind == VIEW:
        return Asked(
            "define", (kind, path, mark, False, True)
        ), lambda catalog: engine.replace_view(catalog, full(path), view(mark), token=token) or OK
    replaces = rng.random() < 0.3
    request = Asked("define", (kind, path, mark, True, replaces))
    if kind == VIEW:
        return (
            request,
            lambda catalog: (
                engine.create_view(catalog, full(path), view(mark), or_replace=replaces, token=token) or OK
            ),
        )
    return (
        request,
        lambda catalog: (
            engine.create_function(catalog, full(path), function(mark), or_replace=replaces, token=token)
            or OK
        ),
    )


def found(state: State, calm: CatalogNames, free: Iterable[Path]) -> State:
    """Define views under names that are free, and functions in all namespaces."""
    for kind, path in [(VIEW, path) for path in free] + [(FUNCTION, (name, "t")) for name in ("", "x", "y")]:
        if kind == VIEW:
            engine.create_view(calm, full(path), view("first"))
        else:
            engine.create_function(calm, full(path), function("first"))
        space = state.space(path[0])
        assert space is not None
        state = state.with_space(space.with_meaning(kind, path[1], "first"))
    return state


def restless(names: Names, space_name: str, name: str) -> Callable[[CatalogNames], None]:
    """Define the same view, drop it and restore it: what others read of its name is soon out of date."""
    path = (space_name, name)

    def deed(catalog: CatalogNames) -> None:
        mark = names.world.new_id()[:6]
        steps: list[tuple[Asked, Callable[[Token], Do]]] = [
            (
                Asked("define", (VIEW, path, mark, True, True)),
                lambda token: (
                    lambda catalog: (
                        engine.create_view(catalog, full(path), view(mark), or_replace=True, token=token)
                        or OK
                    )
                ),
            ),
            (
                Asked("undefine", (VIEW, path)),
                lambda token: (
                    lambda catalog: (
                        OK if catalog.drop_view(full(path), missing_ok=True, token=token) else ABSENT
                    )
                ),
            ),
            (
                Asked("define again", (VIEW, path, path)),
                lambda token: lambda catalog: catalog.undrop_view(full(path), token=token) and OK,
            ),
        ]
        for request, do in steps:
            token = catalog.token(full(path))
            names.ask(catalog, request, do(token), token.commit_id)

    return deed


def view(mark: str) -> ViewDefinition:
    return ViewDefinition(text=mark, columns=())


def function(mark: str) -> FunctionDefinition:
    return FunctionDefinition(language="sql", body=mark)


def meaning(kind: str, path: Path, catalog: CatalogNames) -> str:
    if kind == VIEW:
        return catalog.load_view(full(path)).text
    return catalog.load_function(full(path)).body


def listed_texts(kind: str, name: str, catalog: CatalogNames) -> tuple[str, ...]:
    texts = (catalog.list_views if kind == VIEW else catalog.list_functions)((name,) if name else ())
    return tuple(path[-1] for path in texts)


def full(path: Path) -> tuple[str, ...]:
    return (path[0], path[1]) if path[0] else (path[1],)

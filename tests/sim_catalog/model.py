"""The catalog as a dictionary: the effects and answers that a request for names may have, if it happens at once.

Things are distinguished by their ids, so that a table keeps its identity through renames, drops and restores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

OK, EXISTS, MISSING, NOT_EMPTY, ABSENT = "ok", "exists", "missing", "not empty", "absent"
Names = tuple[tuple[str, str], ...]
Path = tuple[str, str]  # the namespace ("" is the root) and the name of a table, view or function
Meanings = tuple[tuple[str, str, str], ...]  # kind (view, function), name, and the mark in its definition


@dataclass(frozen=True)
class Space:
    """A namespace: its tables, views and functions by name, and what was dropped in it and can be restored."""

    name: str
    id: str
    tables: Names = ()
    dropped: Names = ()
    defined: Meanings = ()
    undefined: Meanings = ()

    def table(self, name: str) -> str | None:
        return dict(self.tables).get(name)

    def meaning(self, kind: str, name: str) -> str | None:
        return next((mark for *which_texts, mark in self.defined if which_texts == [kind, name]), None)

    def is_taken(self, name: str, kind: str = "view") -> bool:
        """Whether a table or view has the name; or, of that kind, a function."""
        return self.meaning(kind, name) is not None or (kind == "view" and self.table(name) is not None)

    def with_meaning(self, kind: str, name: str, mark: str) -> Space:
        return replace(self, defined=tuple(sorted((*self.without(kind, name).defined, (kind, name, mark)))))

    def without(self, kind: str, name: str) -> Space:
        return replace(self, defined=tuple(one for one in self.defined if one[:2] != (kind, name)))

    def linked(self, name: str, id: str) -> Space:
        return replace(
            self,
            tables=tuple(sorted((*self.tables, (name, id)))),
            dropped=tuple(first_pair for first_pair in self.dropped if first_pair[1] != id),
        )

    def unlinked(self, name: str) -> Space:
        return replace(self, tables=tuple(table for table in self.tables if table[0] != name))


@dataclass(frozen=True)
class State:
    """The whole catalog. `marks` is what tables say of themselves, by id."""

    spaces: tuple[Space, ...] = (Space("", ""),)
    gone: tuple[Space, ...] = ()
    marks: Names = ()
    scars: tuple[str, ...] = ()
    """What was ever dropped, restored or not: what was prepared before fails at it, though it may be back."""

    def scarred(self, *ids: str) -> State:
        return replace(self, scars=tuple(sorted({*self.scars, *ids})))

    def space(self, name: str) -> Space | None:
        return next((space for space in self.spaces if space.name == name), None)

    def space_of(self, id: str) -> Space | None:
        return next((space for space in self.spaces if space.id == id), None)

    def with_space(self, new: Space) -> State:
        other_spaces = (space for space in self.spaces if space.id != new.id)
        return replace(self, spaces=tuple(sorted((*other_spaces, new), key=lambda space: space.name)))

    def without_space(self, id: str) -> State:
        return replace(self, spaces=tuple(space for space in self.spaces if space.id != id))

    def marked(self, id: str, mark: str) -> State:
        return replace(self, marks=tuple(sorted({**dict(self.marks), id: mark}.items())))

    def is_open(self, id: str) -> bool:
        return any(id == table for space in self.spaces for _, table in space.tables)


@dataclass(frozen=True)
class Asked:
    """A request, without its answer. `arguments` are those of the method of its kind below."""

    kind: str
    arguments: tuple[Any, ...]


def outcomes(state: State, asked: Asked) -> Iterator[tuple[Any, State]]:
    """Yield what may be answered in that state, with the state after it."""
    yield from _RULES[asked.kind](state, *asked.arguments)


def _create_space(state: State, name: str, id: str, first_id: str) -> Iterator[tuple[Any, State]]:
    """The first one of a name has the id that follows from it, unless a creation that came to nothing has."""
    if state.space(name) is not None:
        yield EXISTS, state
        return
    yield OK, state.with_space(Space(name, id))
    if all(space.id != first_id for space in (*state.spaces, *state.gone)):
        yield OK, state.with_space(Space(name, first_id))


def _drop_space(state: State, name: str, cascade: bool) -> Iterator[tuple[Any, State]]:
    space = state.space(name)
    if space is None:
        yield ABSENT, state
    elif (space.tables or space.defined) and not cascade:
        yield NOT_EMPTY, state
    else:
        state_after = state.without_space(space.id).scarred(space.id, *(id for _, id in space.tables))
        yield OK, replace(state_after, gone=(*state_after.gone, space))


def _undrop_space(state: State, name: str, to: str) -> Iterator[tuple[Any, State]]:
    """One that was dropped under that name: which is meant is decided when it is looked up. If that one was restored
    meanwhile, it is missing, though there may be another one."""
    spaces = [space for space in state.gone if space.name == name]
    if not spaces or state.space(to) is not None:
        yield MISSING, state
    for space in spaces:
        if state.space(to) is not None:
            yield EXISTS, state
        else:
            state_after = replace(
                state, gone=tuple(other_space for other_space in state.gone if other_space.id != space.id)
            )
            yield OK, state_after.with_space(replace(space, name=to))


def _create(state: State, path: Path) -> Iterator[tuple[Any, State]]:
    """Why a table could not even be staged."""
    space = state.space(path[0])
    if space is None:
        yield MISSING, state
    elif space.is_taken(path[1]):
        yield EXISTS, state


def _link(state: State, space_id: str, name: str, id: str, mark: str) -> Iterator[tuple[Any, State]]:
    """Make a staged table visible in the namespace that it was staged in, whatever that is called by now."""
    space = state.space_of(space_id)
    if space is None or space_id in state.scars:
        yield MISSING, state
    if space is not None and space.is_taken(name):
        yield EXISTS, state
    elif space is not None:
        yield OK, state.with_space(space.linked(name, id)).marked(id, mark)


def _replace(
    state: State, space_id: str, name: str, id: str, new_id: str, mark: str
) -> Iterator[tuple[Any, State]]:
    """Replace a table, or, with a `new_id`, create one if it is gone."""
    space = state.space_of(space_id)
    other_table = space.table(name) if space is not None else None
    if state.is_open(id):
        yield OK, state.marked(id, mark)
    is_view = space is not None and space.meaning("view", name) is not None
    if other_table not in (None, id) or (other_table == id and id in state.scars) or is_view:
        yield EXISTS, state
    if other_table != id or not state.is_open(id) or id in state.scars:
        if new_id and space is not None and other_table is None and not is_view:
            yield OK, state.with_space(space.linked(name, new_id)).marked(new_id, mark)
        yield MISSING, state


def _drop(state: State, path: Path, id: str | None) -> Iterator[tuple[Any, State]]:
    space = state.space(path[0])
    table = space.table(path[1]) if space is not None else None
    if space is None or table is None or table != (id or table):
        yield ABSENT, state
    else:
        space_after = space.unlinked(path[1])
        yield (
            OK,
            state.with_space(replace(space_after, dropped=(*space_after.dropped, (path[1], table)))).scarred(
                table
            ),
        )


def _undrop(state: State, path: Path, to: Path, id: str | None) -> Iterator[tuple[Any, State]]:
    source, goal = state.space(path[0]), state.space(to[0])
    dropped_pairs = source.dropped if source is not None else ()
    meant_texts = [
        first_text
        for name, first_text in dropped_pairs
        if (first_text == id if id is not None else name == path[1])
    ]
    is_taken = goal is not None and goal.is_taken(to[1])
    yield from _refusals(state, goal, to, missing=not meant_texts or is_taken)
    if source is None or goal is None or goal.is_taken(to[1]):
        return
    for text in meant_texts:
        forgotten = replace(
            source, dropped=tuple(each_pair for each_pair in dropped_pairs if each_pair[1] != text)
        )
        goal_now = forgotten if goal.id == source.id else goal
        yield OK, state.with_space(forgotten).with_space(goal_now.linked(to[1], text))


def _rename(state: State, old: Path, new: Path, id: str | None) -> Iterator[tuple[Any, State]]:
    source, goal = state.space(old[0]), state.space(new[0])
    table = source.table(old[1]) if source is not None else None
    missing = table is None or table != (id or table)
    missing_by_scars = any(
        first_source is not None and first_source.id in state.scars for first_source in (source, goal)
    )
    yield from _refusals(state, goal, new, missing=missing or missing_by_scars or table in state.scars)
    if source is None or goal is None or table is None or missing or goal.is_taken(new[1]):
        return
    unlinked_space = source.unlinked(old[1])
    goal_now = unlinked_space if goal.id == source.id else goal
    yield OK, state.with_space(unlinked_space).with_space(goal_now.linked(new[1], table))


def _refusals(
    state: State, goal: Space | None, to: Path, *, missing: bool, kind: str = "view"
) -> Iterator[tuple[Any, State]]:
    """Of several reasons to refuse, any may be given."""
    if missing or goal is None:
        yield MISSING, state
    if goal is not None and goal.is_taken(to[1], kind):
        yield EXISTS, state


def _define(
    state: State, kind: str, path: Path, mark: str, create: bool, replaces: bool
) -> Iterator[tuple[Any, State]]:
    """Let a name stand for a view or function: a new one if `create`, instead of the present one if `replaces`."""
    space = state.space(path[0])
    meaning = space.meaning(kind, path[1]) if space is not None else None
    if space is None or (meaning is None and not create):
        yield MISSING, state
    elif meaning is None and space.is_taken(path[1], kind) or (meaning is not None and not replaces):
        yield EXISTS, state
    else:
        yield OK, state.with_space(space.with_meaning(kind, path[1], mark))


def _undefine(state: State, kind: str, path: Path) -> Iterator[tuple[Any, State]]:
    space = state.space(path[0])
    meaning = space.meaning(kind, path[1]) if space is not None else None
    if space is None or meaning is None:
        yield ABSENT, state
    else:
        space_after = space.without(kind, path[1])
        yield (
            OK,
            state.with_space(
                replace(space_after, undefined=(*space_after.undefined, (kind, path[1], meaning)))
            ),
        )


def _define_again(state: State, kind: str, path: Path, to: Path) -> Iterator[tuple[Any, State]]:
    """Restore a view or function that was dropped under that name: which is decided when it is looked up."""
    source, goal = state.space(path[0]), state.space(to[0])
    meant = [one for one in source.undefined if one[:2] == (kind, path[1])] if source is not None else []
    is_taken = goal is not None and goal.is_taken(to[1], kind)
    yield from _refusals(state, goal, to, missing=not meant or is_taken, kind=kind)
    if source is None or goal is None or is_taken:
        return
    for one in meant:
        at = source.undefined.index(one)
        forgotten = replace(source, undefined=source.undefined[:at] + source.undefined[at + 1 :])
        goal_now = forgotten if goal.id == source.id else goal
        yield OK, state.with_space(forgotten).with_space(goal_now.with_meaning(kind, to[1], one[2]))


def _rename_view(state: State, old: Path, new: Path) -> Iterator[tuple[Any, State]]:
    source, goal = state.space(old[0]), state.space(new[0])
    meaning = source.meaning("view", old[1]) if source is not None else None
    yield from _refusals(state, goal, new, missing=meaning is None)
    if source is None or goal is None or meaning is None or goal.is_taken(new[1]):
        return
    without = source.without("view", old[1])
    goal_now = without if goal.id == source.id else goal
    yield OK, state.with_space(without).with_space(goal_now.with_meaning("view", new[1], meaning))


def _meaning(state: State, kind: str, path: Path) -> Iterator[tuple[Any, State]]:
    space = state.space(path[0])
    yield (space.meaning(kind, path[1]) if space is not None else None) or MISSING, state


def _list_defined(state: State, kind: str, space_name: str) -> Iterator[tuple[Any, State]]:
    space = state.space(space_name)
    if space is None:
        yield MISSING, state
    else:
        yield tuple(name for text, name, _ in space.defined if text == kind), state


def _alter(state: State, id: str, mark: str) -> Iterator[tuple[Any, State]]:
    if state.is_open(id):
        yield OK, state.marked(id, mark)
    if not state.is_open(id) or id in state.scars:
        yield MISSING, state


def _alter_by_name(state: State, path: Path, id: str, mark: str) -> Iterator[tuple[Any, State]]:
    """A table is changed by a client who loaded it by a name, and only while it has that name."""
    space = state.space(path[0])
    has_name = space is not None and space.table(path[1]) == id
    if has_name:
        yield OK, state.marked(id, mark)
    if not has_name or id in state.scars:
        yield MISSING, state


def _resolve(state: State, path: Path) -> Iterator[tuple[Any, State]]:
    space = state.space(path[0])
    yield (space.table(path[1]) if space is not None else None) or MISSING, state


def _look(state: State, id: str) -> Iterator[tuple[Any, State]]:
    yield dict(state.marks)[id] if state.is_open(id) else MISSING, state


def _list(state: State, space_name: str) -> Iterator[tuple[Any, State]]:
    space = state.space(space_name)
    yield MISSING if space is None else tuple(name for name, _ in space.tables), state


def _all(state: State, steps: tuple[Asked, ...]) -> Iterator[tuple[Any, State]]:
    """A transaction: all of its steps succeed, or it has no effect."""
    states = [state]
    for step in steps:
        states = [
            after_state
            for state_before in states
            for answer, after_state in outcomes(state_before, step)
            if answer == OK
        ]
    created_arguments = {step.arguments[2] for step in steps if step.kind == "link"}
    for state_after in states:
        yield OK, _never_there(state_after, created_arguments)


def _never_there(state: State, created: set[str]) -> State:
    """Return the state without what a transaction created and dropped again: it does not come back."""

    def without(names: Names) -> Names:
        return tuple(name for name in names if name[1] not in created)

    return replace(
        state,
        spaces=tuple(replace(space, dropped=without(space.dropped)) for space in state.spaces),
        gone=tuple(
            replace(space, tables=without(space.tables), dropped=without(space.dropped))
            for space in state.gone
        ),
    )


_RULES: dict[str, Any] = {
    "create space": _create_space,
    "drop space": _drop_space,
    "undrop space": _undrop_space,
    "create": _create,
    "link": _link,
    "replace": _replace,
    "drop": _drop,
    "undrop": _undrop,
    "rename": _rename,
    "alter": _alter,
    "alter by name": _alter_by_name,
    "define": _define,
    "undefine": _undefine,
    "define again": _define_again,
    "rename view": _rename_view,
    "meaning": _meaning,
    "list defined": _list_defined,
    "resolve": _resolve,
    "look": _look,
    "list": _list,
    "transaction": _all,
}

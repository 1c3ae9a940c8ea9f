"""Scenarios of names: namespaces N and M with tables T and U, moves of namespaces, drop, restore, purge, reopen."""

from __future__ import annotations

from functools import partial

from tests.model import expiry, names, reading, writing
from tests.model.scenarios_log import Setup, append, begun, opened, put
from tests.model.search import Actor, Scenario

LINKED = (("link", "t", "T"),)
FILES = (("moved", "N", "t"), ("add", "first", 0))


def table_in_namespace() -> tuple[Setup, ...]:
    """Namespace N, in which t is the table T with a file."""
    return (begun("N", *LINKED), begun("T", *FILES), partial(put, ("file", "T", "first", 0), "data"))


N, T, EMPTY_N, R = opened("N", *LINKED), opened("T", *FILES), opened("N"), opened("R", ("link", "N", "N"))


def sealed_setups() -> tuple[Setup, ...]:
    """As above, after T was dropped."""
    return (*table_in_namespace(), partial(names.drop, "d0", "dropped", N, "t", T))


def creating(full: bool) -> Scenario:
    """A create, and a cleaner that takes it for dead; others who create under the name."""
    actors = (
        Actor("creator", partial(names.create, "c1", "create", EMPTY_N, "t", "T")),
        Actor("cleaner", partial(names.forget, "f1", "N", "T")),
        Actor("other creator", partial(names.create, "c2", "create-2", EMPTY_N, "t", "U")),
        Actor("cleaner 2", partial(names.forget, "f2", "N", "T")),
    )
    return Scenario("create and forget", actors[: 4 if full else 2], (begun("N"),), faults=1)


def dropping_namespace(full: bool) -> Scenario:
    """A namespace is dropped while a table is created in it."""
    empty = partial(names.drop, "d1", "drop-n", R, "N", EMPTY_N, ("empty",), rounds=2)
    actors = (
        Actor("creator", partial(names.create, "c1", "create", EMPTY_N, "t", "T")),
        Actor("dropper", empty),
        Actor("other creator", partial(names.create, "c2", "create-2", EMPTY_N, "u", "U")),
    )
    setup = (begun("R", ("link", "N", "N")), begun("N"))
    return Scenario("drop a namespace", actors[: 3 if full else 2], setup, faults=3 if full else 1)


def dropping_table(full: bool) -> Scenario:
    """A table is dropped while it is written, read and renamed."""
    actors = (
        Actor("dropper", partial(names.drop, "d1", "drop", N, "t", T, rounds=1 if full else 2)),
        Actor("writer", partial(writing.commit, "w1", T, append("one", "T"))),
        Actor("renamer", partial(names.rename, "r1", "rename", N, "t", N, "u", T)),
        Actor("reader", partial(reading.cut, (N, T))),
    )
    return Scenario("drop a table", actors[: 4 if full else 3], table_in_namespace(), faults=1)


def restoring(full: bool) -> Scenario:
    """A dropped table is restored, purged and written."""
    actors = (
        Actor("restorer", partial(names.restore, "u1", "undrop", "N", "t", "T")),
        Actor("purger", partial(names.purge, "p1", "purge", "T")),
        Actor("writer", partial(writing.commit, "w1", T, append("one", "T"))),
        Actor("restorer 2", partial(names.restore, "u2", "undrop-2", "N", "t2", "T")),
    )
    return Scenario("restore and purge", actors[: 4 if full else 3], sealed_setups(), faults=1)


def reopening(full: bool) -> Scenario:
    """The place of a dropped table is used again, while it is restored, purged and written."""
    actors = (
        Actor("reopener", partial(names.reopen, "o1", "create", N, "t2", "T#2")),
        Actor("restorer", partial(names.restore, "u1", "undrop", "N", "t", "T")),
        Actor("writer", partial(writing.commit, "w1", T, append("one", "T"))),
        Actor("purger", partial(names.purge, "p1", "purge", "T")),
    )
    return Scenario(
        "reopen",
        actors if full else (actors[0], actors[1], actors[3]),
        sealed_setups(),
        faults=1 if full else 0,
    )


def reopening_twice(full: bool) -> Scenario:
    """The place of a dropped table is used again and that table is dropped, too, before the first one is restored."""
    actors = (
        Actor("reopener", partial(names.reopen, "o1", "create", N, "t2", "T#2")),
        Actor(
            "dropper", partial(names.drop_what_is_there, "d2", "drop-2", "N", "t2", "T#2"), after="reopener"
        ),
        Actor("restorer", partial(names.restore, "u1", "undrop", "N", "t", "T")),
        Actor("restorer 2", partial(names.restore, "u2", "undrop-2", "N", "t", "T#2")),
    )
    return Scenario("reopen twice", actors[: 4 if full else 3], sealed_setups())


def writing_by_name(full: bool) -> Scenario:
    """A table is renamed and its name given to another one, while a client writes by name."""
    actors = (
        Actor("writer", partial(names.write_by_name, "w1", "write", "N", "t", T)),
        Actor("renamer", partial(names.rename, "r1", "rename", N, "t", N, "u", T)),
        Actor("creator", partial(names.create, "c1", "create", N, "t", "U"), after="renamer"),
        Actor("dropper", partial(names.drop, "d1", "drop", N, "t", T)),
    )
    return Scenario("write by name", actors, table_in_namespace(), faults=2 if full else 0)


def swapping_tables(full: bool) -> Scenario:
    """T gives its name to another table of its namespace, while clients write by name: one has loaded it before."""
    linked_pair = (*LINKED, ("link", "new", "U"))
    namespace, other = opened("N", *linked_pair), opened("U", ("moved", "N", "new"))
    actors = (
        Actor("writer", partial(names.write_by_name, "w1", "write", "N", "t", T)),
        Actor("renamer", partial(names.rename, "r1", "away", namespace, "t", namespace, "old", T)),
        Actor(
            "renamer 2",
            partial(names.rename, "r2", "here", namespace, "new", namespace, "t", other),
            after="renamer",
        ),
        Actor("loader", partial(names.load_and_write, "w2", "load", "N", "t")),
        Actor("reader", partial(reading.cut, (namespace, T))),
    )
    setup = (
        begun("N", *linked_pair),
        begun("T", *FILES),
        partial(put, ("file", "T", "first", 0), "data"),
        begun("U", ("moved", "N", "new")),
    )
    return Scenario("swap tables", actors[: 5 if full else 4], setup, faults=1 if full else 0)


def moved_and_forgotten(full: bool) -> Scenario:
    """A table is linked, moved to another namespace, and a cleaner looks for it in the first one."""
    actors = (
        Actor("creator", partial(names.create, "c1", "create", EMPTY_N, "t", "T")),
        Actor("cleaner", partial(names.forget, "f1", "N", "T")),
        Actor("mover", partial(names.rename_there, "r1", "move", "N", "t", "M", "t", "T"), after="creator"),
        Actor("dropper", partial(names.drop_what_is_there, "d1", "drop", "M", "t", "T"), after="mover"),
    )
    setup = (begun("N"), begun("M"))
    return Scenario("move and forget", actors[: 4 if full else 3], setup, faults=2 if full else 1)


def dropping_all(full: bool) -> Scenario:
    """A namespace is dropped with its table, while another one is created in it and the first is renamed or written."""
    actors = (
        Actor("dropper", partial(names.drop_all, "d1", "drop-n", R, N, (T,))),
        Actor("creator", partial(names.create, "c1", "create", N, "u", "U")),
        Actor("renamer", partial(names.rename, "r1", "rename", N, "t", N, "v", T)),
        Actor("writer", partial(writing.commit, "w1", T, append("one", "T"))),
    )
    setup = (begun("R", ("link", "N", "N")), *table_in_namespace())
    return Scenario("drop a namespace and all", actors[: 4 if full else 3], setup, faults=1 if full else 0)


def purging_together(full: bool) -> Scenario:
    """A purge that is a transaction with the namespace, against a restore and a reopening."""
    actors = (
        Actor("purger", partial(names.purge_together, "p1", "purge", "N", "T")),
        Actor("restorer", partial(names.restore, "u1", "undrop", "N", "t", "T")),
        Actor("reopener", partial(names.reopen, "o1", "create", N, "t2", "T#2")),
        Actor("cleaner", partial(expiry.expire, "e1", "T", 2)),
    )
    return Scenario("purge together", actors[: 4 if full else 3], sealed_setups(), faults=1 if full else 0)


def purging_all(full: bool) -> Scenario:
    """A dropped namespace is purged, while it is restored, its table is moved out of it, and it is dropped again."""
    drop_all = partial(names.drop_all, "d0", "dropped", R, N, (T,))
    move = partial(names.rename_there, "r1", "move", "N", "t", "R", "t", "T")
    actors = (
        Actor("purger", partial(names.purge_all, "p1", "purge", "N")),
        Actor("restorer", partial(names.restore_all, "u1", "undrop", "R", "N", "T")),
        Actor("mover", move, after="restorer"),
        Actor("dropper", partial(names.drop_what_is_there, "d1", "drop", "R", "N", "N"), after="mover"),
        Actor("reader", partial(reading.cut, (N, T))),
    )
    setup = (begun("R", ("link", "N", "N")), *table_in_namespace(), drop_all)
    return Scenario("purge a namespace", actors[: 5 if full else 4], setup)


def creating_again(full: bool) -> Scenario:
    """A create is retried after its process died, while a cleaner takes it for dead, too."""
    actors = (
        Actor("creator", partial(names.create, "c1", "create", EMPTY_N, "t", "T")),
        Actor(
            "creator again",
            partial(names.create, "c1b", "create", EMPTY_N, "t", "T"),
            after="creator",
            unless="create",
        ),
        Actor("cleaner", partial(names.forget, "f1", "N", "T")),
    )
    return Scenario("create retried", actors, (begun("N"),), faults=3 if full else 0)


def expiring_dropped(full: bool) -> Scenario:
    """Expiry of a dropped table that is restored, written or opened anew."""
    actors = (
        Actor("cleaner", partial(expiry.expire, "e1", "T", 2)),
        Actor("restorer", partial(names.restore, "u1", "undrop", "N", "t", "T")),
        Actor("writer", partial(writing.commit, "w1", T, append("one", "T"))),
        Actor("reopener", partial(names.reopen, "o1", "create", N, "t2", "T#2")),
    )
    return Scenario("expiry of a dropped table", actors[: 4 if full else 3], sealed_setups(), faults=1)


def moving_table(full: bool) -> Scenario:
    """A table moves to another namespace while that is dropped, and the table is dropped."""
    empty_m = opened("M")
    root = opened("R", ("link", "M", "M"))
    actors = (
        Actor("mover", partial(names.rename, "r1", "move", N, "t", empty_m, "t", T)),
        Actor("dropper of M", partial(names.drop, "d1", "drop-m", root, "M", empty_m, ("empty",))),
        Actor("dropper of t", partial(names.drop, "d2", "drop-t", N, "t", T)),
        Actor("writer", partial(names.write_by_name, "w1", "write", "N", "t", T)),
    )
    setup = (begun("R", ("link", "M", "M")), begun("M"), *table_in_namespace())
    return Scenario("move a table", actors[: 4 if full else 3], setup, faults=1 if full else 0)


def restoring_into_dropped(full: bool) -> Scenario:
    """A table is restored into a namespace that is being dropped, or is there no more."""
    root = opened("R", ("link", "N", "N"))
    empty = partial(names.drop_head, "d1", "drop-n", root, "N")
    actors = (
        Actor("restorer", partial(names.restore, "u1", "undrop", "N", "t", "T")),
        Actor("dropper", empty),
        Actor("restorer of N", partial(names.restore, "u2", "undrop-n", "R", "N", "N")),
    )
    setup = (begun("R", ("link", "N", "N")), *sealed_setups())
    return Scenario("restore into a namespace", actors[: 3 if full else 2], setup, faults=1 if full else 0)


def moving_namespaces(full: bool) -> Scenario:
    """X (in A, with X1 in it) moves below Y1, and Y (with Y1 in it) below X1: both at once would make a ring."""
    root = (("link", "A", "A"), ("link", "Y", "Y"))
    in_a, in_x, in_y = (("link", "X", "X"),), (("link", "X1", "X1"),), (("link", "Y1", "Y1"),)
    r, a = opened("R", *root), opened("A", *in_a, parent="R")
    x, y = opened("X", *in_x, parent="A"), opened("Y", *in_y, parent="R")
    x1, y1 = opened("X1", parent="X"), opened("Y1", parent="Y")
    actors = (
        Actor("mover of X", partial(names.move_namespace, "m1", "move-x", a, y1, x, r, ("Y1", "Y", "R"))),
        Actor(
            "mover of Y", partial(names.move_namespace, "m2", "move-y", r, x1, y, r, ("X1", "X", "A", "R"))
        ),
    )
    setup = (
        begun("R", *root),
        begun("A", *in_a, parent="R"),
        begun("X", *in_x, parent="A"),
        begun("Y", *in_y, parent="R"),
        begun("X1", parent="X"),
        begun("Y1", parent="Y"),
    )
    return Scenario("move namespaces", actors, setup, faults=1 if full else 0)

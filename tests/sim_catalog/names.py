"""Clients that create, rename, move, drop and restore tables and namespaces, and record the answers that they get.

The recorded history must fit into one order of the requests on a plain dictionary (see `linearizability`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from tests.sim.scheduler import Crash
from tests.sim_catalog import definitions, maintenance, world
from tests.sim_catalog.linearizability import Request
from tests.sim_catalog.model import ABSENT, EXISTS, MISSING, NOT_EMPTY, OK, Asked, Path, Space, State
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog, NamespaceNotEmpty, Table, Transaction, engine
from lakelog.catalog.core.ddl import namespaces
from lakelog.catalog.core.logs.places import likely_id
from lakelog.catalog.core.schema import SNAPSHOT
from lakelog.catalog.engine import CatalogNames, StagedTable
from lakelog.log import (
    AlreadyExists,
    CommitUnknown,
    ConflictError,
    LakelogError,
    NotFound,
    StorageError,
    Unsupported,
)

SPACES = ("", "x", "y")
TABLES = ("t", "u")
SCHEMA = pa.schema([("id", pa.int64())])

Do = Callable[[CatalogNames], Any]


@dataclass
class Pending:
    """A request whose answer was lost: any client may retry it."""

    request: Request
    do: Do
    commit_id: str


@dataclass
class Shown:
    """All names with the ids that they lead to, as a client saw them that had seen what was committed by then."""

    by: str
    seen_us: int
    first: int  # so many objects had been created when it began,
    last: int  # and when it ended
    names: dict[str, dict[str, str]]


@dataclass
class Names:
    world: CatalogWorld
    initial: State = field(default_factory=State)
    history: list[Request] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    stages: list[tuple[StagedTable, str]] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    busiest: Path | None = None

    # Asking

    def ask(self, catalog: CatalogNames, asked: Asked, do: Do, commit_id: str | None = None) -> Any:
        """Ask once, take down what was answered, and return it; None if that is not known, or nothing happened."""
        world = self.world
        request = Request(asked, world.scheduler.running.name, world.tick())
        self.history.append(request)
        try:
            answer = answered(catalog, do)
        except (CommitUnknown, Crash) as error:
            if commit_id is not None:
                self.pending.append(Pending(request, do, commit_id))
            if isinstance(error, Crash):
                raise
            world.count("unknown")
            return None
        except (StorageError, ConflictError) as error:
            self.history.remove(request)
            self.refused(asked, commit_id)
            world.count(f"refused: {type(error).__name__}")
            return None
        request.ended_at, request.answer = world.tick(), answer
        world.count(f"{asked.kind}: {answer if answer in ANSWERS else 'seen'}")
        if answer in ANSWERS and answer != OK:
            self.refused(asked, commit_id)
            if asked.kind == "transaction":
                # What it was refused for is what one of its steps met at the end: it says little by itself.
                self.history.remove(request)
        return answer

    def refused(self, asked: Asked, commit_id: str | None) -> None:
        if commit_id is not None:
            self.world.requests.append(world.Request(str(asked), commit_id, refused=True))

    def retry(self, catalog: CatalogNames) -> None:
        """Retry what another client never got an answer to."""
        one = self.pending.pop(int(self.world.rng.random() * len(self.pending)))
        already = self.world.truth.is_applied(one.commit_id)
        self.world.count("retried")
        try:
            answer = answered(catalog, one.do)
        except (CommitUnknown, StorageError, Crash) as error:
            self.pending.append(one)
            if isinstance(error, Crash):
                raise
            return
        except ConflictError as error:
            answer = f"{type(error).__name__}: {error}"
        if answer == OK:
            one.request.ended_at, one.request.answer = self.world.tick(), OK
            self.world.requests.append(world.Request(str(one.request), one.commit_id, acknowledged=True))
        elif already and one.request.asked.kind not in ("alter", "alter by name"):
            # A table that was altered may have been dropped since, so that there is nothing to retry.
            self.world.fail(f"{one.request} had happened, but a retry said: {answer}")

    # What clients do

    def deed(self, catalog: Catalog) -> None:
        rng = self.world.rng
        if self.pending and rng.random() < 0.6:
            self.retry(catalog)
            return
        deeds: dict[str, tuple[Callable[[Catalog], None], int]] = {
            "look": (self.look, 4),
            "show": (self.show, 4),
            "table": (self.change_table, 9),
            "space": (self.change_space, 3),
            "stage": (self.stage, 4),
            "transaction": (self.transact, 4),
            "meaning": (partial(definitions.look, self), 1),
            "definition": (partial(definitions.change, self), 3),
        }
        do, _ = deeds[self.world.chosen({name: weight for name, (_, weight) in deeds.items()})]
        do(catalog)

    def path(self) -> Path:
        if self.busiest is not None and self.world.rng.random() < (0.7 if self.world.about else 0.5):
            return self.busiest
        return self.world.rng.choice(SPACES), self.world.rng.choice(TABLES)

    def look(self, catalog: CatalogNames) -> None:
        """See where names lead, and, later, what is in a table or change it."""
        rng = self.world.rng
        if rng.random() < 0.3:
            space = rng.choice(SPACES)
            self.ask(catalog, Asked("list", (space,)), partial(listed_texts, space))
            return
        path = self.path()
        tables: list[Table] = []

        def load(catalog: CatalogNames) -> str:
            tables[:] = [catalog.load_table(full(path))]
            return tables[0].id

        self.ask(catalog, Asked("resolve", (path,)), load)
        if not tables:
            return
        table, mark = tables[0], self.world.new_id()[:6]
        if rng.random() < 0.3:
            self.ask(catalog, Asked("look", (table.id,)), lambda catalog: mark_of(catalog, table))
            return
        by_name = rng.random() < 0.6
        if by_name and rng.random() < 0.7:
            # Meanwhile the name may be given to another table.
            self.world.scheduler.stall(rng.randint(1, 60))
        token = catalog.token(full(path))

        def alter(catalog: CatalogNames) -> str:
            # As an engine does it, whose request another process may answer.
            other_table = catalog.table_at(table.location)
            if other_table.id != table.id:
                return MISSING
            if by_name:
                assert table.table_head.found_by is not None
                other_table = Table(other_table.table_head.known_by(table.table_head.found_by))
            other_table.alter([{"change": "set-property", "key": "mark", "value": mark}], token=token)
            return OK

        asked_request = (
            Asked("alter by name", (path, table.id, mark)) if by_name else Asked("alter", (table.id, mark))
        )
        self.ask(catalog, asked_request, alter, token.commit_id)

    def show(self, catalog: Catalog) -> None:
        """See all names at one moment: not before anything that this client has seen, but maybe before what others
        have seen since. So it is judged by the times of what was committed, not by the order of requests."""
        seen_us, first = catalog._logs.clocks._seen_us, len(self.world.store.created)
        tx = catalog.begin(SNAPSHOT)
        shown: dict[str, dict[str, str]] = {}
        for name in ["", *(path[0] for path in tx.list_namespaces())]:
            if self.world.rng.random() < 0.3:
                self.world.scheduler.stall(self.world.rng.randint(1, 60))
            shown[name] = {path[-1]: tx.load_table(path).id for path in tx.list_tables(space(name))}
        self.shown.append(
            Shown(self.world.scheduler.running.name, seen_us, first, len(self.world.store.created), shown)
        )
        self.world.count("all names seen at once")

    def change_table(self, catalog: CatalogNames) -> None:
        rng = self.world.rng
        path, to = self.path(), self.path()
        kind = self.world.among(("drop", "drop", "undrop", "rename", "rename"))
        dropped_entries = [entry for entry in catalog.dropped(space(path[0])) if entry.kind == "table"]
        if dropped_entries and rng.random() < 0.6:
            kind, path = "undrop", (path[0], rng.choice(dropped_entries).name[-1])
        token = catalog.token(full(path))
        if kind == "drop":
            request = Asked(kind, (path, None))
            name = full(path)
            do: Do = lambda catalog: OK if catalog.drop_table(name, missing_ok=True, token=token) else ABSENT  # noqa: E731
        elif kind == "undrop":
            to = to if rng.random() < 0.4 else path
            # The first that was dropped, which is seldom the one that a name alone means.
            id = dropped_entries[-1].id if dropped_entries and rng.random() < 0.7 else None
            request = Asked(kind, (path, to, id))
            do = lambda catalog: (  # noqa: E731
                catalog.undrop_table(full(path), id=id, to=full(to), token=token) and OK
            )
        else:
            request = Asked(kind, (path, to, None))
            do = lambda catalog: catalog.rename_table(full(path), full(to), token=token) or OK  # noqa: E731
        self.ask(catalog, request, do, token.commit_id)

    def restless_table(self, space_name: str, name: str) -> Do:
        """Drop the same table, restore it, and so on: what others read of it is soon out of date."""
        path = (space_name, name)

        def deed(catalog: CatalogNames) -> None:
            token = catalog.token(full(path))
            self.ask(
                catalog,
                Asked("drop", (path, None)),
                lambda catalog: (
                    OK if catalog.drop_table(full(path), token=token, missing_ok=True) else ABSENT
                ),
                token.commit_id,
            )
            again = catalog.token(full(path))
            self.ask(
                catalog,
                Asked("undrop", (path, path, None)),
                lambda catalog: catalog.undrop_table(full(path), token=again) and OK,
                again.commit_id,
            )

        return deed

    def restless_space(self, name: str, _table: str) -> Do:
        def deed(catalog: CatalogNames) -> None:
            token = catalog.token(name)
            self.ask(
                catalog,
                Asked("drop space", (name, True)),
                lambda catalog: (
                    OK if catalog.drop_namespace(name, missing_ok=True, cascade=True, token=token) else ABSENT
                ),
                token.commit_id,
            )
            again = catalog.token(name)
            self.ask(
                catalog,
                Asked("undrop space", (name, name)),
                lambda catalog: catalog.undrop_namespace(name, token=again) and OK,
                again.commit_id,
            )

        return deed

    def change_space(self, catalog: CatalogNames) -> None:
        rng = self.world.rng
        name, to = rng.choice(SPACES[1:]), rng.choice(SPACES[1:])
        kind = rng.choice(("create space", "drop space", "drop space", "undrop space"))
        dropped_texts = [entry.name[-1] for entry in catalog.dropped() if entry.kind == "namespace"]
        if dropped_texts and rng.random() < 0.6:
            kind, name = "undrop space", rng.choice(dropped_texts)
        token = catalog.token(space(name))
        if kind == "create space":
            request = Asked(kind, (name, token.commit_id, likely_id(world.WAREHOUSE, name)))
            do: Do = lambda catalog: catalog.create_namespace(name, token=token) or OK  # noqa: E731
        elif kind == "drop space":
            cascade = rng.random() < 0.7
            request = Asked(kind, (name, cascade))
            do = lambda catalog: (  # noqa: E731
                OK if catalog.drop_namespace(name, missing_ok=True, cascade=cascade, token=token) else ABSENT
            )
        else:
            to = to if rng.random() < 0.3 else name
            request = Asked(kind, (name, to))
            do = lambda catalog: catalog.undrop_namespace(name, to=to, token=token) and OK  # noqa: E731
        self.ask(catalog, request, do, token.commit_id)

    def stage(self, catalog: CatalogNames) -> None:
        """Stage a table, or commit what another client staged: often at once, and rarely twice."""
        rng = self.world.rng
        if not self.stages or rng.random() < 0.6:
            path = self.path()
            kind = rng.choice(("create", "create", "replace", "create-or-replace"))
            mark = self.world.new_id()[:6]

            def stage(catalog: CatalogNames) -> Any:
                staged_table = engine.stage(catalog, kind, full(path), SCHEMA, properties={"mark": mark})
                self.stages.append((staged_table, mark))
                return None

            if kind == "create":
                self.observe_refusal(catalog, Asked("create", (path,)), stage)
            else:
                try:
                    stage(catalog)
                except (AlreadyExists, NotFound):
                    return
            if rng.random() < 0.3:
                return
        if self.stages:
            stage_, mark = self.stages.pop(int(rng.random() * len(self.stages)))
            self.ask(
                catalog,
                asked_of(stage_, mark),
                lambda catalog: engine.commit_stage(catalog, stage_) and OK,
                stage_.commit_id,
            )

    def observe_refusal(self, catalog: CatalogNames, asked: Asked, do: Do) -> None:
        """Ask for something of which only a refusal says something about the catalog."""
        request = Request(asked, self.world.scheduler.running.name, self.world.tick())
        answer = answered(catalog, do)
        if answer is not None:
            request.ended_at, request.answer = self.world.tick(), answer
            self.history.append(request)

    def transact(self, catalog: Catalog) -> None:
        """Several changes at once."""
        steps: list[Asked] = []

        def body(tx: Transaction) -> None:
            for _ in range(self.world.rng.randint(2, 3)):
                step = self.step(tx)
                if step is not None:
                    steps.append(step)

        tx = catalog.begin(SNAPSHOT)
        try:
            body(tx)
        except LakelogError:
            tx.rollback()
            raise
        if not steps:
            return
        request = Asked("transaction", (tuple(steps),))
        try:
            self.ask(catalog, request, lambda catalog: committed_text(tx), tx.commit_id)
        finally:
            # No other client can retry it.
            self.pending = [one for one in self.pending if one.commit_id != tx.commit_id]

    def step(self, tx: Transaction) -> Asked | None:
        rng = self.world.rng
        kind = rng.choice(("rename", "rename", "drop", "create", "undrop", "drop space", "define"))
        path, to = self.path(), self.path()
        try:
            if kind == "define":
                return definitions.step(self, tx)
            if kind == "rename":
                id = tx.load_table(full(path)).id
                tx.rename_table(full(path), full(to))
                return Asked(kind, (path, to, id))
            if kind == "drop":
                id = tx.load_table(full(path)).id
                return Asked(kind, (path, id)) if tx.drop_table(full(path), missing_ok=True) else None
            if kind == "create":
                mark = self.world.new_id()[:6]
                stage = engine.stage(tx, "create", full(path), SCHEMA, properties={"mark": mark})
                engine.commit_stage(tx, stage)
                return asked_of(stage, mark)
            if kind == "undrop":
                dropped_entries = [entry for entry in tx.dropped(space(path[0])) if entry.kind == "table"]
                if not dropped_entries:
                    return None
                id = rng.choice(dropped_entries).id
                tx.undrop_table(full(path), id=id, to=full(to))
                return Asked(kind, (path, to, id))
            if rng.random() < 0.3 and path[0] and tx.drop_namespace(path[0], missing_ok=True, cascade=True):
                return Asked(kind, (path[0], True))
        except (AlreadyExists, NotFound, Unsupported):
            self.world.count("steps of transactions that were refused")
        return None


def mark_of(catalog: CatalogNames, table: Table) -> str:
    """Return what a table says of itself, whatever its name is by now."""
    other_table = catalog.table_at(table.location)
    return other_table.properties["mark"] if other_table.id == table.id else MISSING


def committed_text(tx: Transaction) -> str:
    for _ in range(world.ASKS_MAX - 1):
        try:
            tx.commit()
        except CommitUnknown:
            continue
        return OK
    tx.commit()
    return OK


ANSWERS = (OK, EXISTS, MISSING, NOT_EMPTY, ABSENT)


def answered(catalog: CatalogNames, do: Do) -> Any:
    try:
        return do(catalog)
    except AlreadyExists:
        return EXISTS
    except NamespaceNotEmpty:
        return NOT_EMPTY
    except NotFound:
        return MISSING


def asked_of(stage: StagedTable, mark: str) -> Asked:
    assert stage.identifier is not None and stage.namespace is not None
    space_id, name = stage.namespace.removeprefix("n-"), stage.identifier[-1]
    if stage.replaced is None:
        return Asked("link", (space_id, name, stage.table_id, mark))
    new_id = stage.commit_id if stage.kind == "create-or-replace" else ""
    return Asked("replace", (space_id, name, stage.table_id, new_id, mark))


def space(name: str) -> tuple[str, ...]:
    return (name,) if name else ()


def full(path: Path) -> tuple[str, ...]:
    return (*space(path[0]), path[1])


def listed_texts(name: str, catalog: CatalogNames) -> tuple[str, ...]:
    return tuple(path[-1] for path in catalog.list_tables(space(name)))


def populate(world: CatalogWorld) -> Names:
    """Found a few names, with clients that change them; return what records their answers."""
    rng = world.rng
    names = Names(world)
    found(names)
    more = 2 if world.about else 0
    for i in range(rng.randint(2, 4) + more):
        world.spawn(f"client {i}", rng.randint(3, 6), names.deed)
    if world.about or rng.random() < 0.5:
        restless: dict[str, tuple[Callable[[str, str], Do], int]] = {
            "restless namespace": (names.restless_space, 2),
            "restless table": (names.restless_table, 2),
            "restless view": (partial(definitions.restless, names), 1),
        }
        do, _ = restless[world.chosen({name: weight for name, (_, weight) in restless.items()})]
        names.busiest = (rng.choice(SPACES[1:]), rng.choice(TABLES))
        world.spawn("restless", rng.randint(2, 4), do(*names.busiest))
    if rng.random() < 0.2:
        maintenance.populate(world, purges=False)
    return names


def found(names: Names) -> None:
    world, calm = names.world, names.world.calm()
    state = names.initial
    for name in SPACES[1:]:
        token = calm.token(())
        # As after a rename, so that the place that follows from the name is free.
        with patch.object(namespaces, "likely_id", lambda parent, name, id=token.commit_id: id):
            calm.create_namespace(name, token=token)
        state = state.with_space(Space(name, token.commit_id))
    paths = world.rng.sample([(s, t) for s in SPACES for t in TABLES], 6)
    for path in paths[:4]:
        table = calm.create_table(full(path), SCHEMA, properties={"mark": "first"})
        space = state.space(path[0])
        assert space is not None
        state = state.with_space(space.linked(path[1], table.id)).marked(table.id, "first")
    names.initial = definitions.found(state, calm, paths[4:5])

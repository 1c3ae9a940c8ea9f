"""Whatever is done in whatever order: each version that is said to be kept has exactly the rows that it had.

Each step is done by one of two clients that have been there all the time; a plain model knows the rows of every version
of every table. What may be lost is only what expiry, vacuum and purge said that they would take.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.property.examples import examples

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.keeping.maintenance.fsck import Severity
from lakelog.log import ConflictError, InvalidInput, NotFound, WriteFenced

NAMES = ("a.t", "a.u", "b.t")
DAYS = (0, 0, 1, 4, 8)


@dataclass(eq=False)
class Model:
    """One table: the rows of each version, and the first version that has to be readable."""

    id: str
    versions: dict[int, list[int]]
    first: int = 1
    dropped_at_us: int = 0

    @property
    def rows(self) -> list[int]:
        return self.versions[max(self.versions)]


@dataclass
class Write:
    """A write whose files are there, and perhaps not committed yet."""

    table: Table
    ref: Any
    files: list[Any]
    number: int
    committed: bool = False


@dataclass
class World:
    warehouse: str
    clock: Clock
    clients: list[Catalog]
    tables: dict[str, Model] = field(default_factory=dict)
    dropped: list[tuple[str, Model]] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    cuts: dict[tuple[str, str], dict[str, list[int]]] = field(default_factory=dict)
    """What each saved cut shows, by its name and its namespace."""
    number: int = 0

    def home_of(self, table: str) -> str:
        """Return the namespace in whose folder a table is."""
        client = self.clients[0]
        folder = client.load_table(table).location.rpartition("/")[0]
        homes = {client._tree.namespace((name,)).tracked.log.location: name for name in ("a", "b")}
        return homes[folder]


Step = Callable[[World, Catalog, str, int], None]


def change(world: World, catalog: Catalog, name: str, made: Any, expected: Any) -> None:
    if name not in world.tables:
        return create(world, catalog, name, 0)
    model, world.number = world.tables[name], world.number + 1
    take_down(model, made(catalog.load_table(name), world.number), expected(model.rows, world.number))


def take_down(model: Model, table: Table, now: list[int]) -> None:
    """Versions between were made by maintenance, or by drops and restores: the rows stayed."""
    for version in range(max(model.versions) + 1, table.version):
        model.versions[version] = model.rows
    model.versions[table.version] = now


def create(world: World, catalog: Catalog, name: str, pick: int) -> None:
    if name not in world.tables:
        world.tables[name] = Model(catalog.create_table(name, SCHEMA).id, {1: []})


def append(world: World, catalog: Catalog, name: str, pick: int) -> None:
    change(world, catalog, name, lambda table, n: table.append(rows(n)), lambda old, n: sorted([*old, n]))


def overwrite(world: World, catalog: Catalog, name: str, pick: int) -> None:
    change(world, catalog, name, lambda table, n: table.overwrite(rows(n)), lambda old, n: [n])


def truncate(world: World, catalog: Catalog, name: str, pick: int) -> None:
    change(world, catalog, name, lambda table, n: table.truncate(), lambda old, n: [])


def replace(world: World, catalog: Catalog, name: str, pick: int) -> None:
    def staged_table(table: Table, n: int) -> Table:
        stage = engine.stage(catalog, "replace", name, SCHEMA)
        metadata = msgspec.structs.replace(table.metadata, schema=stage.schema, specs=(stage.spec,))
        return engine.commit_stage(
            catalog, stage, written_files(table.table_head.tracked, metadata, stage.write, rows(n))
        )

    change(world, catalog, name, staged_table, lambda old, n: [n])


def begin(world: World, catalog: Catalog, name: str, pick: int) -> None:
    create(world, catalog, name, 0)
    world.number += 1
    table = catalog.load_table(name)
    ref = engine.begin_write(table)
    files = written_files(table.table_head.tracked, table.metadata, ref, rows(world.number))
    world.writes.append(Write(table, ref, files, world.number))


def commit(world: World, catalog: Catalog, name: str, pick: int) -> None:
    if not world.writes:
        return
    write = world.writes[pick % len(world.writes)]
    model = next((model for model in world.tables.values() if model.id == write.table.id), None)
    try:
        table = engine.commit_write(write.table, write.ref, "append", write.files)
    except (WriteFenced, ConflictError, NotFound):
        return  # reported as not there: the check sees to it that it is not
    if write.committed:
        return  # a retry: it had happened, whatever became of the table since
    assert model is not None, "an acknowledged write into a table that was dropped"
    write.committed = True
    take_down(model, table, sorted([*model.rows, write.number]))


def drop(world: World, catalog: Catalog, name: str, pick: int) -> None:
    if name in world.tables:
        assert catalog.drop_table(name)
        model = world.tables.pop(name)
        model.dropped_at_us = world.clock.now_us
        world.dropped.append((name, model))


def undrop(world: World, catalog: Catalog, name: str, pick: int) -> None:
    if world.dropped:
        name, model = world.dropped[pick % len(world.dropped)]
        if name not in world.tables:
            catalog.undrop_table(name, id=model.id)
            world.dropped.remove((name, model))
            world.tables[name] = model


def move(world: World, catalog: Catalog, name: str, pick: int) -> None:
    new = NAMES[pick % len(NAMES)]
    if name in world.tables and new not in world.tables:
        catalog.rename_table(name, new)
        world.tables[new] = world.tables.pop(name)


def save_cut(world: World, catalog: Catalog, name: str, pick: int) -> None:
    if len(world.cuts) >= 2:
        return
    cut, namespace = f"cut {world.clock.now_us}", ("", "a", "b")[pick % 3]
    held_models = {table: model for table, model in world.tables.items() if table.startswith(namespace)}
    try:
        catalog.save_cut(cut, namespace=namespace)
    except InvalidInput:
        homes = {world.home_of(table) for table in held_models}
        assert namespace and homes - {namespace}, "refused, and no table of it is in another folder"
        return
    world.cuts[cut, namespace] = {table: model.rows for table, model in held_models.items()}


def drop_cut(world: World, catalog: Catalog, name: str, pick: int) -> None:
    if world.cuts:
        cut = next(iter(world.cuts))
        catalog.drop_cut(cut[0], namespace=cut[1])
        del world.cuts[cut]


def expire(world: World, catalog: Catalog, name: str, pick: int) -> None:
    world.clock.days_later(DAYS[pick % len(DAYS)])
    answers = catalog.expire(retain_last=(None, 1, 3)[pick % 3], dry_run=pick == 0)
    assert not [answer for answer in answers if answer.error], answers
    for answer in answers:
        if answer.kind == "table" and pick:
            model = world.tables[answer.name.replace("`", "")]
            model.first = max(model.first, answer.first)


def vacuum(world: World, catalog: Catalog, name: str, pick: int) -> None:
    world.clock.days_later(DAYS[pick % len(DAYS)])
    limit = dt.timedelta(days=(0, 3, 3)[pick % 3])
    answers = catalog.vacuum(older_than=limit, dry_run=pick == 0)
    assert not [answer for answer in answers if answer.error], answers
    purged_locations = {a.location for a in answers if a.kind == "dropped-table" and not a.kept_for_cuts}
    until_us = world.clock.now_us - 7 * 86_400_000_000
    for name, model in list(world.dropped):
        if any(model.id in location for location in purged_locations):
            assert model.dropped_at_us <= until_us, "purged before its time"
            if pick:
                world.dropped.remove((name, model))


def check(world: World, catalog: Catalog, name: str, pick: int) -> None:
    if name in world.tables:
        check_table(catalog, name, world.tables[name])


def check_table(catalog: Catalog, name: str, model: Model) -> None:
    table = catalog.load_table(name)
    assert table.id == model.id and ids(table) == model.rows
    for version, expected in model.versions.items():
        if version >= model.first:
            assert ids(table.at(version=version)) == expected, f"{name} at {version}"


def check_all(world: World) -> None:
    fresh = world.clock.client(world.warehouse)
    listed_texts = [".".join(name) for namespace in ("a", "b") for name in fresh.list_tables(namespace)]
    assert sorted(listed_texts) == sorted(world.tables)
    for name, model in world.tables.items():
        check_table(fresh, name, model)
    for (name, namespace), expected in world.cuts.items():
        cut = Catalog(world.warehouse, as_of=name, as_of_namespace=namespace)
        assert {table: ids(cut.load_table(table)) for table in expected} == expected, name
    assert not fresh.fsck(all_versions=True).of(Severity.DAMAGE)
    for number, (name, model) in enumerate(world.dropped):
        fresh.undrop_table(name, id=model.id, to=f"a.restored{number}")
        check_table(fresh, f"a.restored{number}", model)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


CHANGES: list[Step] = [append, append, append, overwrite, truncate, replace, drop, undrop, move]
OTHERS: list[Step] = [
    begin,
    begin,
    commit,
    commit,
    expire,
    expire,
    vacuum,
    vacuum,
    vacuum,
    save_cut,
    drop_cut,
    check,
]
steps = st.tuples(
    st.sampled_from(CHANGES + OTHERS), st.integers(0, 1), st.sampled_from(NAMES), st.integers(0, 7)
)


@given(st.lists(steps, min_size=20, max_size=60))
@settings(max_examples=examples(25, full=1000))
def test_whatever_is_done_retained_versions_have_exactly_their_rows(
    taken: list[tuple[Step, int, str, int]],
) -> None:
    take(taken)


def take(taken: list[tuple[Step, int, str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock().govern(patch)
        warehouse = f"memory://{uuid.uuid4().hex}"
        world = World(warehouse, clock, [clock.client(warehouse) for _ in range(2)])
        for namespace in ("a", "b"):
            world.clients[0].create_namespace(namespace)
        for step, client, name, pick in taken:
            step(world, world.clients[client], name, pick)
        check_all(world)

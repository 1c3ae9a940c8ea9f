"""A warehouse with every kind of object in it, and what readers have to see there."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

import pyarrow as pa

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.core.ddl import staging
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.core.logs import commits
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.core.state.events import TableAltered, encode
from lakelog.log import Draft, LakelogError, LogOptions, MemoryStore
from lakelog.log.decisions import WarehouseDecisions
from lakelog.log.expiry import expire
from lakelog.log.together import LogPart, commit_together

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.float64())])
OPTIONS = LogOptions(
    snapshot_every_versions=4,
    in_background=lambda name, work: work(),
    patience_s=0.01,
    patience_each_s=0.0,
    sleep_s=lambda seconds: None,
)
Answer = tuple[str, Any]
"""What a reader got: ("seen", value), or ("error", kind)."""


def rows(*ids: int, part: str = "x") -> pa.Table:
    columns = {"id": list(ids), "part": [part] * len(ids), "value": [id / 3 for id in ids]}
    return pa.table(columns, schema=SCHEMA)


@dataclass
class World:
    """The warehouse's objects as they are when nothing is broken, and what can be asked of them."""

    warehouse: str
    store: MemoryStore
    objects: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    def client(self, as_of: str | None = None, namespace: str = "") -> Catalog:
        return Catalog(self.warehouse, log_options=OPTIONS, as_of=as_of, as_of_namespace=namespace)

    def logs(self) -> LogCache:
        return LogCache(WarehouseStores(self.warehouse, {}), {}, OPTIONS)

    def keep(self) -> None:
        """Remember what is there now as what is right."""
        self.objects = {key: self.store.get(key) or b"" for key in self.store.list_after("")}
        logs = self.logs()
        for name in ("a.t", "a.twin", "a.old", "a.older", "a.one", "a.two", "a.away"):
            table = self.client().load_table(name)
            self.tables[name] = logs.location(table.location)
            self.versions[name] = table.version
        for question, ask in self.questions().items():
            self.answers[question] = ask()

    def restore(self) -> None:
        for key in list(self.store.list_after("")):
            if key not in self.objects:
                self.store.delete([key])
        for key, data in self.objects.items():
            if self.store.get(key) != data:
                self.store.put(key, data)

    def questions(self) -> dict[str, Callable[[], Answer]]:
        """Return all that readers can ask, each asked by a client of its own that knows nothing yet."""
        asked: dict[str, Callable[[], Answer]] = {
            "namespaces": lambda: answer(lambda: self.client().list_namespaces(())),
            "below a": lambda: answer(lambda: self.client().list_namespaces("a")),
            "tables": lambda: answer(lambda: self.client().list_tables("a")),
            "tables of a.b": lambda: answer(lambda: self.client().list_tables("a.b")),
            "properties": lambda: answer(lambda: self.client().load_namespace("a")),
            "properties of a.b": lambda: answer(lambda: self.client().load_namespace("a.b")),
            "cuts": lambda: answer(lambda: sorted(self.client().cuts())),
            "as of d's monday": lambda: answer(lambda: self.client("monday", "d").list_tables("d")),
            "as of monday": lambda: answer(lambda: contents(self.client(as_of="monday").load_table("a.t"))),
            "history of a": lambda: answer(
                lambda: [
                    (entry.version, entry.operation, entry.commit_id) for entry in self.client().history("a")
                ]
            ),
        }
        for name, location in self.tables.items():
            asked |= self.of_table(name, location)
        return asked

    def of_table(self, name: str, location: str) -> dict[str, Callable[[], Answer]]:
        def by_place() -> Any:
            return contents(self.client().table_at(self.logs().url(location)))

        def at_version(version: int) -> Any:
            return contents(self.client().load_table(name, version=version))

        def at_time(time_us: int) -> Any:
            return self.client().load_table(name, timestamp=time_us).version

        def versions() -> Any:
            """Ask for every version by itself, as who knows nothing, and then through one client."""
            found = []
            for version in range(1, self.versions[name] + 1):
                found.append(answer(partial(at_version, version)))
            return found

        def history() -> Any:
            entries = self.client().load_table(name).history()
            return [
                (entry.version, entry.committed_at, entry.operation, entry.commit_id) for entry in entries
            ]

        def times() -> Any:
            found = []
            for _, time_us, _, _ in self.answers.get(f"{name} history", (None, ()))[1] or ():
                found.append(answer(partial(at_time, time_us)))
            return found

        def filtered() -> Any:
            scan = self.client().load_table(name).scan(filter=(col("id") > 3) & (col("part") == "x"))
            return sorted(map(repr, scan.to_arrow().to_pylist()))

        questions: dict[str, Callable[[], Any]] = {
            "": lambda: contents(self.client().load_table(name)),
            " by place": by_place,
            " filtered": filtered,
            " history": history,
            " versions": versions,
            " times": times,
        }
        return {f"{name}{word}": lambda ask=ask: answer(ask) for word, ask in questions.items()}  # type: ignore[misc]


def answer(ask: Callable[[], Any]) -> Answer:
    try:
        return "seen", ask()
    except LakelogError as error:
        return "error", error.kind


CONTENTS = ("version", "row count", "schema", "rows", "properties")


def contents(table: Any) -> Any:
    data = table.scan().to_arrow()
    return (
        table.version,
        table.row_count,
        str(data.schema),
        sorted(map(repr, data.to_pylist())),
        dict(table.properties),
    )


def lies(right: Answer, given: Answer) -> bool:
    """Whether a reader got a wrong answer: an error is not one, and neither is an error about some versions."""
    if right == given or given[0] == "error":
        return False
    if isinstance(given[1], list) and given[1] and isinstance(given[1][0], tuple) and len(given[1][0]) == 2:
        if len(given[1]) != len(right[1]):
            return True
        return any(lies(one, other) for one, other in zip(right[1], given[1], strict=True))
    return True


def build() -> World:
    """Make the warehouse. Two tables of each kind, so that objects can be swapped between them."""
    url = f"memory://{uuid.uuid4().hex}"
    world = World(url, MemoryStore.named(url))
    catalog = world.client()
    catalog.create_namespace("a", {"owner": "ada"})
    for n in range(6):
        catalog.alter_namespace("a", set={f"p{n}": str(n)})
    catalog.create_namespace("a.b", {"only": "once"})
    catalog.create_namespace("a.c", {"another": "one"})
    # Lists of files go into sidecars from two files on, and vectors into objects whatever their size.
    with (
        mock.patch.object(commits, "SIDECAR_FROM_FILES", 1),
        mock.patch.object(deletion_vectors, "INLINE_MAX_BYTES", 0),
    ):
        for name in ("t", "twin"):
            table = catalog.create_table(f"a.{name}", SCHEMA, partition_by=["part"])
            offset = 0 if name == "t" else 100
            for n in range(5):
                table = table.append(rows(offset + 2 * n, offset + 2 * n + 1))
            table = table.append(pa.concat_tables([rows(offset + 20), rows(offset + 21, part="y")]))
            table = table.delete(col("part") == "y")
            # Other rows of each, so that the vectors differ.
            table = table.delete(col("id").is_in([2, 4, 103, 105]))
        catalog.create_namespace("d")
        catalog.create_table("d.gone", SCHEMA).append(rows(1))
        catalog.drop_table("d.gone")
        for name, offset in (("old", 200), ("older", 300)):
            table = catalog.create_table(f"a.{name}", SCHEMA)
            for n in range(5):
                table = table.append(rows(offset + n))
    logs = world.logs()
    both = [logs.table(logs.location(catalog.load_table(f"a.{name}").location)) for name in ("t", "twin")]
    decisions = WarehouseDecisions(world.store)
    for n in range(2):
        parts = [
            LogPart(
                tracked.location,
                tracked.log,
                tracked.current(),
                lambda view, passed, n=n: altered(f"together {n}"),  # type: ignore[misc]
            )
            for tracked in both
        ]
        commit_together(parts, decisions=decisions)
        for tracked_log in both:
            if n == 0:
                tracked_log.log.commit(tracked_log.current(), lambda view, passed: altered("alone"))
    for name in ("old", "older"):
        log = logs.table(logs.location(catalog.load_table(f"a.{name}").location)).log
        # At the head, so that nothing follows the base; and with versions after it.
        expire(log, 6 if name == "old" else 4)
    catalog.load_table("a.old").append(rows(290))
    # After its base this one has a snapshot, and a hint, with manifests of their own.
    table = catalog.load_table("a.older")
    for n in range(4):
        table = table.append(rows(390 + n))
    for name, ids in (("one", (401, 402)), ("two", (501, 502))):
        create_with_rows(catalog, f"a.{name}", rows(*ids))
    away = catalog.create_table("a.away", SCHEMA, location=f"{url}-away/place")
    away.append(rows(601))
    catalog.save_cut("monday")
    catalog.save_cut("monday", namespace="d")
    world.keep()
    return world


def create_with_rows(catalog: Catalog, name: str, data: pa.Table) -> None:
    """Create a table and its rows in one commit, as CREATE TABLE … AS SELECT does."""
    stage = engine.stage(catalog, staging.CREATE, name, SCHEMA)
    store, prefix = MemoryStore.named(catalog.warehouse), stage.location
    files = write_files(
        store,
        prefix,
        stage.write,
        data.to_reader(),
        stage.schema,
        stage.spec,
        stage.sort_order,
        properties={},
    )
    engine.commit_stage(catalog, stage, files)


def altered(value: str) -> Draft:
    return Draft(events=encode([TableAltered(set={"note": value})]))

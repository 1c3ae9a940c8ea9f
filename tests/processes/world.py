"""What the processes of a run share: the warehouse, the names in it, and how rows are distinguished."""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
from tests.processes.mutations import MUTATIONS

from lakelog.catalog import Catalog, LogOptions
from lakelog.catalog.engine import CatalogNames
from lakelog.log import placing

SCHEMA = pa.schema({"id": pa.int64(), "op": pa.string(), "owner": pa.string(), "value": pa.int64()})
"""Every row has an id of its own in its table, and says which request wrote it."""

SHARED, COMMON, PARTS = "shared", "common", "parts"
FILES_MAX = 120
"""A shared table with more files is left for a new one, so that a reader of a whole table gets through."""

IDS_PER_LIFE = 1_000_000


@dataclass(frozen=True)
class World:
    """One run. `options` lead to the store as its processes see it, faults included."""

    folder: str
    warehouse: str
    options: dict[str, str]
    seed: int
    writers: tuple[str, ...]
    mutation: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    """Credentials. Processes are forked by a server that may have begun before there were any."""
    proposals: bool = False
    """Whether processes propose their changes to each other, without losing races before."""

    @property
    def journals(self) -> Path:
        return Path(self.folder) / "journals"

    @property
    def reports(self) -> Path:
        return Path(self.folder) / "reports"

    @property
    def stop_file(self) -> Path:
        return Path(self.folder) / "stop"

    def catalog(self, writer: str = "", as_of: int | None = None) -> Catalog:
        named = {"engine": "python", "user": writer} if writer else None
        log_options = LogOptions(proposals=self.proposals)
        return Catalog(
            self.warehouse, options=self.options, writer=named, as_of=as_of, log_options=log_options
        )

    def save(self) -> Path:
        path = Path(self.folder) / "world.json"
        path.write_text(json.dumps(asdict(self)))
        return path


def load_world(path: str) -> World:
    saved = json.loads(Path(path).read_text())
    return World(**saved | {"writers": tuple(saved["writers"])})


def begin(world_file: str, name: str) -> World:
    """Begin a process of the run: what it says, and where it breaks down, goes to its own log."""
    world = load_world(world_file)
    os.environ.update(world.environment)
    log = os.open(Path(world.folder) / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable(2)
    if world.proposals:
        placing.RACES_BEFORE_PROPOSING = 0
    if world.mutation:
        MUTATIONS[world.mutation]()
    return world


def own(writer: str) -> str:
    """The namespace that only this writer changes."""
    return f"own_{writer}"


def first_id(writer: int, incarnation: int) -> int:
    """The first of the row ids that belong to one life of one writer."""
    return (1 + writer) * 10**15 + incarnation * IDS_PER_LIFE


def shared_tables(catalog: CatalogNames) -> list[str]:
    """Return the names of the shared tables that rows are appended to, the oldest first."""
    numbers = sorted(int(name[-1][1:]) for name in catalog.list_tables(SHARED) if name[-1] != PARTS)
    return [f"{SHARED}.t{number}" for number in numbers]


def rows(first: int, count: int, op: str, owner: str) -> pa.Table:
    return rows_from([(id, op, owner, 0) for id in range(first, first + count)])


def rows_from(cells: Sequence[tuple[int, str, str, int]]) -> pa.Table:
    columns = zip(*cells, strict=True) if cells else ([] for _ in SCHEMA.names)
    return pa.table(dict(zip(SCHEMA.names, map(list, columns), strict=True)), schema=SCHEMA)

"""Random lives of warehouses: all that a warehouse can hold, and what of it can be seen."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.integration.catalog.backups.test_backup_kills import dying, new
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.test_crashes import Death

from lakelog.catalog import Catalog
from lakelog.log.errors import LakelogError

NOW = dt.timedelta(0)
NAMESPACES = ("a", "b", "a.c")
STEPS = (
    ("append", 8),
    ("delete", 3),
    ("overwrite", 1),
    ("compact", 1),
    ("create", 3),
    ("clone", 7),
    ("clone of a version", 2),
    ("clone of a namespace", 1),
    ("materialize", 1),
    ("tag", 2),
    ("branch", 2),
    ("write to a branch", 2),
    ("drop", 5),
    ("undrop", 2),
    ("rename", 4),
    ("drop a namespace", 2),
    ("undrop a namespace", 1),
    ("save a cut", 5),
    ("drop a cut", 1),
    ("transaction", 2),
    ("expire", 2),
    ("vacuum", 1),
    ("purge", 1),
    ("forget", 1),
    ("import", 1),
    ("external", 1),
    ("export", 1),
    ("die", 3),
)


@dataclass
class Life:
    """A warehouse that grows older by random steps. Some are refused, as they would be to any user."""

    chance: random.Random
    folder: Path
    catalog: Catalog = field(default_factory=lambda: Catalog(new()))
    made: int = 0
    steps: list[str] = field(default_factory=list)

    def some(self) -> Any:
        self.made += 3
        return rows(*range(self.made - 3, self.made))

    def live(self, steps: int) -> None:
        for name in NAMESPACES:
            with suppress(LakelogError):
                self.catalog.create_namespace(name)
                self.do("create", self.catalog)
        names, weights = zip(*STEPS, strict=True)
        for step in self.chance.choices(names, weights, k=steps):
            self.steps.append(step)
            with suppress(LakelogError, IndexError):
                self.do(step, self.catalog)

    def tables(self) -> list[str]:
        return [".".join(table) for table in all_tables(self.catalog)]

    def namespaces(self) -> list[str]:
        return [".".join(namespace) for namespace in all_namespaces(self.catalog) if namespace]

    def name(self) -> str:
        above = self.chance.choice(["", *(f"{namespace}." for namespace in self.namespaces())])
        return f"{above}t{self.chance.randrange(1000)}"

    def do(self, step: str, catalog: Catalog) -> None:
        chance = self.chance
        if step in ("create", "import", "external"):
            if step == "import":
                source = self.folder / uuid.uuid4().hex
                source.mkdir()
                pq.write_table(self.some(), source / "a.parquet")
                copy = chance.random() < 0.5
                catalog.import_table(str(source), self.name(), format="parquet", copy=copy)
                return
            location = f"{new()}/t" if step == "external" else None
            catalog.create_table(self.name(), SCHEMA, location=location).append(self.some())
        elif step == "undrop":
            chosen_entry = chance.choice([entry for entry in catalog.dropped((), recursive=True)])
            catalog.undrop_table(chosen_entry.name, id=chosen_entry.id, to=self.name())
        elif step in ("save a cut", "drop a cut"):
            namespace = chance.choice(["", "", *self.namespaces()])
            if step == "save a cut":
                catalog.save_cut(f"cut{chance.randrange(1000)}", namespace=namespace or ())
            else:
                catalog.drop_cut(
                    chance.choice(list(catalog.cuts(namespace or ()))), namespace=namespace or ()
                )
        elif step == "drop a namespace":
            catalog.drop_namespace(chance.choice(self.namespaces()), cascade=True)
        elif step == "undrop a namespace":
            catalog.undrop_namespace(chance.choice(["a", "b", "a.c"]))
        elif step == "clone of a namespace":
            catalog.clone_namespace(chance.choice(self.namespaces()), f"n{chance.randrange(1000)}")
        elif step == "vacuum":
            catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False, trust_clock=True)
        elif step == "transaction":
            with catalog.transaction() as transaction:
                for table in chance.choices(self.tables(), k=3):
                    transaction.load_table(table).append(self.some())
        elif step == "die":
            other_catalog = dying(catalog.warehouse, new(), chance.randrange(7), chance.random() < 0.5)
            with suppress(Death):
                kinds = ["append", "create", "clone", "clone", "transaction", "transaction", "drop", "rename"]
                self.do(chance.choice(kinds), other_catalog)
        else:
            self._to_a_table(step, catalog, chance.choice(self.tables()))

    def _to_a_table(self, step: str, catalog: Catalog, name: str) -> None:
        chance, table = self.chance, catalog.load_table(name)
        match step:
            case "append":
                table.append(self.some())
            case "delete":
                table.delete(f"id < {chance.randrange(self.made + 1)}")
            case "overwrite":
                table.overwrite(self.some())
            case "compact":
                table.compact()
            case "clone":
                catalog.clone(name, self.name())
            case "clone of a version":
                catalog.clone(name, self.name(), version=chance.randint(1, table.version))
            case "materialize":
                table.materialize()
            case "tag":
                table.create_tag(f"tag{chance.randrange(100)}")
            case "branch":
                table.create_branch(f"branch{chance.randrange(100)}")
            case "write to a branch":
                ref = chance.choice([ref for ref in table.refs if ref.startswith("branch")])
                catalog.load_table(name, ref=ref).append(self.some())
            case "drop":
                catalog.drop_table(name)
            case "purge":
                catalog.drop_table(name, purge=True)
            case "rename":
                catalog.rename_table(name, self.name())
            case "expire":
                catalog.expire(name, retain_last=chance.randint(1, 3), dry_run=False)
            case "forget":
                catalog.forget(name, f"id = {chance.randrange(self.made + 1)}", dry_run=False)
            case "export":
                table.export_iceberg()


def all_namespaces(catalog: Catalog, start: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    starts = [start]
    for namespace in catalog.list_namespaces(start):
        starts += all_namespaces(catalog, namespace)
    return starts


def all_tables(catalog: Catalog) -> list[tuple[str, ...]]:
    return [table for namespace in all_namespaces(catalog) for table in catalog.list_tables(namespace)]


def ids(catalog: Catalog, name: tuple[str, ...], **which: Any) -> list[int] | str:
    """Return the ids of rows, or the kind of the error that there is instead."""
    try:
        return sorted(catalog.load_table(name, **which).to_arrow().column("id").to_pylist())
    except LakelogError as error:
        return type(error).__name__


@dataclass
class Seen:
    """What can be seen of a warehouse: rows by name and version, by name and ref, and by cut and name."""

    names: dict[tuple[str, ...], list[int] | str]
    versions: dict[tuple[tuple[str, ...], int], list[int] | str]
    refs: dict[tuple[tuple[str, ...], str], list[int] | str]
    cuts: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int] | str]
    dropped: set[tuple[str, ...]]


def seen(url: str) -> Seen:
    catalog = Catalog(url)
    found = Seen({}, {}, {}, {}, {entry.name for entry in catalog.dropped((), recursive=True)})
    for name in all_tables(catalog):
        found.names[name] = ids(catalog, name)
        table = catalog.load_table(name)
        for version in range(1, table.version + 1):
            found.versions[name, version] = ids(catalog, name, version=version)
        for ref in table.refs:
            found.refs[name, ref] = ids(catalog, name, ref=ref)
    for namespace in all_namespaces(catalog):
        for cut in catalog.cuts(namespace):
            past_catalog = Catalog(url, as_of=cut, as_of_namespace=namespace)
            for name in all_tables(past_catalog):
                found.cuts[(*namespace, cut), name] = ids(past_catalog, name)
    return found

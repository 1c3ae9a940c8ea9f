"""A reader that holds what it sees against the answers that writers had before it began to look."""

from __future__ import annotations

import random
import time
from collections import Counter

from tests.processes import moves
from tests.processes.journal import DONE, FAILED, Asked, Journal, Journals
from tests.processes.world import PARTS, SHARED, World, begin, shared_tables

from lakelog.catalog import Catalog
from lakelog.log.errors import ConflictError, InvalidInput, NotFound, StorageError

PAUSE_S = 0.05


def run(world_file: str, name: str) -> None:
    """Look until the run's stop file is there. Every violation goes to the report at once."""
    world = begin(world_file, name)
    Reader(world, name).look()


class Reader:
    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed} {name}")
        self._report = Journal(world.reports / f"{name}.jsonl")
        self._journals = Journals(world.journals)
        self._warm = world.catalog()
        self._seen: dict[str, set[int]] = {}
        self._versions: dict[str, int] = {}
        self._there: dict[str, set[int]] = {}  # rows that were acknowledged, by table
        self._not_there: set[int] = set()
        self._parts: dict[str, list[Asked]] = {}
        self._moments: dict[str, list[int]] = {kind: [] for kind in moves.TABLES}
        self.checks: Counter[str] = Counter()

    def look(self) -> None:
        checks = [self._shared_table, self._parts_of_writers, self._moves, self._moves]
        while not self._world.stop_file.exists():
            catalog = self._warm if self._rng.random() < 0.7 else self._world.catalog()
            check = self._rng.choice(checks)
            try:
                check(catalog)
                self.checks[check.__name__.strip("_")] += 1
            except ConflictError:
                self.checks["looks at more than one moment, to be repeated"] += 1
            except (NotFound, InvalidInput) as error:
                if "expired" not in str(error):
                    raise
                self.checks["looks at what expired meanwhile"] += 1
            except StorageError:
                self.checks["looks that the store did not let through"] += 1
            time.sleep(PAUSE_S)
        self._report.write({"checks": dict(self.checks)})

    def _violation(self, what: str) -> None:
        print(what, flush=True)
        self._report.write({"violation": what})

    def _read_journals(self) -> None:
        for asked_request in self._journals.read_on():
            request = asked_request.request
            if request["op"] == "append":
                ids = range(request["first"], request["first"] + request["count"])
                if asked_request.outcome == DONE and not asked_request.open:
                    self._there.setdefault(request["table"], set()).update(ids)
                elif asked_request.outcome == FAILED and not asked_request.open:
                    self._not_there.update(ids)
            elif request["op"] == "publish" and asked_request.outcome == DONE:
                table, first, count = request["shared"]
                self._there.setdefault(table, set()).update(range(first, first + count))
            elif request["op"] == "overwrite":
                of_owner = self._parts.setdefault(request["owner"], [])
                if asked_request not in of_owner[-50:]:
                    of_owner.append(asked_request)

    def _shared_table(self, catalog: Catalog) -> None:
        self._read_journals()
        name = self._rng.choice(shared_tables(catalog)[-3:])
        other_numbers = set(self._there.get(name, ()))
        not_there = set(self._not_there)
        table = catalog.load_table(name)
        found_rows = table.scan(["id"]).to_arrow()["id"].to_pylist()
        ids, where = set(found_rows), f"{name} at version {table.version}"
        if len(ids) < len(found_rows):
            twice = [id for id, count in Counter(found_rows).items() if count > 1]
            self._violation(f"{where} shows rows twice: {twice[:5]}")
        if missing := other_numbers - ids:
            self._violation(f"{where} does not show acknowledged rows: {sorted(missing)[:5]}")
        if lost_ids := self._seen.get(name, set()) - ids:
            self._violation(
                f"{where} does not show rows any more that it showed before: {sorted(lost_ids)[:5]}"
            )
        if wrong := ids & not_there:
            self._violation(f"{where} shows rows whose request failed: {sorted(wrong)[:5]}")
        if table.version < self._versions.get(name, 0):
            self._violation(f"{where} went back from version {self._versions[name]}")
        self._seen[name] = ids
        self._versions[name] = table.version

    def _parts_of_writers(self, catalog: Catalog) -> None:
        """Each writer's partition holds the rows of one overwrite, and of none before the last acknowledged one."""
        self._read_journals()
        floor = {
            owner: max((at for at, a in enumerate(part) if a.outcome == DONE and not a.open), default=-1)
            for owner, part in self._parts.items()
        }
        table = catalog.load_table(f"{SHARED}.{PARTS}")
        found_rows = table.to_arrow().to_pylist()
        self._read_journals()
        where = f"{table.name} at version {table.version}"
        for owner in {row["owner"] for row in found_rows} | set(floor):
            keys = Counter(row["op"] for row in found_rows if row["owner"] == owner)
            known = {asked_request.key: at for at, asked_request in enumerate(self._parts.get(owner, ()))}
            if not keys and floor.get(owner, -1) >= 0:
                self._violation(f"{where} shows nothing of {owner}")
            elif len(keys) > 1:
                self._violation(f"{where} shows {owner}'s partition half overwritten: {keys}")
            elif keys:
                [(key, count)] = keys.items()
                request = self._parts[owner][known[key]]
                if count != request.request["count"]:
                    self._violation(f"{where} shows {count} rows of {key}, not {request.request['count']}")
                # What was retried may rightly come after what was asked for later.
                if known[key] < floor.get(owner, -1) and not request.retries:
                    self._violation(f"{where} shows {key}, before {self._parts[owner][floor[owner]].key}")

    def _moves(self, catalog: Catalog) -> None:
        """At one moment of several tables, what transactions keep true is true."""
        kind = self._rng.choice(list(moves.TABLES))
        past = self._moments[kind] and self._rng.random() < 0.3
        at_us = self._rng.choice(self._moments[kind]) if past else None
        cut = catalog.begin() if at_us is None else self._world.catalog(as_of=at_us)
        found = dict(moves.found_in(cut, kind))
        if label := moves.wrong_in(kind, found):
            self._violation(f"{label}; seen {'now' if at_us is None else f'as of {at_us}'}")
        if at_us is None:
            self._moments[kind].append(
                max(catalog.load_table(table).table_head.time_us for table, _ in found)
            )

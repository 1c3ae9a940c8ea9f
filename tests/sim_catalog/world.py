"""A simulated warehouse: the truth, its clients, their requests, and the answers."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from tests.everywhere import replaced
from tests.sim.scheduler import Crash, Scheduler
from tests.sim.stores import CLOCKS, TrueStore, Weather
from tests.sim.world import START_US, STEPS_A_SECOND, YEAR_US, new_weather
from tests.sim_catalog.stores import CatalogStore, copied_files, moved, rows_written_in, written_files
from tests.sim_catalog.truth import Truth

from lakelog.catalog import Catalog
from lakelog.catalog.core import parquet
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.parquet import reading
from lakelog.catalog.core.writes import identity_rewrite, proposed_rows
from lakelog.catalog.transaction import Transaction
from lakelog.log import (
    CommitUnknown,
    ConflictError,
    LakelogError,
    LogOptions,
    NotFound,
    ObjectStore,
    StorageError,
)

WAREHOUSE = "memory://simulation"
ASKS_MAX = 3
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"

Deed = Callable[[Catalog], None]


@dataclass
class Request:
    """Something that is to happen once, in all of its logs or in none, under one commit id."""

    title: str
    commit_id: str
    acknowledged: bool = False
    refused: bool = False  # certainly not applied: its only ask ended in a definite error


@dataclass
class CatalogWorld:
    rng: random.Random
    scheduler: Scheduler
    store: TrueStore
    weather: Weather
    snapshots_inline: bool
    patience_s: float
    put_tries: int
    isolation: str
    truth: Truth
    now_us: int = START_US
    events: int = 0
    founded_us: int = 0
    expires: bool = False  # old versions and files may be gone
    requests: list[Request] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    marks: set[tuple[str, int]] = field(default_factory=set)
    """What was acknowledged as put on main or on a branch, by its id, and is never taken away."""
    about: frozenset[str] = frozenset()
    """Which ways `chosen` leaves open, for a run that is to show soon what few show; none stands for all."""
    proposals: bool = False
    """Whether clients that lose races propose their changes to others, which combine them."""
    checkpoints: dict[str, int] = field(default_factory=dict)
    """Which batch each stream writes next, as far as it knows."""

    def fail(self, text: str) -> None:
        self.failures.append(f"{self.scheduler.running.name}: {text}")

    def chosen(self, ways: Mapping[str, float]) -> str:
        """Return one of some ways to go on, by their weights; if the run is about some of them, one of those, each
        as often as the others."""
        remaining_numbers = {way: 1.0 for way in ways if way in self.about} or ways
        at = self.rng.random() * sum(remaining_numbers.values())
        for way, weight in remaining_numbers.items():
            at -= weight
            if at < 0:
                return way
        return way

    def among(self, ways: Sequence[str]) -> str:
        """As `chosen`, but a way that is there twice is twice as likely."""
        return self.rng.choice([way for way in ways if way in self.about] or ways)

    def count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1

    def tick(self) -> int:
        """Return a number that is larger at every call: when something was asked or answered."""
        self.events += 1
        return self.events

    def new_id(self) -> str:
        bits = self.rng.getrandbits(130)
        return "".join(_BASE32[bits >> shift & 31] for shift in range(0, 130, 5))

    # Clients

    def new_catalog(self, client: str, **arguments: Any) -> Catalog:
        """Return the warehouse as a new process sees it: its own memory, its own clock, its own way to the store."""
        skew_us = self.rng.choice((0, 0, 0, -3_000_000, 5_000_000, 50_000_000, -YEAR_US, 10 * YEAR_US))
        self.store.faults[CLOCKS] += skew_us != 0
        return Catalog(
            WAREHOUSE,
            writer={"by": client},
            log_options=LogOptions(
                clock_us=lambda: self.now_us + skew_us,
                new_id=self.new_id,
                sleep_s=self._sleep,
                random=self.rng.random,
                wait=self._wait,
                monotonic_s=lambda: self.scheduler.steps / STEPS_A_SECOND,
                in_thread=self.scheduler.spawn,
                proposals=self.proposals,
                in_background=self._in_background,
                in_parallel=self._in_parallel,
                snapshot_every_versions=3,
                snapshot_size_bytes=6000,
                put_tries=self.put_tries,
                patience_s=self.patience_s,
                patience_each_s=self.patience_s / 8,
                transaction_tries=8,
            ),
            **arguments,
        )

    def calm(self) -> Catalog:
        """Return the warehouse over the truth itself, for before and after the run."""
        with patch.object(places, "open_store", lambda url, options: self.store):
            catalog = Catalog(WAREHOUSE, writer={"by": "observer"}, log_options=self._calm_options())
        return catalog

    def _calm_options(self) -> LogOptions:
        return LogOptions(
            clock_us=lambda: self.now_us,
            new_id=self.new_id,
            sleep_s=lambda seconds: None,
            random=self.rng.random,
            in_background=lambda name, work: work(),
            in_parallel=_one_after_the_other,
            snapshot_every_versions=3,
        )

    def open_store(self, url: str, options: Any) -> ObjectStore:
        assert url == WAREHOUSE
        return CatalogStore(self.store, self.scheduler, self.weather, self.rng)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Inside, each client that opens the warehouse gets a way to it of its own."""
        with (
            patch.object(places, "open_store", self.open_store),
            replaced(parquet, "copied_files", copied_files),
            replaced(parquet, "written_files", written_files),
            patch.object(proposed_rows, "rows_written_in", rows_written_in),
            patch.object(reading, "in_order", one_by_one),
            patch.object(identity_rewrite, "moved", moved),
        ):
            yield

    def _sleep(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)
        self.scheduler.step()

    def _wait(self, event: threading.Event, timeout_s: float | None) -> None:
        remaining_number = None if timeout_s is None else self.rng.choice((1, 3, 10))
        while not event.is_set() and remaining_number != 0:
            self.scheduler.step()
            remaining_number = None if remaining_number is None else remaining_number - 1

    def _in_parallel(self, works: Sequence[Callable[[], None]]) -> None:
        """One by one in any order: whatever really happens side by side is like one of these."""
        for work in self.rng.sample(works, len(works)):
            work()

    def _in_background(self, name: str, work: Callable[[], None]) -> None:
        def quietly() -> None:
            try:
                work()
            except (StorageError, NotFound):
                self.count("snapshots that failed")

        if self.snapshots_inline:
            quietly()
        else:
            self.scheduler.spawn(f"snapshot by {self.scheduler.running.name}", quietly)

    def spawn(self, name: str, deeds: int, deed: Deed) -> None:
        """Let a client do something again and again; one that dies is replaced by another."""

        def work() -> None:
            catalog = self.new_catalog(name)
            for _ in range(deeds):
                if self.rng.random() < 0.1:
                    catalog = self.new_catalog(name)
                try:
                    deed(catalog)
                except Crash:
                    self.count("crashes")
                    catalog = self.new_catalog(name)
                except (StorageError, CommitUnknown, ConflictError, NotFound) as error:
                    self.count(f"given up: {type(error).__name__}")

        self.scheduler.spawn(name, work)

    # Transactions

    def transact(
        self, catalog: Catalog, title: str, isolation: str, body: Callable[[Transaction], None]
    ) -> Request | None:
        """Do `body` in a transaction; None if that came to nothing before its commit. Raises what `body` does."""
        tx = catalog.begin(isolation)
        try:
            body(tx)
        except LakelogError:
            tx.rollback()
            raise
        request = Request(title, tx.commit_id)
        self.requests.append(request)
        self.ask(request, tx.commit)
        return request

    def ask(self, request: Request, commit: Callable[[], object]) -> None:
        """Ask for a request until it is known what became of it, or patience ends."""
        for asked_number in range(ASKS_MAX):
            already = asked_number > 0 and self.truth.is_applied(request.commit_id)
            try:
                commit()
            except CommitUnknown:
                self.count("unknown")
                if self.rng.random() < 0.3:
                    return
                continue
            except LakelogError as error:
                self.count(f"refused: {type(error).__name__}")
                request.refused = asked_number == 0
                if already and not isinstance(error, StorageError):
                    self.fail(f"{request.title} had happened, but a retry said: {error}")
                return
            request.acknowledged = True
            self.count(f"done: {request.title}")
            return


def one_by_one(
    sources: Sequence[Any],
    read: Callable[[Any], Iterator[Any]],
    at_once: int,
    *,
    sizes: Sequence[int | None] = (),
) -> Iterator[Any]:
    """Read as `read_ahead.in_order` does, without threads that the scheduler does not know."""
    for source in sources:
        yield from read(source)


def new_catalog_world(seed: int, about: frozenset[str] = frozenset()) -> CatalogWorld:
    """Return the world of a seed. One that is about something has few failures in it, which would hide that."""
    rng = random.Random(f"catalog {seed}")
    scheduler = Scheduler(rng, steps_max=60_000)
    world: CatalogWorld
    store = TrueStore(lambda: world.now_us)
    store.url = WAREHOUSE
    weather = new_weather(rng)
    if about:
        weather = replace(weather, fault=0.0, crash=0.0)
    world = CatalogWorld(
        rng,
        scheduler,
        store,
        replace(weather, crash=weather.crash / 2),  # requests of the catalog are many times those of a log
        snapshots_inline=rng.random() < 0.5,
        patience_s=rng.choice((0.0, 0.1, 2.0)),
        put_tries=rng.choice((1, 2, 5)),
        isolation=rng.choice(("snapshot", "serializable")),
        truth=Truth(store),
        about=about,
    )

    def pass_time() -> None:
        world.now_us += 1 + int(rng.random() * 100_000)

    scheduler.on_step = pass_time
    return world


def _one_after_the_other(works: Sequence[Callable[[], None]]) -> None:
    for work in works:
        work()

"""Real threads, of which a single one runs at a time. At each store call, a seed decides which thread goes on.

The code under test is unchanged and synchronous. The actor that holds the baton runs until its next step; so a run is a
function of its seed, and any interleaving of store calls can happen.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from functools import partial


class Crash(BaseException):
    """The process of an actor dies here. No `except Exception` of the code under test can catch it."""


class Livelock(Exception):
    """The run took more steps than any healthy one."""


class Actor:
    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name = name
        self.work = work
        self.gate = threading.Lock()
        self.gate.acquire()
        self.asleep_until = 0
        self.ended = False


class Scheduler:
    """Runs actors to their ends. `step` is for the running actor only, and is where others may run."""

    def __init__(self, rng: random.Random, steps_max: int) -> None:
        self.rng = rng
        self.steps = 0
        self.steps_max = steps_max
        self.failures: list[str] = []
        self.late: list[tuple[int, Callable[[], None]]] = []
        self.on_step: Callable[[], None] = lambda: None
        self._actors: list[Actor] = []
        self._running: Actor | None = None
        self._all_ended = threading.Lock()
        self._all_ended.acquire()

    @property
    def running(self) -> Actor:
        assert self._running is not None
        return self._running

    def spawn(self, name: str, work: Callable[[], None]) -> None:
        actor = Actor(name, work)
        self._actors.append(actor)
        threading.Thread(target=self._run, args=(actor,), name=name, daemon=True).start()

    def run(self) -> None:
        """Let all actors run to their ends, then let all that was still under way take effect."""
        if not self._actors:
            return
        self._hand_over(self._choose())
        self._all_ended.acquire()
        for _, effect in self.late:
            effect()
        self.late.clear()

    def step(self) -> None:
        """Let time pass: late effects land, and maybe another actor runs first."""
        self.steps += 1
        if self.steps > self.steps_max:
            raise Livelock(f"more than {self.steps_max} steps")
        self.on_step()
        self._land()
        me = self.running
        chosen_actor = self._choose()
        if chosen_actor is not me:
            self._hand_over(chosen_actor)
            me.gate.acquire()

    def stall(self, steps: int) -> None:
        """Put the running actor to sleep while others go on."""
        self.running.asleep_until = self.steps + steps
        self.step()

    def in_parallel(self, works: Sequence[Callable[[], None]]) -> None:
        """Run all of them side by side, and return when all have ended."""
        failures: list[BaseException] = []
        left = len(works) - 1

        def run(work: Callable[[], None]) -> None:
            nonlocal left
            try:
                work()
            except BaseException as error:
                failures.append(error)
            left -= 1

        for work in works[1:]:
            self.spawn("in parallel", partial(run, work))
        try:
            works[0]()
        finally:
            while left:
                self.stall(1)
        if failures:
            raise failures[0]

    def land_later(self, effect: Callable[[], None]) -> None:
        """Have a request take effect at some later step, though its answer was given up long before."""
        self.late.append((self.steps + self.rng.choice((1, 3, 10, 60)), effect))

    def _land(self) -> None:
        if self.late:
            due = [effect for at, effect in self.late if at <= self.steps]
            self.late = [(at, effect) for at, effect in self.late if at > self.steps]
            for effect in due:
                effect()

    def _choose(self) -> Actor:
        alive = [actor for actor in self._actors if not actor.ended]
        awake = [actor for actor in alive if actor.asleep_until <= self.steps]
        if awake:
            return awake[int(self.rng.random() * len(awake))]
        first = min(alive, key=lambda actor: actor.asleep_until)
        self.steps = max(self.steps, first.asleep_until)
        return first

    def _hand_over(self, actor: Actor) -> None:
        self._running = actor
        actor.gate.release()

    def _run(self, actor: Actor) -> None:
        actor.gate.acquire()
        try:
            actor.work()
        except Crash:
            pass
        except BaseException as error:
            import traceback

            where = "".join(traceback.format_tb(error.__traceback__)[-6:])
            self.failures.append(f"{actor.name}: {type(error).__name__}: {error}\n{where}")
        actor.ended = True
        if all(other_actor.ended for other_actor in self._actors):
            self._all_ended.release()
        else:
            self._hand_over(self._choose())

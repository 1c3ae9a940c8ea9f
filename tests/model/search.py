"""Breadth-first search over all that a scenario's actors, its store and its faults can do.

A world is a tuple of small numbers: the store's contents, what was reported, the puts under way, the faults that are
left, and each actor's state. Everything behind a number is interned. One step is one request's effect with its answer;
what an actor does between two requests is no step. An actor that stops for ever needs no step either: the others' steps
are explored from every world, whether it goes on or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tests.model.machine import Machine, Program, Report
from tests.model.rules import Rule, on

Why = tuple[Any, ...]
World = tuple[int, ...]
ABSENT, OK, TAKEN, ERROR = range(4)
STORE, REPORTED, FLIGHT, FAULTS, FIRST_ACTOR = range(5)


class Actor(NamedTuple):
    name: str
    program: Callable[[], Program]
    after: str = ""  # starts when that one has ended or crashed; and that one may crash
    unless: str = ""  # does not start once that request was reported as failed: that is never retried
    like: str = ""  # does the same as that one, so that it need not start before it


class Scenario(NamedTuple):
    name: str
    actors: tuple[Actor, ...]
    setup: tuple[Callable[[], Program], ...]  # run one after another, undisturbed
    faults: int = 0
    kinds: frozenset[str] = frozenset({"lost", "echo", "late", "double"})
    undisturbed: tuple[tuple[str, Callable[[], Program]], ...] = ()  # requests that can always be retried
    may: tuple[str, ...] | None = None  # rights of the undisturbed writers, as folders
    honest: tuple[Any, ...] = ()  # the intents of each transaction that others try to decide
    overlapping: bool = (
        False  # a request is retried while it is under way: the failure of one attempt binds only itself
    )


class Violation(NamedTuple):
    sentence: str
    detail: str


class Result(NamedTuple):
    scenario: str
    worlds: int
    steps: int
    depth: int
    seconds: float
    finished: bool
    violation: Violation | None
    trace: tuple[str, ...]


class Store:
    """All contents that the store ever had, each a number; keys and values are numbers, too."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self._key_ids: dict[Any, int] = {}
        self._value_ids: dict[Any, int] = {}
        for value in (None, "ok", "taken", "error"):
            self.value_id(value)
        self.contents: list[dict[int, int]] = [{}]
        self._content_ids: dict[Any, int] = {(): 0}
        self._moves: dict[tuple[int, int, int], int] = {}

    def key_id(self, key: Any) -> int:
        if key not in self._key_ids:
            self._key_ids[key] = len(self.keys)
            self.keys.append(key)
        return self._key_ids[key]

    def value_id(self, value: Any) -> int:
        if value not in self._value_ids:
            self._value_ids[value] = len(self.values)
            self.values.append(value)
        return self._value_ids[value]

    def value(self, number: int) -> Any:
        return self.values[number]

    def get(self, content: int, key: Any) -> Any:
        number = self._key_ids.get(key)
        return None if number is None else self.values[self.contents[content].get(number, ABSENT)]

    def changed(self, content: int, key: int, value: int) -> int:
        """The content with the key put (or deleted: ABSENT). The first value of a log's key is kept for the checks."""
        move = (content, key, value)
        if move not in self._moves:
            new = dict(self.contents[content])
            if value == ABSENT:
                new.pop(key, None)
            else:
                new[key] = value
                name = self.keys[key]
                if name[0] in ("log", "txn"):
                    new.setdefault(self.key_id(("first", name)), value)
            frozen = tuple(sorted(new.items()))
            number = self._content_ids.get(frozen)
            if number is None:
                number = self._content_ids[frozen] = len(self.contents)
                self.contents.append(new)
            self._moves[move] = number
        return self._moves[move]

    def listed(self, content: int, kind: str, place: str) -> tuple[Any, ...]:
        names = (self.keys[key] for key in self.contents[content])
        return tuple(sorted((name for name in names if name[0] == kind and name[1] == place), key=repr))


class Search:
    """One scenario under the rules that are on."""

    def __init__(self, scenario: Scenario, checks: Callable[[Search], Any]) -> None:
        self.scenario = scenario
        self.store = Store()
        self.machine = Machine(self.store.value)
        self.reported: list[frozenset[Any]] = [frozenset()]
        self._reported_ids: dict[frozenset[Any], int] = {frozenset(): 0}
        self.flights: list[tuple[tuple[str, int, int], ...]] = [()]
        self._flight_ids: dict[Any, int] = {(): 0}
        self._requests: dict[int, tuple[Any, ...]] = {}
        self.checks = checks(self)
        self.violation: Violation | None = None
        names = [actor.name for actor in scenario.actors]
        content = 0
        for make in scenario.setup:
            content = self.alone(make, content)[0]
        self._starts = [self.machine.start(actor.program) for actor in scenario.actors]
        self._after = [names.index(actor.after) if actor.after else -1 for actor in scenario.actors]
        self._like = [names.index(actor.like) if actor.like else -1 for actor in scenario.actors]
        self._mortal = [any(actor.after == name for actor in scenario.actors) for name in names]
        self.start: World = (content, 0, 0, scenario.faults, *self._starts)

    # ---- running

    def run(self, limit: int = 10_000_000, seconds: float = 1e9) -> Result:
        began = time.perf_counter()
        seen: dict[World, int] = {self.start: 0}
        order: list[World] = [self.start]
        parents = [0]
        depths = [0]
        steps = 0
        done_count = 0
        self._inspect(self.start)
        while done_count < len(order) and self.violation is None:
            if done_count > limit or (done_count % 1024 == 0 and time.perf_counter() - began > seconds):
                break
            world = order[done_count]
            for child, why in self._successors(world):
                steps += 1
                if self.violation is None and child not in seen:
                    self._inspect(child)
                if self.violation is not None:
                    parents.append(done_count)
                    trace = self._trace(order, parents, done_count, why)
                    return self._result(order, steps, depths[done_count] + 1, began, False, trace)
                if child not in seen:
                    seen[child] = len(order)
                    order.append(child)
                    parents.append(done_count)
                    depths.append(depths[done_count] + 1)
            done_count += 1
        return self._result(order, steps, depths[-1], began, done_count == len(order), ())

    def alone(self, make: Callable[[], Program], content: int) -> tuple[int, tuple[Report, ...] | None]:
        """Run a program undisturbed: the content after it and its reports, or None if it never ends."""
        state = self.machine.start(make)
        reports: tuple[Report, ...] = ()
        for _ in range(400):
            if state == 0:
                return content, reports
            answers = list(self._answers(state, content))
            if not answers:
                return content, None
            content, answer = answers[0]
            state, more = self._resume(state, answer)
            reports += more
        return content, None

    def _result(
        self, order: list[World], steps: int, depth: int, began: float, finished: bool, trace: Iterable[str]
    ) -> Result:
        seconds = time.perf_counter() - began
        name = self.scenario.name
        return Result(name, len(order), steps, depth, seconds, finished, self.violation, tuple(trace))

    def _inspect(self, world: World) -> None:
        if self.violation is None:
            self.violation = self.checks.state(world[STORE], world[REPORTED])

    # ---- steps

    def _successors(self, world: World) -> Iterator[tuple[World, Why]]:
        """All steps. A violation that a step makes is noted before the step is yielded."""
        content, reported_number, flight, faults = world[:FIRST_ACTOR]
        for place, (kind, key, value) in enumerate(self.flights[flight]):
            remaining_flight = self.flights[flight][:place] + self.flights[flight][place + 1 :]
            landed_content = content
            if kind == "put" or key not in self.store.contents[content] or not on(Rule.CONDITIONAL_PUT):
                landed_content = self._land(content, key, value)
            child = (
                landed_content,
                reported_number,
                self._flying(remaining_flight, landed_content),
                *world[FAULTS:],
            )
            yield child, ("late", kind, key, value)
        for n, start in enumerate(self._starts):
            state = world[FIRST_ACTOR + n]
            if state == 0:
                continue
            if state == start:
                if self._after[n] >= 0 and world[FIRST_ACTOR + self._after[n]] != 0:
                    continue
                if ("failed", self.scenario.actors[n].unless) in self.reported[reported_number]:
                    continue
                if self._like[n] >= 0 and world[FIRST_ACTOR + self._like[n]] == self._starts[self._like[n]]:
                    continue
            elif self._mortal[n]:
                child = (*world[: FIRST_ACTOR + n], 0, *world[FIRST_ACTOR + n + 1 :])
                yield child, ("crash", n)
            for new_content, answer in self._answers(state, content):
                yield self._step(world, n, state, new_content, answer, flight, faults, "")
            if faults:
                for new_content, answer, late, word in self._faults(state, content):
                    flying_flight = flight
                    if late is not None:
                        flying_flight = self._flying((*self.flights[flight], late), new_content)
                    yield self._step(world, n, state, new_content, answer, flying_flight, faults - 1, word)

    def _step(
        self, world: World, n: int, state: int, content: int, answer: int, flight: int, faults: int, word: str
    ) -> tuple[World, Why]:
        new, reports = self._resume(state, answer)
        reported_id = world[REPORTED]
        for report in reports:
            if report.what in ("ok", "failed"):
                key = self.reported[reported_id] | {(report.what, *report.data)}
                if key not in self._reported_ids:
                    self._reported_ids[key] = len(self.reported)
                    self.reported.append(key)
                reported_id = self._reported_ids[key]
            elif self.violation is None:
                self.violation = self.checks.report(report, content)
        if flight and content != world[STORE]:
            flight = self._flying(self.flights[flight], content)
        place = FIRST_ACTOR + n
        child = (content, reported_id, flight, faults, *world[FIRST_ACTOR:place], new, *world[place + 1 :])
        return child, ("step", n, state, answer, word, reports)

    def _request(self, state: int) -> tuple[Any, ...]:
        """The request of an actor's state, with numbers for keys and values."""
        if state not in self._requests:
            op, *about = self.machine.requests[state]
            if op in ("get", "delete"):
                compiled_ops: tuple[Any, ...] = (op, self.store.key_id(about[0]))
            elif op in ("create", "put"):
                compiled_ops = (op, self.store.key_id(about[0]), self.store.value_id(about[1]))
            else:
                compiled_ops = (op, *about)
            self._requests[state] = compiled_ops
        return self._requests[state]

    def _answers(self, state: int, content: int) -> Iterable[tuple[int, int]]:
        """What may happen without a fault: the content afterwards and the answer."""
        request = self._request(state)
        op = request[0]
        own_content = self.store.contents[content]
        if op == "get":
            return ((content, own_content.get(request[1], ABSENT)),)
        if op == "create":
            if request[1] in own_content and on(Rule.CONDITIONAL_PUT):
                return ((content, TAKEN),)
            return ((self._land(content, request[1], request[2]), OK),)
        if op == "put":
            return ((self._land(content, request[1], request[2]), OK),)
        if op == "delete":
            return ((self.store.changed(content, request[1], ABSENT), OK),)
        if op == "list":
            return ((content, self.store.value_id(self.store.listed(content, request[1], request[2]))),)
        if op == "mark":
            return ((content, self.store.value_id(self.checks.heads(content))),)
        if op == "choose":
            return tuple((content, self.store.value_id(n)) for n in range(request[1]))
        assert op == "never", op
        return ()

    def _faults(self, state: int, content: int) -> Iterable[tuple[int, int, Any, str]]:
        """What may go wrong: the content afterwards, the answer, a put that is under way from now on, and a word."""
        request = self._request(state)
        op, kinds = request[0], self.scenario.kinds
        if op == "create":
            late = ("create", request[1], request[2])
            if request[1] in self.store.contents[content] and on(Rule.CONDITIONAL_PUT):
                return
            number_after = self._land(content, request[1], request[2])
            if "lost" in kinds:
                yield number_after, ERROR, None, "applied, but the answer is lost"
            if "echo" in kinds:
                yield number_after, TAKEN, None, "applied, but a resent request is answered"
            if "late" in kinds:
                yield content, ERROR, late, "not applied yet, and the connection breaks"
            if "double" in kinds and not on(Rule.TOMBSTONES):
                yield number_after, OK, late, "applied, and a double is under way"
        elif op in ("put", "delete"):
            value = request[2] if op == "put" else ABSENT
            late = ("put", request[1], value)
            if "late" in kinds:
                yield content, ERROR, late, "not applied yet, and the connection breaks"
            if "double" in kinds:
                number_after = self._land(content, request[1], value)
                yield number_after, OK, late, "applied, and a double is under way"

    def _resume(self, state: int, answer: int) -> tuple[int, tuple[Report, ...]]:
        return self.machine.resume(state, answer)

    def _land(self, content: int, key: int, value: int) -> int:
        number_after = self.store.changed(content, key, value)
        if self.violation is None and number_after != content:
            self.violation = self.checks.landed(content, number_after, key)
        return number_after

    def _flying(self, puts: Iterable[tuple[str, int, int]], content: int) -> int:
        """The number of the puts under way, without those that can have no effect any more."""
        if on(Rule.TOMBSTONES) and on(Rule.CONDITIONAL_PUT) and on(Rule.DECISION_KEPT):
            own_content = self.store.contents[content]
            puts = (put for put in puts if put[0] != "create" or put[1] not in own_content)
        key = tuple(sorted(puts))
        if key not in self._flight_ids:
            self._flight_ids[key] = len(self.flights)
            self.flights.append(key)
        return self._flight_ids[key]

    # ---- traces

    def _trace(self, order: list[World], parents: list[int], last: int, why: Why) -> list[str]:
        lines = [self._words(order[last], why)]
        self_violation, child = self.violation, last
        while child != 0:
            parent = parents[child]
            for numbers, reason in self._successors(order[parent]):
                if numbers == order[child]:
                    lines.append(self._words(order[parent], reason))
                    break
            child = parent
        self.violation = self_violation
        return [f"{n}. {line}" for n, line in enumerate(reversed(lines), 1)]

    def _words(self, world: World, why: Why) -> str:
        if why[0] == "late":
            _, kind, key, value = why
            return f"a late {kind} lands: {show(self.store.keys[key])} = {show(self.store.values[value])}"
        name = self.scenario.actors[why[1]].name
        if why[0] == "crash":
            return f"{name} crashes"
        _, _, state, answer, word, reports = why
        op, *about = self.machine.requests[state]
        asked_text = " ".join([op, *(show(part) for part in about)])
        ended_text = "".join(f"; reports {report.what} {show(report.data)}" for report in reports)
        return f"{name}: {asked_text} -> {word or show(self.store.values[answer])}{ended_text}"


def show(value: Any) -> str:
    """A value in few words."""
    if value is None:
        return "absent"
    if hasattr(value, "_fields"):
        defaults = value._field_defaults
        texts = (
            f"{field}={show(part)}"
            for field, part in zip(value._fields, value, strict=True)
            if field not in defaults or part != defaults[field]
        )
        return f"{type(value).__name__}({', '.join(texts)})"
    if isinstance(value, tuple):
        return "/".join(show(part) for part in value) if value else "()"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(show(part) for part in value)) + "}"
    return str(value)

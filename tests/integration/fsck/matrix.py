"""Every kind of object, broken in every way: what fsck says, and what readers get meanwhile.

`python -m tests.integration.fsck.matrix` runs all of it and prints how much was tried and found.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.integration.fsck.world import World, build, lies

from lakelog.catalog.maintenance.fsck import Finding, Findings, Severity, check_warehouse
from lakelog.log.format import Tombstone, decode_entry

FLIPS = 7
"""Bits flipped in each object, one at a time, spread over all of it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One corruption. `broken` are the keys of the objects that are not what they were."""

    kind: str
    how: str
    broken: tuple[str, ...]
    do: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.how} {self.kind} {' and '.join(self.broken)}"


@dataclass
class Outcome:
    """What came of one case: findings that name a broken object, and questions that were answered wrong."""

    case: Case
    named: list[Finding]
    wrong: list[str]
    all: list[Finding]


def kind_of(key: str, data: bytes) -> str:
    """Return what an object is."""
    name = re.sub(r"^(.*/)?_log/", "", key)
    if key.startswith("_txn/"):
        return "decision"
    if key.startswith("_cut/"):
        return "cut"
    if key.endswith(".dv"):
        return "vectors"
    if "/data/" in key:
        return "data file"
    if name == "latest.json":
        return "hint"
    for folder in ("snapshot", "manifest", "sidecar", "base"):
        if name.startswith(f"{folder}s/"):
            return folder
    entry = decode_entry(data, key)
    if isinstance(entry, Tombstone):
        return "tombstone"
    return "commit" if entry.intent is None else "intent"


def cases(world: World) -> Iterator[Case]:
    """Yield every corruption of every object that is one of a table or a namespace."""
    kinds = {key: kind_of(key, data) for key, data in world.objects.items()}
    for key, data in world.objects.items():
        yield from _alone(world, key, kinds[key], data)
        yield from _copied(world, key, kinds)
    for key in world.objects:
        yield from _swapped(world, key, kinds)


def _alone(world: World, key: str, kind: str, data: bytes) -> Iterator[Case]:
    store = world.store
    yield Case(kind, "empty", (key,), lambda: store.put(key, b""))
    yield Case(kind, "halve", (key,), lambda: store.put(key, data[: len(data) // 2]))
    yield Case(kind, "lengthen", (key,), lambda: store.put(key, data + b"\0"))
    yield Case(kind, "delete", (key,), lambda: store.delete([key]))
    for flip in range(FLIPS):
        at = (len(data) - 1) * flip // (FLIPS - 1)
        bit = 1 << (flip % 8)

        def flip_bit(at: int = at, bit: int = bit) -> None:
            store.put(key, data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])

        yield Case(kind, f"flip bit {flip % 8} of byte {at} in", (key,), flip_bit)


def _copied(world: World, key: str, kinds: dict[str, str]) -> Iterator[Case]:
    """Copy an object to the next number of its sequence, whether something is there or not."""
    match = re.search(r"(?<=/)(\d{20})(?=[.-])", f"/{key}")
    if match is None or kinds[key] == "data file":
        return
    following = f"{int(match[0]) + 1:020d}"
    target = key.replace(match[0], following)
    yield Case(
        kinds[key], "copy onto the next", (target,), lambda: world.store.put(target, world.objects[key])
    )


def _swapped(world: World, key: str, kinds: dict[str, str]) -> Iterator[Case]:
    """Swap an object with the next of its kind, and with the one at the same place in another log."""
    same = sorted(other for other in kinds if kinds[other] == kinds[key] and other > key)
    partners = {same[0]} if same else set()
    tail = re.sub(r"^.*?(_log|data)/", "", key)
    for other in same:
        number = re.sub(r"-.*", "", tail)
        if number and re.sub(r"-.*", "", re.sub(r"^.*?(_log|data)/", "", other)) == number:
            partners.add(other)
    for other in sorted(partners):

        def swap(other: str = other) -> None:
            world.store.put(key, world.objects[other])
            world.store.put(other, world.objects[key])

        if world.objects[key] != world.objects[other]:
            yield Case(kinds[key], "swap", (key, other), swap)


def run(world: World, case: Case) -> Outcome:
    """Break what the case breaks, ask everything, check, and mend it again."""
    case.do()
    try:
        findings = check_warehouse(world.logs(), deep=True, all_versions=True)
        wrong = [
            question
            for question, ask in world.questions().items()
            if _concerns(world, question, case) and lies(world.answers[question], ask())
        ]
        changed = {
            key
            for key in {*world.objects, *world.store.list_after("")} - set(case.broken)
            if world.store.get(key) != world.objects.get(key)
        }
    finally:
        world.restore()
    wrong += [f"a reader wrote {key}" for key in sorted(changed)]
    return Outcome(case, [f for f in findings.found if names_one_of(f, case)], wrong, findings.found)


def _concerns(world: World, question: str, case: Case) -> bool:
    """Whether an answer can depend on a broken object: those of other tables cannot."""
    for name, location in world.tables.items():
        if question.startswith(f"{name} ") or question == name:
            return any(key.startswith((location, "_txn", "_cut")) or "/t-" not in key for key in case.broken)
    return True


def names_one_of(finding: Finding, case: Case) -> bool:
    return any(key in f"{finding.where} {finding.what} {finding.todo}" for key in case.broken)


def is_found(outcome: Outcome) -> bool:
    """Whether fsck named the object as damaged or repairable."""
    return any(finding.severity is not Severity.NOTE for finding in outcome.named)


@dataclass
class Tally:
    """How many corruptions were tried, and what came of them."""

    tried: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    missed: list[Outcome] = field(default_factory=list)
    wrong: list[Outcome] = field(default_factory=list)

    def take(self, outcome: Outcome) -> None:
        kind = outcome.case.kind
        self.tried[kind] += 1
        if is_found(outcome):
            self.found[kind] += 1
        elif outcome.named:
            self.noted[kind] += 1
        else:
            self.missed.append(outcome)
        if outcome.wrong:
            self.wrong.append(outcome)

    def __str__(self) -> str:
        lines = [f"{'kind':12} {'tried':>6} {'found':>6} {'noted':>6} {'missed':>6} {'wrong answers':>14}"]
        missed = Counter(outcome.case.kind for outcome in self.missed)
        wrong = Counter(outcome.case.kind for outcome in self.wrong)
        for kind in (*sorted(self.tried), "all"):
            counts = [
                sum(counter.values()) if kind == "all" else counter[kind]
                for counter in (self.tried, self.found, self.noted, missed, wrong)
            ]
            lines.append("{:12} {:6} {:6} {:6} {:6} {:14}".format(kind, *counts))
        return "\n".join(lines)


def clean(world: World) -> Findings:
    return check_warehouse(world.logs(), deep=True, all_versions=True)


def main() -> None:
    world, tally, begun = build(), Tally(), time.monotonic()
    print(f"{len(world.objects)} objects; before: {clean(world).found or 'clean'}")
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for case in list(cases(world))[::every]:
        outcome = run(world, case)
        tally.take(outcome)
        if outcome.wrong or not is_found(outcome):
            found = ", ".join(f"{finding.kind} {finding.where[-60:]}" for finding in outcome.all) or "clean"
            print(f"{case}\n    wrong: {outcome.wrong or 'nothing'}\n    fsck: {found}")
    print(tally)
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()

"""Every kind of object, damaged in every way: the report of fsck, the answers of readers, and the price of a repair.

`python -m tests.integration.fsck.matrix` runs all of it and prints how much was tried and found.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.integration.fsck.world import CONTENTS, Answer, World, build, lies

from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.keeping.maintenance.fsck import Finding, Findings, Severity, check_warehouse
from lakelog.log.errors import LakelogError
from lakelog.log.format import Tombstone, decode_entry, decode_root
from lakelog.log.grammar import RIGHTS_KEY

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
    """What came of one case: findings that name a broken object, and questions that were answered wrong.

    `worse` is what a repair has cost, None if there was nothing to repair.
    """

    case: Case
    named: list[Finding]
    wrong: list[str]
    all: list[Finding]
    worse: list[str] | None = None


def kind_of(key: str, data: bytes) -> str:
    """Return what an object is."""
    name = re.sub(r"^(.*/)?_log/", "", key)
    if "_txn/" in key:
        return "decision"
    if "_cut/" in key:
        return "cut"
    if key.endswith(".puffin"):
        return "vectors"
    if "/data/" in key:
        return "data file"
    if name == "latest.json":
        return "hint"
    for folder in ("snapshot", "manifest", "sidecar", "base"):
        if name.startswith(f"{folder}s/"):
            return folder
    entry = decode_entry(data, key, KNOWN)
    if isinstance(entry, Tombstone):
        return "tombstone"
    return "commit" if entry.intent is None else "intent"


def cases(world: World) -> Iterator[Case]:
    """Yield every corruption of every object that is one of a table or a namespace."""
    objects = {key: data for key, data in world.objects.items() if not key.endswith(RIGHTS_KEY)}
    kinds = {key: kind_of(key, data) for key, data in objects.items()}
    for key, data in objects.items():
        yield from _alone(world, key, kinds[key], data)
        yield from _copied_cases(world, key, kinds)
    for key in objects:
        yield from _swapped_cases(world, key, kinds)


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


def _copied_cases(world: World, key: str, kinds: dict[str, str]) -> Iterator[Case]:
    """Copy an object to the next number of its sequence, whether something is there or not."""
    match = re.search(r"(?<=/)(\d{20})(?=[.-])", f"/{key}")
    if match is None or kinds[key] == "data file":
        return
    next_text = f"{int(match[0]) + 1:020d}"
    target = key.replace(match[0], next_text)
    yield Case(
        kinds[key], "copy onto the next", (target,), lambda: world.store.put(target, world.objects[key])
    )


def _swapped_cases(world: World, key: str, kinds: dict[str, str]) -> Iterator[Case]:
    """Swap an object with the next of its kind, and with the one at the same place in another log."""
    same_kinds = sorted(
        other_kind for other_kind in kinds if kinds[other_kind] == kinds[key] and other_kind > key
    )
    partners = {same_kinds[0]} if same_kinds else set()
    tail = re.sub(r"^.*?(_log|data)/", "", key)
    for other_text in same_kinds:
        number = re.sub(r"-.*", "", tail)
        if number and re.sub(r"-.*", "", re.sub(r"^.*?(_log|data)/", "", other_text)) == number:
            partners.add(other_text)
    for other_text in sorted(partners):

        def swap(other: str = other_text) -> None:
            world.store.put(key, world.objects[other])
            world.store.put(other, world.objects[key])

        if world.objects[key] != world.objects[other_text]:
            yield Case(kinds[key], "swap", (key, other_text), swap)


def run(world: World, case: Case) -> Outcome:
    """Break what the case breaks, check, ask all questions, repair what can be, repeat the questions, and restore."""
    case.do()
    try:
        findings = check_warehouse(world.logs(), deep=True, all_versions=True)
        asked_pairs = {
            question: ask() for question, ask in world.questions().items() if _concerns(world, question, case)
        }
        changed_keys = {
            key
            for key in {*world.objects, *world.store.list_after("")} - set(case.broken)
            if world.store.get(key) != world.objects.get(key)
        }
        worse = cost_of_repair(world, asked_pairs) if findings.of(Severity.REPAIRABLE) else None
    finally:
        world.restore()
    wrong = [question for question, answer in asked_pairs.items() if lies(world.answers[question], answer)]
    wrong += [f"a reader wrote {key}" for key in sorted(changed_keys)]
    named_findings = [finding for finding in findings.found if names_one_of(finding, case)]
    return Outcome(case, named_findings, wrong, findings.found, worse)


def cost_of_repair(world: World, asked: dict[str, Answer]) -> list[str]:
    """Repair the warehouse, and return what readers can no longer read, and what is gone for good."""
    data_before = {key: world.store.get(key) for key in world.store.list_after("")}
    repaired_texts = check_warehouse(world.logs(), repair=True).repaired
    questions = world.questions()
    cost = [
        f"{question}: {answer} before, {current_pair} after the repair: {repaired_texts}"
        for question, answer in asked.items()
        if not as_readable(answer, current_pair := questions[question]())
    ]
    data_after = {key: world.store.get(key) for key in world.store.list_after("")}
    kept_data = set(data_after.values())
    # A sound hint is replaced by a newer one, as any writer does.
    cost += [
        f"{key} is gone"
        for key, data in data_before.items()
        if data not in kept_data and not (key.endswith("/latest.json") and is_sound(data or b"", key))
    ]
    return cost


def is_sound(data: bytes, key: str) -> bool:
    try:
        decode_root(data, key, KNOWN)
    except LakelogError:
        return False
    return True


def as_readable(before: Answer, after: Answer) -> bool:
    """Whether all that was read before is read again. An abort makes a version, and changes no rows."""
    if before[0] == "error" or before == after:
        return True
    if after[0] == "error":
        return False
    one, other = before[1], after[1]
    if isinstance(one, tuple) and len(one) == len(CONTENTS):
        return one[1:] == other[1:] and one[0] <= other[0]
    if isinstance(one, list) and one and isinstance(one[0], tuple) and len(one[0]) == 2:
        return len(one) == len(other) and all(map(as_readable, one, other))
    return False


def _concerns(world: World, question: str, case: Case) -> bool:
    """Whether an answer can depend on a broken object: those of other tables cannot."""
    for name, location in world.tables.items():
        if question.startswith(f"{name} ") or question == name:
            return any(
                key.startswith((location, "_cut")) or "_txn/" in key or "/t-" not in key
                for key in case.broken
            )
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
    repaired: Counter[str] = field(default_factory=Counter)
    worse: list[Outcome] = field(default_factory=list)

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
        self.repaired[kind] += outcome.worse is not None
        if outcome.worse:
            self.worse.append(outcome)

    def __str__(self) -> str:
        lines = [
            f"{'kind':12} {'tried':>6} {'found':>6} {'noted':>6} {'missed':>6} {'wrong answers':>14}"
            f" {'repaired':>9} {'worse':>6}"
        ]
        missed_kinds = Counter(outcome.case.kind for outcome in self.missed)
        wrong = Counter(outcome.case.kind for outcome in self.wrong)
        worse = Counter(outcome.case.kind for outcome in self.worse)
        for kind in (*sorted(self.tried), "all"):
            counts = [
                sum(counter.values()) if kind == "all" else counter[kind]
                for counter in (self.tried, self.found, self.noted, missed_kinds, wrong, self.repaired, worse)
            ]
            lines.append("{:12} {:6} {:6} {:6} {:6} {:14} {:9} {:6}".format(kind, *counts))
        return "\n".join(lines)


def clean(world: World) -> Findings:
    return check_warehouse(world.logs(), deep=True, all_versions=True)


def main() -> None:
    world, tally, start_time = build(), Tally(), time.monotonic()
    print(f"{len(world.objects)} objects; before: {clean(world).found or 'clean'}")
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for case in list(cases(world))[::every]:
        outcome = run(world, case)
        tally.take(outcome)
        if outcome.wrong or outcome.worse or not is_found(outcome):
            text = ", ".join(f"{finding.kind} {finding.where[-60:]}" for finding in outcome.all) or "clean"
            print(
                f"{case}\n    wrong: {outcome.wrong or 'nothing'}\n    fsck: {text}\n    worse: {outcome.worse}"
            )
    print(tally)
    print(f"{time.monotonic() - start_time:.0f} s")


if __name__ == "__main__":
    main()

"""Whatever object is broken, in whatever way: the check names it, no reader gets a wrong answer, and what could be
read before a repair can be read after it.

`scripts/corruptions` tries all of them and prints how many were tried and found.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from tests.integration.fsck.matrix import Case, Outcome, Tally, cases, clean, is_found, run
from tests.integration.fsck.world import World, build

from lakelog.catalog.keeping.maintenance.fsck import Severity

EVERY = 139
"""The short form tries one case in so many of each kind."""


@pytest.fixture(scope="module")
def world() -> World:
    return build()


def test_a_warehouse_with_every_kind_of_object_is_clean(world: World) -> None:
    findings = clean(world)
    assert findings.found == []
    objects = ("commits", "snapshots", "bases", "manifests", "sidecars", "decisions")
    for which_objects in (*objects, "data files", "deletion vectors"):
        assert findings.checked[which_objects], which_objects


def test_corruptions_are_named_and_never_believed_and_repair_costs_nothing(world: World) -> None:
    of_kind: dict[str, list[Case]] = {}
    for case in cases(world):
        of_kind.setdefault(case.kind, []).append(case)
    # Of each kind some, from another one on each: the first cases of all kinds are deletions.
    chosen_cases = [
        case for number, cases in enumerate(of_kind.values()) for case in cases[number % len(cases) :: EVERY]
    ]
    tally = tried_tally(world, chosen_cases)
    assert sum(tally.tried.values()) >= 20 and len(tally.tried) == len(of_kind)


@pytest.mark.slow
def test_every_corruption_is_named_and_never_believed_and_repair_costs_nothing(world: World) -> None:
    tally = tried_tally(world, list(cases(world)))
    kinds = "base commit cut data-file decision hint intent manifest sidecar snapshot tombstone vectors"
    assert tally.tried.keys() == {kind.replace("-", " ") for kind in kinds.split()}


def tried_tally(world: World, chosen: list[Case]) -> Tally:
    tally, unexpected_texts = Tally(), list[str]()
    for case in chosen:
        outcome = run(world, case)
        tally.take(outcome)
        if outcome.wrong and not is_newest(world, case):
            unexpected_texts.append(f"{case}: wrong answers: {outcome.wrong}")
        if outcome.worse:
            unexpected_texts.append(f"{case}: a repair has cost {outcome.worse}")
        if not is_found(outcome) and not may_pass(world, case, outcome):
            unexpected_texts.append(f"{case}: not named by {[finding.kind for finding in outcome.all]}")
    print(tally)
    assert not unexpected_texts, "\n".join(unexpected_texts)
    return tally


def is_newest(world: World, case: Case) -> bool:
    """Whether what was deleted is the newest thing that happened to a log, as far as a reader looks.

    Nothing that it reads can show it; only the check reads more. Of a decision that is missing nothing shows whether
    there was one.
    """
    if case.how != "delete" or case.kind not in ("commit", "intent", "decision"):
        return False
    if case.kind == "decision":
        return True
    [key] = case.broken
    folder, version = key[:-25], int(key[-25:-5])
    return f"{folder}{version + 1:020d}.json" not in world.objects or version == hinted(world, folder) + 1


def hinted(world: World, folder: str) -> int:
    """Return the version of a log's hint, or 0. Of the versions after it, a reader asks for the first alone."""
    hint = world.objects.get(f"{folder}latest.json")
    return 0 if hint is None else int(json.loads(hint)["version"])


def may_pass(world: World, case: Case, outcome: Outcome) -> bool:
    """Whether no finding has to name the object: nothing is lost with it, or nothing shows it."""
    if case.kind in ("hint", "snapshot") and case.how == "delete":
        return True  # it need not be there, and no reader believed it
    if case.kind in ("manifest", "sidecar", "snapshot") and case.how == "copy onto the next":
        return bool(outcome.named)
    if case.kind == "vectors" and case.how in ("lengthen", "copy onto the next"):
        return True  # all vectors are where they were; what nothing names is a note
    if case.kind == "vectors" and not outcome.wrong:
        return True  # beside the vectors, which have checksums, there is what only readers of Iceberg look at
    return is_newest(world, case)


def test_what_may_pass_is_little(world: World) -> None:
    """The exceptions above are for deletions of a few objects, not for whole kinds."""
    newest = Counter(case.kind for case in cases(world) if is_newest(world, case))
    logs = len({re.sub(r"_log/.*", "", key) for key in world.objects if "_log/" in key})
    # The last of a log, and the one after its hint.
    assert newest["commit"] + newest["intent"] <= 2 * logs


def test_notes_are_no_damage(world: World) -> None:
    findings = clean(world)
    assert findings.worst in (None, Severity.NOTE)

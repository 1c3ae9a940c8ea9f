"""The doctor examines stores with a single fault each, and reports the right check and severity."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from tests.integration.doctor import faults

from lakelog.log import MemoryStore, ObjectStore, StorageError
from lakelog.log.doctor import CheckVerdict, DoctorReport, StoreCheck, examine, races
from lakelog.log.doctor.processes import COMMAND


def report_of(store: ObjectStore, racer: Sequence[str] = COMMAND) -> dict[str, StoreCheck]:
    return by_name(examine(lambda: store, races_max=3, racer=racer))


def check_report(report: dict[str, StoreCheck], kind: type[MemoryStore], bad: set[str]) -> None:
    """Check that the report of a store with a fault names the broken promises, and nothing else."""
    assert {name for name, check in report.items() if check.verdict is CheckVerdict.BAD} == bad
    for name in bad:
        assert report[name].what and report[name].todo
    remaining_verdict = CheckVerdict.WARNING if kind is faults.Keeping else CheckVerdict.GOOD
    assert report["left behind"].verdict is remaining_verdict, report["left behind"]


def by_name(report: DoctorReport) -> dict[str, StoreCheck]:
    names = [check.name for check in report.checks]
    assert len(names) == len(set(names))
    assert report.worst is max((check.verdict for check in report.checks), key=list(CheckVerdict).index)
    return {check.name: check for check in report.checks}


def not_good(found: dict[str, StoreCheck]) -> dict[str, str]:
    return {
        name: str(check.verdict) for name, check in found.items() if check.verdict is not CheckVerdict.GOOD
    }


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (MemoryStore, set()),
        (faults.Racy, {"put-if-absent: threads"}),
        (
            faults.Unconditional,
            {"put-if-absent: threads", "put-if-absent: sent twice", "put-if-absent: largest commit"},
        ),
        (faults.SameBytes, {"put-if-absent: sent twice"}),
        (faults.Remembering, {"put-if-absent: after a delete"}),
        (faults.Small, {"put-if-absent: largest commit"}),
        (faults.Losing, {"put-if-absent: threads"}),
        (faults.Vanishing, {"put-if-absent: threads"}),
        (faults.NothingRemembered, {"reads after writes"}),
        (faults.FirstRemembered, {"reads after writes"}),
        (faults.GhostsRead, {"reads after deletes"}),
        (faults.GhostsListed, {"lists after deletes"}),
        (faults.ListedLate, {"lists after writes"}),
        (faults.Unordered, {"lists in order"}),
        (faults.FromTheStart, {"lists in order"}),
        (faults.Full, {"put-if-absent: threads"}),
        (faults.Silent, {"put-if-absent: threads"}),
        (faults.Cutting, {"put-if-absent: largest commit"}),
        (faults.WithoutFolders, {"lists in order"}),
        (faults.OldSizes, {"lists after writes"}),
        (
            faults.Inventing,
            {"reads after writes", "lists after writes", "reads after deletes", "lists after deletes"},
        ),
        (faults.NeverAbsent, {"right: get what is absent"}),
        (faults.Garbling, {"right: get"}),
        (faults.NeverFree, {"right: conditional put"}),
        (
            faults.Keeping,
            {"put-if-absent: after a delete", "reads after deletes", "lists after deletes"},
        ),
    ],
)
def test_a_store_with_a_fault_is_bad_by_the_check_that_is_about_it(
    kind: type[MemoryStore], bad: set[str]
) -> None:
    report = report_of(kind() if kind is MemoryStore else faults.in_memory(kind)())
    check_report(report, kind, bad)


@pytest.mark.parametrize(
    ("kind", "seen", "todo"),
    [
        (faults.Racy, "racers created 000", "two writers could overwrite each other"),
        (faults.Vanishing, "0001 was refused as taken, and a read found nothing there", "two writers"),
        (faults.Full, "32 of 32 racers could not find out who created 0001", "free space"),
        (faults.Full, "No space left on device", "free space"),
        (faults.Silent, "32 of 32 racers could not find out who created 0001", "not reliable enough"),
    ],
)
def test_a_race_says_what_was_seen_and_what_follows(kind: type[MemoryStore], seen: str, todo: str) -> None:
    store = faults.in_memory(kind)()
    keys = [f"races/{number:04}" for number in range(2)]
    check = races.judge("race", races.threads(store, store, keys, 10_000_000), "32")
    assert check.verdict is CheckVerdict.BAD and seen in check.what and todo in check.todo


@pytest.mark.parametrize(
    ("stored", "seen"), [(None, "nothing was stored"), (b"x", "another racer's bytes were stored")]
)
def test_what_one_racer_was_said_to_have_created_has_to_be_there(stored: bytes | None, seen: str) -> None:
    outcomes = [races.RacerOutcome(racer=0, ending="won"), races.RacerOutcome(racer=1, ending="taken")]
    check = races.judge("race", [races.KeyRace("races/0000", outcomes, stored)], "2")
    assert check.verdict is CheckVerdict.BAD and seen in check.what


def test_racers_of_whom_only_one_had_an_answer_prove_nothing() -> None:
    key, won = "races/0000", races.RacerOutcome(racer=0, ending="won")
    lost_racer_outcomes = [
        races.RacerOutcome(racer=number, ending="failed", doubts=("503",)) for number in (1, 2)
    ]
    race = races.KeyRace(key, [won, *lost_racer_outcomes], stored=races.body(key, 0))
    check = races.judge("race", [race], "3")
    assert check.verdict is CheckVerdict.BAD and "2 of 3 racers could not find out" in check.what


def test_racers_do_not_wait_for_a_store_for_ever() -> None:
    class Slow(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            time.sleep(0.05)
            raise StorageError("no answer", location=key)

    store = Slow()
    (race,) = races.threads(store, store, ["races/0000", "races/0001"], at_most_us=10_000)
    assert {len(outcome.doubts) for outcome in race.outcomes} == {1}


@pytest.mark.parametrize("applied", [True, False])
def test_answers_that_prove_nothing_are_settled_by_reading(applied: bool) -> None:
    class Doubtful(MemoryStore):
        """Answers by a failure the first time, and has done it or not."""

        def __init__(self) -> None:
            super().__init__()
            self.failed: set[str] = set()
            self.lock = threading.Lock()

        def put_if_absent(self, key: str, data: bytes) -> bool:
            with self.lock:
                fails = key not in self.failed
                self.failed.add(key)
            if fails:
                if applied:
                    super().put_if_absent(key, data)
                raise StorageError("no answer", location=key)
            return super().put_if_absent(key, data)

    report = report_of(Doubtful())
    assert not_good(report) == {}
    label = report["put-if-absent: threads"].what
    assert "3 times no answer, settled by reading" in label
    assert ("3 found their own success" in label) is applied


def test_a_success_behind_a_refusal_is_found_by_its_bytes() -> None:
    class Echoing(MemoryStore):
        """As a client library that resends: the second request is refused, and its answer is all that comes."""

        def put_if_absent(self, key: str, data: bytes) -> bool:
            super().put_if_absent(key, data)
            return False

    report = report_of(Echoing())
    assert not_good(report) == {}
    assert "3 found their own success behind a refusal" in report["put-if-absent: threads"].what


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        ("get", CheckVerdict.BAD),
        ("get what is absent", CheckVerdict.BAD),
        ("put", CheckVerdict.BAD),
        ("conditional put", CheckVerdict.BAD),
        ("list", CheckVerdict.WARNING),
        ("delete", CheckVerdict.WARNING),
    ],
)
def test_each_right_is_reported_by_its_name_and_what_needs_it_is_unknown(
    action: str, verdict: CheckVerdict
) -> None:
    store = faults.in_memory(faults.Refusing)(action)
    report = report_of(store)
    other_texts = {"get what is absent"} if action == "get" else set()
    refused_names = {
        name for name, check in report.items() if name.startswith("right: ") and "refused" in check.what
    }
    assert refused_names == {f"right: {each_action}" for each_action in {action, *other_texts}}
    assert report[f"right: {action}"].verdict is verdict
    assert [
        check.name
        for check in report.values()
        if check.verdict is CheckVerdict.BAD and "right" not in check.name
    ] == []
    needing_checks = [
        check
        for check in report.values()
        if check.what.startswith("needs what did not work above")
        and action in check.what.partition(": ")[2].split(", ")
    ]
    assert needing_checks and all(check.verdict is CheckVerdict.UNKNOWN for check in needing_checks)
    assert (report["left behind"].verdict is CheckVerdict.WARNING) is (action == "delete")
    assert bool(store._objects) is (action == "delete")


def test_a_condition_that_a_server_does_not_support_is_bad_and_nothing_is_said_of_races() -> None:
    class Unsupporting(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            raise StorageError("the server does not support it (501)", location=key)

    report = report_of(Unsupporting())
    assert (
        report["right: conditional put"].verdict is CheckVerdict.BAD
        and "501" in report["right: conditional put"].what
    )
    assert report["put-if-absent"].verdict is CheckVerdict.UNKNOWN and "put-if-absent: threads" not in report


@pytest.mark.parametrize(
    ("ahead_s", "verdict", "text"),
    [
        ([0.0], CheckVerdict.GOOD, "at most"),
        ([300.0], CheckVerdict.WARNING, "ahead of"),
        ([-300.0], CheckVerdict.WARNING, "behind"),
        ([0.0, 10.0], CheckVerdict.WARNING, "apart about the time"),
        ([0.0, 300.0], CheckVerdict.BAD, "apart about the time"),
        ([None], CheckVerdict.UNKNOWN, "did not say"),
    ],
)
def test_clocks_are_compared(ahead_s: list[float | None], verdict: CheckVerdict, text: str) -> None:
    class Timed(MemoryStore):
        def now_us(self, near: str = "") -> int | None:
            ahead = ahead_s[0]
            ahead_s.append(ahead_s.pop(0))
            return None if ahead is None else int((time.time() + ahead) * 1e6)

    clock = report_of(Timed())["clock"]
    assert clock.verdict is verdict and text in clock.what

"""What the doctor says of stores that each have one fault: the check that is about it, and how bad it is."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from lakelog.log import LocalStore, MemoryStore, ObjectStore, PermissionDenied, StorageError
from lakelog.log.doctor import Check, Report, Verdict, examine
from lakelog.log.doctor.processes import COMMAND, processes


def report_of(store: ObjectStore, racer: Sequence[str] = COMMAND) -> dict[str, Check]:
    return by_name(examine(lambda: store, races_max=3, racer=racer))


def by_name(report: Report) -> dict[str, Check]:
    names = [check.name for check in report.checks]
    assert len(names) == len(set(names))
    assert report.worst is max((each.verdict for each in report.checks), key=list(Verdict).index)
    return {check.name: check for check in report.checks}


def not_good(found: dict[str, Check]) -> dict[str, str]:
    return {name: str(check.verdict) for name, check in found.items() if check.verdict is not Verdict.GOOD}


class Racy(MemoryStore):
    """Looks, and writes a moment later, as servers without atomic conditions do."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if key in self._objects:
            return False
        time.sleep(0.001)
        self.put(key, data)
        return True


class Unconditional(MemoryStore):
    """Ignores the condition."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.put(key, data)
        return True


class SameBytes(MemoryStore):
    """Takes a second request with the same bytes for a success, and so another writer's."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return super().put_if_absent(key, data) or self._objects[key] == data


class Remembering(MemoryStore):
    """Never frees a key for creation."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: set[str] = set()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        created = key not in self._taken and super().put_if_absent(key, data)
        self._taken.add(key)
        return created

    def put(self, key: str, data: bytes) -> None:
        self._taken.add(key)
        super().put(key, data)


class Small(MemoryStore):
    """A gateway with a limit for one request."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if len(data) > 1_000_000:
            raise StorageError("the store answered 413", location=key)
        return super().put_if_absent(key, data)


class Losing(MemoryStore):
    """Says that it has created an object, and has not, now and then."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return ("races/0001" in key and key not in self._objects) or super().put_if_absent(key, data)


class Vanishing(MemoryStore):
    """Refuses what is not there."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return "races/0001" not in key and super().put_if_absent(key, data)


class NothingRemembered(MemoryStore):
    """A cache before the store remembers that an object was not there."""

    def __init__(self) -> None:
        super().__init__()
        self._absent: set[str] = set()

    def get(self, key: str) -> bytes | None:
        if key in self._absent:
            return None
        found = super().get(key)
        if found is None:
            self._absent.add(key)
        return found


class FirstRemembered(MemoryStore):
    """A cache before the store has the first version that was read."""

    def __init__(self) -> None:
        super().__init__()
        self._read: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        found = super().get(key)
        return None if found is None else self._read.setdefault(key, found)


class GhostsRead(MemoryStore):
    """Returns what was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self._ghosts: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        found = super().get(key)
        return self._ghosts.get(key) if found is None else found

    def delete(self, keys: Sequence[str]) -> None:
        self._ghosts |= {key: self._objects[key] for key in keys if key in self._objects}
        super().delete(keys)


class GhostsListed(MemoryStore):
    """Lists what was deleted a moment ago."""

    _ghosts: dict[str, int]

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for key, size in getattr(self, "_ghosts", {}).items():
            if key.startswith(prefix):
                yield key, size
        yield from super().list_sizes(prefix, after)

    def delete(self, keys: Sequence[str]) -> None:
        self._ghosts = {key: len(self._objects[key]) for key in keys if key in self._objects}
        super().delete(keys)


class ListedLate(MemoryStore):
    """Lists an object from the second list on."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[str] = set()

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for key, size in super().list_sizes(prefix, after):
            if key in self._known:
                yield key, size
            self._known.add(key)


class Unordered(MemoryStore):
    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return iter(sorted(super().list_after(prefix, after), key=str.lower, reverse=True))


class FromTheStart(MemoryStore):
    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return super().list_after(prefix)


class Keeping(MemoryStore):
    """Deletes nothing, and says nothing of it."""

    def delete(self, keys: Sequence[str]) -> None:
        return


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (MemoryStore, set()),
        (Racy, {"put-if-absent: threads"}),
        (
            Unconditional,
            {"put-if-absent: threads", "put-if-absent: sent twice", "put-if-absent: largest commit"},
        ),
        (SameBytes, {"put-if-absent: sent twice"}),
        (Remembering, {"put-if-absent: after a delete"}),
        (Small, {"put-if-absent: largest commit"}),
        (Losing, {"put-if-absent: threads"}),
        (Vanishing, {"put-if-absent: threads"}),
        (NothingRemembered, {"reads after writes"}),
        (FirstRemembered, {"reads after writes"}),
        (GhostsRead, {"reads after deletes"}),
        (GhostsListed, {"lists after deletes"}),
        (ListedLate, {"lists after writes"}),
        (Unordered, {"lists in order"}),
        (FromTheStart, {"lists in order"}),
        (
            Keeping,
            {"put-if-absent: after a delete", "reads after deletes", "lists after deletes"},
        ),
    ],
)
def test_a_store_with_a_fault_is_bad_by_the_check_that_is_about_it(
    kind: Callable[[], MemoryStore], bad: set[str]
) -> None:
    found = report_of(kind())
    assert {name for name, check in found.items() if check.verdict is Verdict.BAD} == bad
    for name in bad:
        assert found[name].what and found[name].todo
    left = Verdict.WARNING if kind is Keeping else Verdict.GOOD
    assert found["left behind"].verdict is left, found["left behind"]


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
                fails = key not in self.failed and "single" not in key and "reads" not in key
                self.failed.add(key)
            if fails:
                if applied:
                    super().put_if_absent(key, data)
                raise StorageError("no answer", location=key)
            return super().put_if_absent(key, data)

    found = report_of(Doubtful())
    assert not_good(found) == {}
    what = found["put-if-absent: threads"].what
    assert "3 times no answer, settled by reading" in what
    assert ("3 found their own success" in what) is applied


def test_a_success_behind_a_refusal_is_found_by_its_bytes() -> None:
    class Echoing(MemoryStore):
        """As a client library that resends: the second request is refused, and its answer is all that comes."""

        def put_if_absent(self, key: str, data: bytes) -> bool:
            return super().put_if_absent(key, data) and "races" not in key

    found = report_of(Echoing())
    assert not_good(found) == {}
    assert "3 found their own success behind a refusal" in found["put-if-absent: threads"].what


class Refusing(MemoryStore):
    """Refuses one action."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self._action = action

    def _may(self, action: str) -> None:
        if self._action == action:
            raise PermissionDenied(f"may not {action}", location=self.url)

    def get(self, key: str) -> bytes | None:
        self._may("get")
        if key not in self._objects:
            self._may("get what is absent")
        return super().get(key)

    def put(self, key: str, data: bytes) -> None:
        self._may("put")
        super().put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._may("conditional put")
        return super().put_if_absent(key, data)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        self._may("list")
        return super().list_after(prefix, after)

    def delete(self, keys: Sequence[str]) -> None:
        self._may("delete")
        super().delete(keys)


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        ("get", Verdict.BAD),
        ("get what is absent", Verdict.BAD),
        ("put", Verdict.BAD),
        ("conditional put", Verdict.BAD),
        ("list", Verdict.WARNING),
        ("delete", Verdict.WARNING),
    ],
)
def test_each_right_is_reported_by_its_name_and_what_needs_it_is_unknown(
    action: str, verdict: Verdict
) -> None:
    store = Refusing(action)
    found = report_of(store)
    others = {"get what is absent"} if action == "get" else set()
    refused = {
        name for name, check in found.items() if name.startswith("right: ") and "refused" in check.what
    }
    assert refused == {f"right: {each}" for each in {action, *others}}
    assert found[f"right: {action}"].verdict is verdict
    assert [
        check.name for check in found.values() if check.verdict is Verdict.BAD and "right" not in check.name
    ] == []
    needing = [check for check in found.values() if f"needs the right to {action}" in check.what]
    assert needing and all(check.verdict is Verdict.UNKNOWN for check in needing)
    assert (found["left behind"].verdict is Verdict.WARNING) is (action == "delete")
    assert bool(store._objects) is (action == "delete")


def test_a_condition_that_a_server_does_not_support_is_bad_and_nothing_is_said_of_races() -> None:
    class Unsupporting(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            raise StorageError("the server does not support it (501)", location=key)

    found = report_of(Unsupporting())
    assert (
        found["right: conditional put"].verdict is Verdict.BAD
        and "501" in found["right: conditional put"].what
    )
    assert found["put-if-absent"].verdict is Verdict.UNKNOWN and "put-if-absent: threads" not in found


@pytest.mark.parametrize(
    ("ahead_s", "verdict", "text"),
    [
        ([0.0], Verdict.GOOD, "at most"),
        ([300.0], Verdict.WARNING, "ahead of"),
        ([-300.0], Verdict.WARNING, "behind"),
        ([0.0, 10.0], Verdict.WARNING, "apart about the time"),
        ([0.0, 300.0], Verdict.BAD, "apart about the time"),
        ([None], Verdict.UNKNOWN, "did not say"),
    ],
)
def test_clocks_are_compared(ahead_s: list[float | None], verdict: Verdict, text: str) -> None:
    class Timed(MemoryStore):
        def now_us(self, near: str = "") -> int | None:
            ahead = ahead_s[0]
            ahead_s.append(ahead_s.pop(0))
            return None if ahead is None else int((time.time() + ahead) * 1e6)

    clock = report_of(Timed())["clock"]
    assert clock.verdict is verdict and text in clock.what


def test_a_folder_is_proven_by_processes_too_and_left_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "warehouse"
    report = examine(lambda: LocalStore(str(folder), fsync=False), races_max=3)
    found = by_name(report)
    assert set(not_good(found)) <= {"file system"}  # where tests run on one that hosts share
    assert (
        "4 processes for each of 20 keys: one created it, 620 were refused"
        in found["put-if-absent: processes"].what
    )
    assert list(tmp_path.iterdir()) == []
    assert report.facts["store"] == str(folder) and "median get" in report.facts


def test_a_race_of_processes_that_two_win_is_bad(tmp_path: Path) -> None:
    script = tmp_path / "racer.py"
    script.write_text(
        "import os, sys, time\n"
        "from lakelog.log import LocalStore\n"
        "from lakelog.log.doctor import racer\n"
        "class Racy(LocalStore):\n"
        "    def put_if_absent(self, key, data):\n"
        "        if self.get(key) is not None:\n"
        "            return False\n"
        "        time.sleep(0.05)\n"
        "        self.put(key, data)\n"
        "        return True\n"
        "racer.main(sys.argv[1:], lambda root: Racy(root, fsync=False))\n"
    )
    (tmp_path / "warehouse").mkdir()
    store = LocalStore(str(tmp_path / "warehouse"), fsync=False)
    found = report_of(store, racer=(sys.executable, str(script)))
    assert found["put-if-absent: threads"].verdict is Verdict.GOOD
    assert found["put-if-absent: processes"].verdict is Verdict.BAD
    script.write_text("raise SystemExit(5)")
    with pytest.raises(StorageError, match="ended with 5"):
        processes(store, ["k"], (sys.executable, str(script)))
    assert os.listdir(tmp_path / "warehouse") == []


def test_an_interrupted_examination_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupt(step: str) -> None:
        if "races" in step:
            raise KeyboardInterrupt

    (tmp_path / "warehouse").mkdir()
    with pytest.raises(KeyboardInterrupt):
        examine(lambda: LocalStore(str(tmp_path / "warehouse"), fsync=False), races_max=1, progress=interrupt)
    assert os.listdir(tmp_path / "warehouse") == []

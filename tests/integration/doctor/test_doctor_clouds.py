"""The doctor finds each broken promise of a store on Google Cloud Storage, and on Azure, by the check about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast
from uuid import uuid4

import pytest
from tests import cloud_servers
from tests.cloud_servers import CloudServer
from tests.integration.doctor import faults
from tests.integration.doctor.test_doctor import by_name, check_report, not_good
from tests.processes.faulty_proxy import faulty_proxy

from lakelog.log import MemoryStore, ObjectStore, open_store
from lakelog.log.doctor import CheckVerdict, StoreCheck, examine
from lakelog.log.doctor.kinds import CloudKind
from lakelog.log.stores.cloud_store import CloudStore

pytestmark = pytest.mark.s3
FAST: list[tuple[type[MemoryStore], set[str]]] = [
    (faults.SameBytes, {"put-if-absent: sent twice"}),
    (faults.GhostsListed, {"lists after deletes"}),
]
SLOW: list[tuple[type[MemoryStore], set[str]]] = [
    (faults.Remembering, {"put-if-absent: after a delete"}),
    (faults.Small, {"put-if-absent: largest commit"}),
    (faults.Losing, {"put-if-absent: threads"}),
    (faults.Vanishing, {"put-if-absent: threads"}),
    (faults.NothingRemembered, {"reads after writes"}),
    (faults.FirstRemembered, {"reads after writes"}),
    (faults.GhostsRead, {"reads after deletes"}),
    (faults.ListedLate, {"lists after writes"}),
    (faults.Unordered, {"lists in order"}),
    (faults.FromTheStart, {"lists in order"}),
    (faults.Cutting, {"put-if-absent: largest commit"}),
    (faults.WithoutFolders, {"lists in order"}),
    (faults.OldSizes, {"lists after writes"}),
    (faults.NeverAbsent, {"right: get what is absent"}),
    (faults.Garbling, {"right: get"}),
    (faults.NeverFree, {"right: conditional put"}),
    (faults.Keeping, {"put-if-absent: after a delete", "reads after deletes", "lists after deletes"}),
]
CASES = [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]


@pytest.fixture(scope="module", params=cloud_servers.NAMES)
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    with cloud_servers.running(request.param, tmp_path_factory.mktemp("objects")) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upload of 64 MiB is left out. Another test has it."""
    monkeypatch.setattr(CloudKind, "has_uploads", False)


class Objects(Mapping[str, bytes]):
    """The objects of a store without its fault."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __getitem__(self, key: str) -> bytes:
        data = self._store.get(key)
        if data is None:
            raise KeyError(key)
        return data

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._store.list_after("")))

    def __len__(self) -> int:
        return len(list(self))


def faulty(kind: type[MemoryStore], server: CloudServer, *arguments: Any) -> CloudStore:
    """Return a new store on the cloud with a fault."""
    plain = open_store(f"{server.url}/{uuid4().hex}", server.options)
    (endpoint,) = server.options.values()
    members = {"_objects": Objects(plain)}
    return cast(
        CloudStore,
        type(kind.__name__, (kind, type(plain)), members)(*arguments, plain.url, endpoint=endpoint),
    )


def report_of(store: ObjectStore) -> dict[str, StoreCheck]:
    return by_name(examine(lambda: store, races_max=2))


@pytest.mark.parametrize(("kind", "bad"), CASES)
def test_a_broken_promise_is_found(cloud: CloudServer, kind: type[MemoryStore], bad: set[str]) -> None:
    check_report(report_of(faulty(kind, cloud)), kind, bad)


@pytest.mark.parametrize(
    "action", ["put", *(pytest.param(name, marks=pytest.mark.slow) for name in ("get", "list", "delete"))]
)
def test_a_right_that_is_missing_is_named_as_it_is_granted(cloud: CloudServer, action: str) -> None:
    report = report_of(faulty(faults.Refusing, cloud, action))
    check = report[f"right: {action}"]
    assert check.verdict in (CheckVerdict.BAD, CheckVerdict.WARNING)
    granted = "storage.objects" if cloud.url.startswith("gs:") else "blobs"
    assert granted in check.what + check.todo


def test_conflicts_and_lost_answers_are_settled(cloud: CloudServer) -> None:
    with faulty_proxy(cloud.endpoint) as proxy:
        store = open_store(f"{cloud.url}/{uuid4().hex}", cloud.options_at(proxy.endpoint))
        assert store.put_if_absent("a", b"x")  # its test of the server is done
        store.delete(["a"])
        proxy.faults = ["", "", "", "lost-reset", "409", "lost-503", "reset"]
        report = report_of(store)
    assert not_good(report) == {"settings": "unknown"}
    assert not proxy.faults

"""Operations return or raise the truth about the warehouse, if each of their requests fails in turn, in every way."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from tests.integration.catalog.answers.failing_store import OF_WRITES, Death, FailingStore, Fault
from tests.integration.catalog.answers.operations import OPERATIONS, Operation, prepare

from lakelog.catalog import Catalog, DoneInPart, Token
from lakelog.catalog.core.logs import places
from lakelog.log import CommitUnknown, LakelogError, LogOptions, MemoryStore, open_store

Seen = list[tuple[Any, ...]]
Objects = dict[str, dict[str, bytes]]


def one_after_the_other(works: Sequence[Callable[[], None]]) -> None:
    for work in works:
        work()


def options() -> LogOptions:
    def at_once(name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except LakelogError:
            return

    return LogOptions(
        sleep_s=lambda seconds: None,
        random=lambda: 0.5,
        in_background=at_once,
        in_parallel=one_after_the_other,
        patience_s=0.0,
        patience_each_s=0.0,
        put_tries=2,
        transaction_tries=2,
    )


def seen(warehouse: str) -> Seen:
    """Return all commits that count, of all that can be reached by a name or was dropped, and every saved cut."""
    catalog = Catalog(warehouse, log_options=options())
    found: Seen = [
        (entry.what, entry.kind, entry.name, entry.dropped, *entry.operations)
        for entry in catalog.audit(newest_first=False)
    ]
    held_pairs = [("", cut) for cut in catalog.cuts()]
    held_pairs += [("a", cut) for cut in (catalog.cuts("a") if catalog.namespace_exists("a") else ())]
    for namespace, cut in held_pairs:
        as_of = Catalog(warehouse, log_options=options(), as_of=cut, as_of_namespace=namespace)
        tables = [as_of.load_table(name) for name in as_of.list_tables("a")]
        found.append(("cut", namespace, cut, sorted((table.version, table.row_count) for table in tables)))
    return sorted(found, key=repr)


def objects_of(warehouse: str) -> Objects:
    stores = {name: store for name, store in MemoryStore._named.items() if name.startswith(warehouse)}
    return {name: dict(store._objects) for name, store in stores.items() if store._objects}


@contextmanager
def prepared() -> Iterator[Callable[[], str]]:
    """Give what puts a warehouse back to how `prepare` has left it, and returns its url."""
    url = f"memory://{uuid.uuid4().hex}"
    prepare(url)
    objects = objects_of(url)

    def put_back() -> str:
        for name, store in MemoryStore._named.items():
            if name.startswith(url):
                store._objects = dict(objects.get(name, {}))
        return url

    yield put_back
    for name in [name for name in MemoryStore._named if name.startswith(url)]:
        del MemoryStore._named[name]


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, at: int | None, fault: Fault) -> Any:
    """Let every request of a catalog that is opened inside go through one counter."""
    counted_store = FailingStore(MemoryStore(), at, fault)

    def open_failing(url: str, given: Any) -> FailingStore:
        store = FailingStore(open_store(url, given), None)
        store._ask = counted_store._ask  # type: ignore[method-assign]
        return store

    with monkeypatch.context() as patch:
        patch.setattr(places, "open_store", open_failing)
        yield counted_store


@pytest.mark.parametrize("title", OPERATIONS)
def test_what_is_returned_or_raised_is_what_is_there(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(OPERATIONS[title], monkeypatch, reads=3)


@pytest.mark.slow
@pytest.mark.parametrize("title", OPERATIONS)
def test_whichever_request_fails_what_is_returned_or_raised_is_what_is_there(
    title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(OPERATIONS[title], monkeypatch, reads=1)


def hold(operation: Operation, monkeypatch: pytest.MonkeyPatch, reads: int) -> None:
    """Let each write fail in turn, and one in so many reads: of each kind of fault others."""
    problems: list[str] = []
    with prepared() as put_back:
        warehouse = put_back()
        state = seen(warehouse)
        untouched_objects = objects_of(warehouse)
        token = _token(operation, warehouse)
        with failing(monkeypatch, None, Fault.ONCE) as counted:
            _run(operation, warehouse, token)
        all_state, requests = seen(warehouse), counted.requests
        for number, fault in enumerate(Fault):
            range_ = set() if fault in OF_WRITES else set(range(number % reads, requests, reads))
            for at in sorted(counted.writes | range_):
                warehouse = put_back()
                problem = _disturbed_text(
                    operation, monkeypatch, warehouse, at, fault, state, all_state, untouched_objects
                )
                if problem is not None:
                    problems.append(f"where request {at} of {requests} {fault}: {problem}")
    assert not problems, f"{len(problems)}: " + "\n".join(problems[:12])


def _disturbed_text(
    operation: Operation,
    monkeypatch: pytest.MonkeyPatch,
    warehouse: str,
    at: int,
    fault: Fault,
    nothing: Seen,
    everything: Seen,
    untouched: Objects,
) -> str | None:
    token = _token(operation, warehouse)
    with failing(monkeypatch, at, fault):
        try:
            _run(operation, warehouse, token)
            raised_error: BaseException | None = None
        except (LakelogError, Death) as error:
            raised_error = error
    # Where no object has changed, all that can be seen is as it was: no need to look.
    state = nothing if objects_of(warehouse) == untouched else seen(warehouse)
    if raised_error is None and state != everything:
        return f"it returned, and did not happen: {_difference(state, everything)}"
    is_refusal = raised_error is not None and not isinstance(raised_error, CommitUnknown | DoneInPart | Death)
    if is_refusal and state != nothing and not operation.reports:
        return (
            f"{type(raised_error).__name__}: {raised_error}, but it happened: {_difference(state, nothing)}"
        )
    if isinstance(raised_error, DoneInPart) and state == nothing:
        return f"{raised_error}, but nothing happened"
    if state not in (nothing, everything) and not operation.in_steps:
        return f"it is half done: {_difference(state, nothing)}"
    if token is not None and not operation.in_steps:
        try:
            _run(operation, warehouse, token)
        except LakelogError as error:
            return f"retried: {type(error).__name__}: {error}"
        state = seen(warehouse)
        if state != everything:
            return f"retried, it is not as after one request: {_difference(state, everything)}"
    return None


def _token(operation: Operation, warehouse: str) -> Token | None:
    if operation.name is None:
        return None
    return Catalog(warehouse, log_options=options()).token(operation.name)


def _run(operation: Operation, warehouse: str, token: Any) -> None:
    operation.run(Catalog(warehouse, log_options=options()), token)


def _difference(found: Seen, wanted: Seen) -> str:
    return (
        f"more {[each for each in found if each not in wanted]}, less {[e for e in wanted if e not in found]}"
    )

"""Appends of a few rows by threads of a process share a file and a version. Each thread gets its own outcome."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.schema.test_constraints import add, over
from tests.integration.catalog.test_threads import side_by_side
from tests.integration.catalog.writes.test_identity import create, given, of
from tests.patience import PATIENCE_S, wait_until

from lakelog.catalog import (
    Catalog,
    CheckViolated,
    CommitConflict,
    NoSuchTable,
    Table,
    TableRenamed,
    Token,
    engine,
)
from lakelog.catalog.core.logs import places, writing_as
from lakelog.catalog.core.state import FilesChanged, RowsAppended, TableEvent, encode
from lakelog.catalog.core.writes import joint_appends
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log import (
    CommitUnknown,
    ConflictError,
    Draft,
    InvalidInput,
    LogOptions,
    MemoryStore,
    StorageError,
)
from lakelog.log.checks.findings import Severity

Outcome = Table | BaseException
Append = Callable[[], Table]


class Gated(MemoryStore):
    """A store of which a test can hold or spoil puts, and count requests by what they are for."""

    def __init__(self) -> None:
        super().__init__("memory://joint")
        self.asked: Counter[str] = Counter()
        self.before_put: Callable[[str], None] = lambda key: None
        self.after_put: Callable[[str], None] = lambda key: None

    def put(self, key: str, data: bytes) -> None:
        self._count("put", key)
        self.before_put(key)
        super().put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._count("put", key)
        self.before_put(key)
        is_mine = super().put_if_absent(key, data)
        self.after_put(key)
        return is_mine

    def get(self, key: str) -> bytes | None:
        self._count("get", key)
        return super().get(key)

    def _count(self, what: str, key: str) -> None:
        if is_data(key) or is_commit(key):
            self.asked[f"{what} {'data' if is_data(key) else 'commit'}"] += 1


def take_a_moment(key: str) -> None:
    threading.Event().wait(0.001)


def is_data(key: str) -> bool:
    return key.endswith(".parquet")


def is_commit(key: str) -> bool:
    return re.search(r"_log/\d{20}\.json$", key) is not None


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Gated:
    store = Gated()
    monkeypatch.setattr(places, "open_store", lambda url, options: store)
    return store


@pytest.fixture
def catalog(store: Gated) -> Catalog:
    return Catalog("memory://joint", log_options=LogOptions(sleep_s=lambda time_s: None))


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", SCHEMA)


def together(
    store: Gated,
    table: Table,
    appends: Sequence[Append],
    *,
    meanwhile: Callable[[], object] = lambda: None,
    first: pa.Table | None = None,
) -> list[Outcome]:
    """Append `first`, and while its file is put have a thread for each of `appends` wait: they are one group, in
    their order. Return what becomes of these."""
    outcomes: list[Any] = [None] * (len(appends) + 1)
    puts, all_wait = threading.Event(), threading.Event()

    def hold(key: str) -> None:
        if is_data(key) and not puts.is_set():
            puts.set()
            assert all_wait.wait(PATIENCE_S)

    def lead() -> None:
        try:
            outcomes[0] = table.append(rows(0) if first is None else first)
        except BaseException as error:
            outcomes[0] = error

    def append(i: int) -> None:
        try:
            outcomes[i + 1] = appends[i]()
        except BaseException as error:
            outcomes[i + 1] = error

    kept, store.before_put = store.before_put, hold
    threads = [threading.Thread(target=lead, daemon=True)]
    threads[0].start()
    assert puts.wait(PATIENCE_S)
    turns = joint_appends._turns[table.table_head.tracked]
    for i in range(len(appends)):
        threads.append(threading.Thread(target=append, args=(i,), daemon=True))
        threads[-1].start()
        while turns.waiting <= i and threads[-1].is_alive():
            threading.Event().wait(0.001)
    meanwhile()
    store.before_put = kept
    store.asked.clear()
    all_wait.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert turns.waiting == 0 and turns._leader is None and not turns._inside
    assert all(outcome is not None for outcome in outcomes)
    return outcomes[1:]


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def fresh() -> Table:
    return Catalog("memory://joint").load_table("t")


def own(table: Table, *numbers: int) -> list[Append]:
    return [lambda i=i: table.append(rows(i)) for i in numbers]  # type: ignore[misc]


def ok(outcomes: Sequence[Outcome]) -> list[Table]:
    for table in outcomes:
        if isinstance(table, BaseException):
            raise table
    return [each_table for each_table in outcomes if isinstance(each_table, Table)]


def test_an_append_that_is_alone_puts_a_file_and_a_plain_commit(store: Gated, table: Table) -> None:
    store.asked.clear()
    table_after = table.append(rows(1, 2))
    assert store.asked == {"put data": 1, "put commit": 1}
    [commit] = list(table_after.table_head.commits(newest_first=True))[:1]
    assert commit.changes == () and [event["event"] for event in commit.events] == ["files-changed"]
    assert "of_changes" not in commit.events[0] and ids(fresh()) == [1, 2]


def test_appends_that_wait_are_one_file_and_one_version_with_a_change_for_each(
    store: Gated, table: Table
) -> None:
    def append(i: int) -> Table:
        with writing_as({"query": f"u{i}"}):
            return table.append(rows(*range(i * 10, i * 10 + i)))

    tables = ok(together(store, table, [lambda i=i: append(i) for i in range(1, 6)]))  # type: ignore[misc]
    assert store.asked["put data"] == 1  # the first one's is counted before
    assert store.asked["put commit"] <= 2
    assert len({table.version for table in tables}) == 1
    read = fresh()
    assert ids(read) == [0, *(i * 10 + k for i in range(1, 6) for k in range(i))]
    assert all(set(range(50, 55)) <= set(ids(table)) for table in tables)
    row_ids = read.scan(row_ids=True).to_arrow()["_row_id"].to_pylist()
    assert sorted(row_ids) == list(range(16))
    history = [entry for entry in read.history() if entry.operation == "append"]
    assert sum(added_numbers(read, "added_rows")) == 16
    assert sum(added_numbers(read, "added_files")) == 2
    by_author = {
        entry.writer.get("query"): entry.details for entry in history if "of_changes" not in entry.details
    }
    assert {query: facts["added_rows"] for query, facts in by_author.items() if query} == {
        f"u{i}": i for i in range(1, 6)
    }
    assert len({entry.commit_id for entry in history}) == len(history) == 7


def test_partitions_have_one_file_each(store: Gated, catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, partition_by=["region"])
    appends = [lambda i=i: table.append(rows(i, region=f"r{i % 3}")) for i in range(1, 10)]
    ok(together(store, table, appends))
    assert store.asked["put data"] == 3
    assert ids(fresh()) == list(range(10))


@pytest.mark.parametrize("commit_lost", [False, True])
def test_threads_that_never_stop_lose_and_double_nothing(
    store: Gated, table: Table, commit_lost: bool
) -> None:
    """If answers of puts are lost, what is appended is found again: no append fails."""
    numbers = iter(range(1_000_000))

    met = threading.Event()

    def before(key: str) -> None:
        if is_data(key) and not met.is_set():
            met.set()
            turns = joint_appends._turns[table.table_head.tracked]
            wait_until(lambda: turns.waiting, "that another thread appends")
        take_a_moment(key)

    def after(key: str) -> None:
        if commit_lost and is_commit(key) and next(numbers) % 3 == 0:
            raise StorageError("no answer", location=key)

    store.before_put, store.after_put = before, after

    def work(thread: int) -> None:
        mine = table
        for i in range(8):
            mine = mine.append(rows(thread * 100 + i))
            if i == 4:
                assert set(range(thread * 100, thread * 100 + 5)) <= set(ids(mine))

    side_by_side(work)
    read = fresh()
    assert ids(read) == sorted(t * 100 + i for t in range(8) for i in range(8))
    assert read.version < 65
    assert sum(added_numbers(read, "added_rows")) == 64
    assert read.changes(1).to_arrow().num_rows == 64


def test_what_is_wrong_about_one_is_no_matter_of_the_others(
    store: Gated, catalog: Catalog, table: Table
) -> None:
    wrong = pa.table({"nope": [1]})
    outcomes = together(
        store,
        table,
        [*own(table, 1), lambda: table.append(wrong), *own(table, 2), lambda: table.append(rows())],
    )
    assert isinstance(outcomes[1], InvalidInput) and "nope" in str(outcomes[1])
    ok([outcomes[0], outcomes[2], outcomes[3]])
    assert ids(fresh()) == [0, 1, 2] and store.asked["put data"] == 1


def test_empty_appends_have_a_history(store: Gated, table: Table) -> None:
    ok(together(store, table, [lambda: table.append(rows())] * 3))
    read = fresh()
    assert ids(read) == [0]
    assert sum(added_numbers(read, "added_rows")) == 1


def test_columns_that_only_an_append_by_itself_can_have_are_appended(store: Gated, table: Table) -> None:
    dictionary = rows(1, 2).set_column(1, "region", pa.array(["a", "b"]).dictionary_encode())
    view = rows(3).set_column(1, "region", pa.array(["c"], pa.string_view()))
    sliced = rows(*range(100)).slice(4, 1)
    batches = pa.RecordBatchReader.from_batches(SCHEMA, rows(5, 6).to_batches(max_chunksize=1))
    parts: list[Any] = [dictionary, view, sliced, batches, rows(7).to_pandas()]
    ok(together(store, table, [lambda each=part: table.append(each) for part in parts]))  # type: ignore[misc]
    assert ids(fresh()) == list(range(8))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, TimeoutError])
@pytest.mark.parametrize("at", [is_data, is_commit])
def test_an_error_of_any_kind_leaves_no_thread_waiting_and_says_what_is_known(
    store: Gated, table: Table, error: type[BaseException], at: Callable[[str], bool]
) -> None:
    """Of a leader: what its group has is appended by each alone, or of unknown outcome."""
    threads = set[int]()

    def spoil(key: str) -> None:
        if at(key) and not threads and threading.get_ident() != first[0]:
            threads.add(threading.get_ident())
            raise error

    first = [0]
    store.before_put = spoil
    outcomes = together(store, table, own(table, 1, 2, 3))
    store.before_put = lambda key: None
    appended_ids = set(ids(fresh()))
    for i, outcome in enumerate(outcomes, 1):
        assert outcome is not None
        if isinstance(outcome, Table):
            assert i in appended_ids
        elif not isinstance(outcome, CommitUnknown):
            assert i not in appended_ids
    assert ids(table.append(rows(9)))[-1] == 9


def after_the_first(store: Gated) -> Callable[[], None]:
    """Return what waits until the first append's version is there, so that the group's is the next one."""

    def wait() -> None:
        # Of the table's log: the namespace's has that version from the start.
        while not any(
            is_commit(key) and "t-" in key and key.endswith("2.json") for key in list(store._objects)
        ):
            threading.Event().wait(0.001)

    return wait


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize("happened", [False, True])
def test_an_append_of_unknown_outcome_is_retried_by_its_own_id(
    store: Gated, catalog: Catalog, table: Table, happened: bool, is_expired: bool
) -> None:
    wait = after_the_first(store)

    def before(key: str) -> None:
        if is_data(key):
            wait()
        if is_commit(key) and key.endswith("3.json") and not happened:
            raise StorageError("no answer", location=key)

    def after(key: str) -> None:
        if is_commit(key) and key.endswith("3.json"):
            raise StorageError("no answer", location=key)

    store.before_put, store.after_put = before, after
    get = store.get
    store.get = lambda key: after(key) or get(key)  # type: ignore[method-assign]
    outcomes = together(store, table, own(table, 1, 2, 3))
    store.get = get  # type: ignore[method-assign]
    store.before_put = store.after_put = lambda key: None
    unknown = [table for table in outcomes if isinstance(table, CommitUnknown)]
    assert len(unknown) == 3 and len({each.commit_id for each in unknown}) == 3
    assert ids(fresh()) == ([0, 1, 2, 3] if happened else [0])
    bases = {table.table_head.tracked.location: 2}
    if is_expired:
        fresh().append(rows(10))
        fresh().append(rows(11))
        assert catalog.expire("t", retain_last=1, dry_run=False)
    for i, each_unknown in enumerate(unknown, 1):
        token = Token(commit_id=each_unknown.commit_id, bases=bases)
        if is_expired and not happened:
            with pytest.raises(ConflictError, match="has expired"):
                fresh().append(rows(i), token=token)
        else:
            fresh().append(rows(i), token=token)
            fresh().append(rows(i), token=token)
    other_numbers = [] if is_expired and not happened else [1, 2, 3]
    assert ids(fresh()) == [0, *other_numbers, *([10, 11] if is_expired else [])]


def test_appends_to_two_tables_of_one_place_are_not_mixed(
    store: Gated, catalog: Catalog, table: Table
) -> None:
    """One of them was loaded before the table was replaced, and says so."""
    old = catalog.load_table("t")
    table = engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", schema_of(table)))
    outcomes = together(store, table, [*own(table, 1), *own(old, 2), *own(table, 3)])
    assert isinstance(outcomes[1], CommitConflict)
    ok([outcomes[0], outcomes[2]])
    assert ids(fresh()) == [0, 1, 3]


def schema_of(table: Table) -> Any:
    return table.table_head.schema


def test_what_constraints_refuse_of_one_is_its_own_error(store: Gated, table: Table) -> None:
    table = table.alter([add(over(-1))])
    outcomes = together(store, table, own(table, 1, -5, 2))
    assert isinstance(outcomes[1], CheckViolated)
    ok([outcomes[0], outcomes[2]])
    assert ids(fresh()) == [0, 1, 2]


@pytest.mark.parametrize("others", [0, 4])
def test_values_of_identity_columns_are_given_once(store: Gated, catalog: Catalog, others: int) -> None:
    """Even if another process takes values meanwhile, and one of the appends has its own."""
    table = create(catalog, always=False)
    elsewhere = Catalog("memory://joint").load_table("t")

    def meanwhile() -> None:
        for _ in range(others):
            elsewhere.append(of("other"))

    appends: list[Append] = [lambda i=i: table.append(of(f"a{i}", f"b{i}")) for i in range(4)]  # type: ignore[misc]
    appends.append(lambda: table.append(given(1000, 1001, name="given")))
    outcomes = together(
        store,
        table,
        [*appends, lambda: table.append(pa.table({"nope": [1]}))],
        first=of("first"),
        meanwhile=meanwhile,
    )
    assert isinstance(outcomes[-1], InvalidInput)
    ok(outcomes[:-1])
    read = fresh().scan().to_arrow()
    assert Counter(read["of"].to_pylist()) == Counter(
        ["first", *(f"{c}{i}" for c in "ab" for i in range(4)), "given", "given", *["other"] * others]
    )
    assert len(set(read["id"].to_pylist())) == len(read) and None not in read["id"].to_pylist()


def test_values_that_a_refused_append_would_have_taken_are_left_for_the_others(
    store: Gated, catalog: Catalog
) -> None:
    """Two values are left: one for the first append, and one for that of the group which can be committed."""
    is_good = {"op": "=", "args": [{"col": ["of"]}, {"lit": "good", "type": "string"}]}
    check = {"kind": "check", "name": "g", "columns": [["of"]], "sql": "of = 'good'", "predicate": is_good}
    table = create(catalog, start=2**63 - 2).alter([add(check)])
    bad, good = of("bad", "bad"), of("good")
    outcomes = together(
        store, table, [lambda: table.append(bad), lambda: table.append(good)], first=of("good")
    )
    assert isinstance(outcomes[0], CheckViolated | InvalidInput)
    ok(outcomes[1:])
    assert ids(fresh()) == [2**63 - 2, 2**63 - 1]


def test_processes_that_propose_to_each_other_append_joint_rows_once(store: Gated) -> None:
    catalogs = [Catalog("memory://joint", log_options=LogOptions(proposals=True)) for _ in range(2)]
    catalogs[0].create_table("t", SCHEMA)
    store.before_put = take_a_moment

    def work(number: int) -> None:
        table = catalogs[number % 2].load_table("t")
        for i in range(5):
            table = table.append(rows(number * 100 + i))

    with patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0):
        side_by_side(work)
    read = fresh()
    assert ids(read) == sorted(t * 100 + i for t in range(8) for i in range(5))
    assert sum(added_numbers(read, "added_rows")) == 40
    assert not fsck.check_warehouse(Catalog("memory://joint")._logs, deep=True).of(Severity.DAMAGE)


def added_numbers(table: Table, what: str) -> list[int]:
    return [int(str(entry.details.get(what, 0))) for entry in table.history()]


@pytest.mark.parametrize("wrong", ["count", "rows", "none", "left"])
def test_a_version_that_says_other_rows_of_its_authors_than_it_adds_is_damage(
    store: Gated, catalog: Catalog, table: Table, wrong: str
) -> None:
    ok(together(store, table, own(table, 1, 2)))
    assert damage(catalog) == []
    table = fresh()
    parts = [RowsAppended(rows=1)] * 2
    of_changes = {"count": 3, "rows": 2, "none": 2, "left": 0}[wrong]
    change = FilesChanged(operation="append", added_rows=3 if wrong == "rows" else 2, of_changes=of_changes)
    events: list[TableEvent] = [*([] if wrong == "none" else parts), *([] if wrong == "left" else [change])]
    table.table_head.tracked.commit(
        table.table_head.tracked.current(), lambda view, passed: Draft(events=encode(events))
    )
    assert [kind for kind in damage(catalog) if kind == "authors-rows"] == ["authors-rows"]


def damage(catalog: Catalog) -> list[str]:
    return [finding.kind for finding in fsck.check_warehouse(catalog._logs, deep=True).of(Severity.DAMAGE)]


def test_an_append_to_a_table_that_was_dropped_or_renamed_meanwhile_says_so(
    store: Gated, catalog: Catalog, table: Table
) -> None:
    outcomes = together(store, table, own(table, 1, 2), meanwhile=lambda: catalog.drop_table("t"))
    assert [type(table) for table in outcomes] == [NoSuchTable, NoSuchTable]
    catalog.create_table("t", SCHEMA)
    table = catalog.load_table("t")
    outcomes = together(
        store, table, own(table, 3, 4), meanwhile=lambda: Catalog("memory://joint").rename_table("t", "u")
    )
    assert [type(table) for table in outcomes] == [TableRenamed, TableRenamed]
    assert ids(catalog.load_table("u")) == []

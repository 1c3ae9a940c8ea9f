"""Upkeep by writers, after their commits: it comes by itself, takes a tenth of the time, and no writer notices."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import PATIENCE_S

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.core.state import FileGroup
from lakelog.catalog.keeping.upkeep import automatic
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.catalog.keeping.upkeep.compacting import step
from lakelog.log import LogOptions, open_store
from lakelog.log.errors import FormatError, InvalidInput, StorageError
from lakelog.log.stores.counting_store import CountingStore
from lakelog.spark.open_catalog import ServedCatalog

SCHEMA = pa.schema({"id": pa.int64()})
AUTO = {"lakelog.maintenance": "auto"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, schema=SCHEMA)


class Now:
    """A clock that stands still, unless it is moved."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What would run in the background."""
    found: list[Callable[[], None]] = []
    monkeypatch.setattr(automatic, "_begin_thread", found.append)
    return found


def catalog_of(now: Now | None = None, **more: Any) -> Catalog:
    options = LogOptions(**more) if now is None else LogOptions(monotonic_s=now, **more)
    catalog = Catalog(f"memory://{uuid.uuid4().hex}", log_options=options)
    catalog.create_namespace("shop")
    return catalog


def test_files_stay_few_by_themselves_and_the_history_says_whose_commits_these_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a slow machine, a tenth of the time may be too little for the first look.
    monkeypatch.setattr(automatic, "SHARE", 1e9)
    catalog = catalog_of()
    table = catalog.create_table("shop.orders", SCHEMA, properties=AUTO)
    for id in range(40):
        table = table.append(rows(id))
    assert wait_for_upkeep()
    table = table.refresh()
    operations = [entry.operation for entry in table.history()]
    assert operations.count("append") == 40 and operations.count("compact") >= 1
    assert table.file_count < 40 and sorted(table.to_arrow()["id"].to_pylist()) == list(range(40))
    assert table.changes(2, table.version).to_arrow().num_rows == 40
    assert table.health().last_day.upkeep == operations.count("compact")


def test_only_the_writer_of_every_eighth_version_looks_and_only_where_the_policy_is_auto(
    begun: list[Callable[[], None]],
) -> None:
    catalog = catalog_of()
    table = catalog.create_table("shop.orders", SCHEMA)
    for id in range(14):
        table = table.append(rows(id))
    assert (table.version, begun) == (15, [])
    catalog.alter_namespace("shop", set=AUTO)  # is inherited
    table = table.append(rows(99))
    (work,) = begun
    for id in range(7):
        table = table.append(rows(id))
    work()
    assert table.refresh().file_count == 1 and len(begun) == 1


def test_an_append_is_as_many_requests_as_without(
    begun: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stores: list[CountingStore] = []

    def counting(url: str, options: Any) -> Any:
        stores.append(CountingStore(open_store(url, options)))
        return stores[-1]

    def requests(properties: dict[str, str]) -> list[dict[str, int]]:
        stores.clear()
        catalog = catalog_of(in_background=lambda name, work: None)
        table = catalog.create_table("shop.orders", SCHEMA, properties=properties)
        found = []
        for id in range(20):
            for store in stores:
                store.reset()
            table = table.append(rows(id))
            kinds = [store.by_kind for store in stores]
            found.append({kind: sum(each_kind[kind] for each_kind in kinds) for kind in set().union(*kinds)})
        return found

    monkeypatch.setattr(places, "open_store", counting)
    with_upkeep = requests(AUTO)
    assert begun and with_upkeep == requests({})
    assert with_upkeep[-1] == {"put": 1, "put_if_absent": 1}


def slow_steps(monkeypatch: pytest.MonkeyPatch, now: Now) -> list[float]:
    """Let each group take 5 s; return when each has begun."""
    took: list[float] = []
    real = step

    def slow(*given: Any, **how: Any) -> Any:
        took.append(now.s)
        now.s += 5.0
        return real(*given, **how)

    monkeypatch.setattr("lakelog.catalog.keeping.upkeep.automatic.step", slow)
    return took


def test_it_takes_a_tenth_of_the_time_and_one_group_more(
    begun: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Now()
    catalog = catalog_of(now)
    table = catalog.create_table("shop.orders", SCHEMA, properties=AUTO)
    took = slow_steps(monkeypatch, now)
    for id in range(200):
        table = table.append(rows(id))
        now.s += 1.0
        while begun:
            begun.pop()()
    # 200 s of writes, of which a tenth are four groups of 5 s; these take time themselves.
    assert 4 <= len(took) <= 6
    assert all(later - earlier >= 50.0 for earlier, later in zip(took[1:], took[2:], strict=False))


@pytest.mark.parametrize(
    ("default", "own", "files"),
    [
        ("auto", {}, 1),
        ("auto", {"lakelog.maintenance": "on-demand"}, 15),
        ("on-demand", {}, 15),
        ("off", AUTO, 15),
    ],
)
def test_a_catalog_s_default_holds_where_no_property_says_otherwise(
    begun: list[Callable[[], None]], default: str, own: dict[str, str], files: int
) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4().hex}", maintenance=default)
    table = catalog.create_table("orders", SCHEMA, properties=own)
    for id in range(15):
        table = table.append(rows(id))
    while begun:
        begun.pop()()
    assert table.refresh().file_count == files


@pytest.mark.parametrize(("settings", "files"), [({}, 1), ({"maintenance": "on-demand"}, 15)])
def test_sessions_of_spark_keep_what_they_write_unless_a_setting_says_otherwise(
    begun: list[Callable[[], None]], settings: dict[str, str], files: int
) -> None:
    catalog = ServedCatalog({"warehouse": f"memory://{uuid.uuid4().hex}", **settings}, "4.3").outside
    table = catalog.create_table("orders", SCHEMA)
    for id in range(15):
        table = table.append(rows(id))
    while begun:
        begun.pop()()
    assert table.refresh().file_count == files


def test_without_a_user_s_word_it_takes_a_tenth_of_the_time_of_writes(
    begun: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Now()
    catalog = Catalog(
        f"memory://{uuid.uuid4().hex}", log_options=LogOptions(monotonic_s=now), maintenance="auto"
    )
    table = catalog.create_table("orders", SCHEMA)
    took = slow_steps(monkeypatch, now)
    for id in range(200):
        write = engine.begin_write(table)
        now.s += 1.0  # an engine's executors write
        table = engine.commit_write(
            table, write, "append", written_files(table.table_head.tracked, table.metadata, write, rows(id))
        )
        now.s += 9.0  # nothing is written
        while begun:
            begun.pop()()
    # 200 s of writes in 2,000 s, of which a tenth are four groups of 5 s.
    assert 4 <= len(took) <= 6


def test_files_of_others_and_large_groups_are_left_to_maintain(
    begun: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(9):
        pq.write_table(rows(100 + number), tmp_path / f"{number}.parquet")
    # By a clock that stands still, there is always time.
    catalog = Catalog(
        str(tmp_path / "lake"),
        options={"fsync": "off"},
        maintenance="auto",
        log_options=LogOptions(monotonic_s=Now()),
    )
    table = catalog.create_table("orders", SCHEMA).add_files(str(tmp_path))
    table = table.alter([{"change": "set-property", "key": f"k{at}", "value": "v"} for at in range(1)])
    for id in range(4):
        table = table.append(rows(id))
    assert table.version < 8
    while table.version < 16:
        table = table.append(rows(table.version))
    monkeypatch.setattr(automatic, "STEP_BYTES_MAX", 1)
    begun.pop()()
    assert table.refresh().version == table.version, "too large"
    monkeypatch.undo()
    monkeypatch.setattr(automatic, "_begin_thread", begun.append)
    while table.version < 24:
        table = table.append(rows(table.version))
    own = sum(path.startswith("data/") for path in table.plan()["path"].to_pylist())
    begun.pop()()
    paths = table.refresh().plan()["path"].to_pylist()
    assert sum(not path.startswith("data/") for path in paths) == 9
    assert sum(path.startswith("data/") for path in paths) < own


@pytest.mark.parametrize("is_late", [False, True])
def test_a_table_can_still_be_fast_forwarded_to_a_branch(
    begun: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4().hex}", maintenance="auto")
    table = catalog.create_table("orders", SCHEMA)
    while table.version < 16:
        table = table.append(rows(table.version))

    def late(*given: Any, **how: Any) -> Any:
        catalog.load_table("orders").create_branch("trial")
        return step(*given, **how)

    if is_late:
        monkeypatch.setattr(automatic, "step", late)
    else:
        table.create_branch("trial")
    begun.pop()()
    catalog.load_table("orders", ref="trial").append(rows(100))
    finished_table = catalog.load_table("orders").fast_forward("main", "trial")
    assert 100 in finished_table.to_arrow()["id"].to_pylist()
    assert not {finding.kind for finding in catalog.fsck(deep=True).found} - {"hint-missing"}, (
        "no file is left over"
    )


def test_a_clustered_table_is_clustered_by_its_writers(begun: list[Callable[[], None]]) -> None:
    catalog = catalog_of(Now())
    wide = pa.schema({"id": pa.int64(), "part": pa.int64()})
    table = catalog.create_table("shop.items", wide, cluster_by=["id", "part"], properties=AUTO)
    expected = []
    while table.version < 40:
        ids = [table.version * 31 % 97, table.version * 57 % 89]
        expected += ids
        table = table.append(pa.table({"id": ids, "part": ids[::-1]}, schema=wide))
        while begun:
            begun.pop()()
            table = table.refresh()
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(expected)
    files = table.table_head.all_files()
    assert sum(row is not None for row in files["curve"].to_pylist()) >= 1 and len(files) < 15
    operations = [entry.operation for entry in table.history()]
    assert "compact" in operations and operations.count("append") == len(expected) // 2
    # A stream sees the writers' rows once, and nothing of that.
    assert table.changes(3).to_arrow().num_rows == len(expected) - 2 * (3 - 2)


def test_a_writer_leaves_to_others_what_was_due_at_their_versions() -> None:
    fourth = automatic.UpkeepTurns((4,))
    assert [fourth.has(newest) for newest in (24, 25, 32, 33)] == [False, True, True, True]
    both = fourth.and_(automatic.UpkeepTurns((7,)))
    assert [both.has(newest) for newest in (32, 40, 48, 56)] == [True, False, False, True]
    # What was left for so long that it is taken over, by one in every so many.
    late = [automatic.UpkeepTurns((turn,)).has(16) for turn in range(2, 70)]
    assert [turn for turn, is_ours in enumerate(late, start=2) if is_ours] == [2, 18, 34, 66]


def test_groups_that_are_left_to_others_do_not_hold_up_those_behind_them() -> None:
    files = pa.table(
        {"path": ["data/a", "data/b", "lent/c", "data/d", "data/e"], "version": [8, 16, 16, 16, 16]}
    )
    sizes = [1, automatic.STEP_BYTES_MAX + 1, 1, 3, 4]
    groups = [FileGroup(files=1, rows=1, deleted=0, size_bytes=size) for size in sizes]
    planned_files, second = (files, groups), automatic.UpkeepTurns((2,))

    def paths(**how: Any) -> list[str]:
        own, groups = automatic._ours(planned_files, second, **how)
        assert len(groups) == own.num_rows
        return own["path"].to_pylist()

    assert paths() == ["lent/c", "data/d", "data/e"]
    assert paths(most=1) == ["lent/c"] and paths(only_own=True) == ["data/d", "data/e"]


def test_a_turn_for_which_there_was_no_time_is_not_forgotten(
    begun: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog_of(Now()).create_table("shop.orders", SCHEMA, properties=AUTO)
    with monkeypatch.context() as busy:
        busy.setattr(automatic.KeepingUp, "_may_work", lambda *given: False)
        while table.version < 20:
            table = table.append(rows(table.version))
        while begun:
            begun.pop()()
    assert len(table.refresh().plan()) == 19
    while table.version < 24:
        table = table.append(rows(table.version))
    begun.pop()()
    assert len(table.refresh().plan()) < 8


def test_a_default_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="on-demand, auto"):
        Catalog(f"memory://{uuid.uuid4().hex}", maintenance="sometimes")


def test_a_writer_does_not_notice_that_upkeep_fails(
    begun: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = catalog_of()
    table = catalog.create_table("shop.orders", SCHEMA, properties=AUTO)

    def fails(*given: Any, **how: Any) -> Any:
        raise StorageError("no space left on device", location="data/")

    with monkeypatch.context() as patch:
        patch.setattr("lakelog.catalog.keeping.upkeep.automatic.step", fails)
        for id in range(20):
            table = table.append(rows(id))
            while begun:
                begun.pop()()
    assert table.refresh().file_count == 20
    catalog.drop_table("shop.orders")
    assert begun == []


def test_a_writer_does_not_notice_a_link_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = catalog_of()
    table = catalog.create_table("shop.orders", SCHEMA)

    def refused(location: str) -> Any:
        raise FormatError(f"a name leads to a namespace at {location}")

    with monkeypatch.context() as patch:
        patch.setattr(table.table_head.logs, "namespace", refused)
        assert table.append(rows(1)).version == 2


PROGRAM = """
import sys, threading, time
import pyarrow as pa
from lakelog.catalog import Catalog
from lakelog.catalog.keeping.upkeep import automatic

has_begun = threading.Event()

def endless(head, goal, files, groups, check, **how):
    print("begun", flush=True)
    has_begun.set()
    while True:
        check()
        time.sleep(0.02)

automatic.step = endless
automatic.END_S = 1e6  # a step that does not end by itself would run on
automatic.SHARE = 1e9  # the first look may take more than a tenth of a slow machine's time
catalog = Catalog(sys.argv[1], options={"fsync": "off"})
catalog.create_namespace("shop")
schema = pa.schema({"id": pa.int64()})
table = catalog.create_table("shop.orders", schema, properties={"lakelog.maintenance": "auto"})
for id in range(17):
    table = table.append(pa.table({"id": [id]}, schema=schema))
has_begun.wait()
print("ends", flush=True)
"""


def test_a_process_that_ends_does_not_wait_for_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "lake")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "begun\n" and process.stdout.readline() == "ends\n"
        assert process.wait(PATIENCE_S) == 0, process.stderr.read()


LATE = """
import threading
import pyarrow as pa
from lakelog.catalog import Catalog

def late():
    catalog = Catalog("memory://late", maintenance="auto")
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.schema({"id": pa.int64()}))
    for id in range(9):
        table = table.append(pa.table({"id": [id]}))
    print(table.version, flush=True)

threading._register_atexit(late)
"""


def test_a_process_that_ends_commits_to_a_table_that_is_kept_up() -> None:
    """Nothing of upkeep is loaded before; a commit that stands is not reported as failed."""
    process = subprocess.run([sys.executable, "-c", LATE], check=True, capture_output=True, text=True)
    assert (process.stdout, process.stderr) == ("10\n", "")

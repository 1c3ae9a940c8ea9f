"""The Python side as a process: shared, killed at the worst moments, of the wrong version, not there."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.patience import PATIENCE_S, wait_until
from tests.spark.conftest import children
from tests.spark.hooks import HOOK

NEW = sys.executable
"""A Python that is not warm: what is stopped by its process id is what answers."""


def wrapper(folder: Path, text: str) -> str:
    """Return a new Python that runs `text` before it becomes the Python side, and ends as that does."""
    script = folder / "python"
    script.write_text(f"#!{sys.executable}\n{text}\nfrom lakelog.spark.bridge import main\nmain()\n")
    script.chmod(0o755)
    return str(script)


# Dies at the n-th put-if-absent after the file `armed` appeared with n in it, before or after it took effect.
DEADLY = """
import os, pathlib, signal, threading
from lakelog.log.stores.local_store import LocalStore
armed, original, lock = pathlib.Path({armed!r}), LocalStore.put_if_absent, threading.Lock()
def deadly(self, key, data):
    with lock:
        left = int(armed.read_text()) - 1 if armed.exists() else -1
        if left == 0:
            armed.unlink()
            if {after!r}:
                original(self, key, data)
            os.kill(os.getpid(), signal.SIGKILL)
        if left > 0:
            armed.write_text(str(left))
    return original(self, key, data)
LocalStore.put_if_absent = deadly
"""

# The process that an intent waits for is dead, and the next one would wait for it for seconds.
IMPATIENT = """
from dataclasses import replace
from lakelog.log import following
patient = following.wait_or_abort
following.wait_or_abort = lambda place, commit, options: patient(
    place, commit, replace(options, patience_s=0.1, patience_each_s=0.0))
"""

STATEMENTS = [
    "INSERT INTO lake.a.t VALUES (7, 'z')",
    "INSERT OVERWRITE lake.a.t VALUES (7, 'z')",
    "CREATE TABLE lake.a.u AS SELECT id + 1 AS more FROM lake.a.t",
    "CREATE TABLE lake.a.u (x INT)",
    "CREATE OR REPLACE TABLE lake.a.t AS SELECT 5 AS five",
    "ALTER TABLE lake.a.t ADD COLUMN extra INT",
    "ALTER TABLE lake.a.t RENAME TO a.renamed",
    "DELETE FROM lake.a.t WHERE id < 100",
    "UPDATE lake.a.t SET k = 'u' WHERE id = 1",
    "MERGE INTO lake.a.t USING (SELECT 2 AS id, 'm' AS k) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "TRUNCATE TABLE lake.a.t",
    "DROP TABLE lake.a.t",
    "CREATE NAMESPACE lake.a.b",
    "ALTER NAMESPACE lake.a SET PROPERTIES ('k' = 'v')",
    "DROP NAMESPACE lake.a CASCADE",
]


def state(lake):
    """All that can be seen in a warehouse: names, properties, rows, and how often each table was changed."""
    catalog = lake.catalog
    seen = {(): catalog.list_namespaces()}
    for namespace in catalog.list_namespaces():
        properties = {k: v for k, v in catalog.load_namespace(namespace).items() if k != "owner"}
        seen[namespace] = (properties, catalog.list_namespaces(namespace))
        for name in catalog.list_tables(namespace):
            table = catalog.load_table(name)
            # Not its version: an attempt that was killed before its decision is one, and changes nothing.
            seen[name] = (table.row_count, [entry.operation for entry in table.history()])
    return seen


def prepare(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id, 'a' AS k")


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        pytest.param(statement, is_after, marks=[] if number % 4 == 2 * is_after else [pytest.mark.slow])
        for number, statement in enumerate(STATEMENTS)
        for is_after in (False, True)
    ],
)
def test_a_kill_in_the_middle_of_a_commit_loses_and_doubles_nothing(
    make_lake, warm, tmp_path, statement, after
):
    undisturbed_lake = make_lake(str(tmp_path / "undisturbed"), python=warm.program(tmp_path))
    prepare(undisturbed_lake)
    undisturbed_lake.sql(statement)
    expected = state(undisturbed_lake)
    for moment in range(1, 20):
        armed_file = tmp_path / f"armed{moment}"
        folder = tmp_path / f"bin{moment}"
        folder.mkdir()
        lake = make_lake(
            str(tmp_path / f"warehouse{moment}"),
            python=warm.program(folder, IMPATIENT + DEADLY.format(armed=str(armed_file), after=after)),
        )
        prepare(lake)
        armed_file.write_text(str(moment))
        lake.sql(statement)
        assert state(lake) == expected, f"killed at put {moment}"
        if armed_file.exists():
            break
    assert moment > 1, "the statement was never disturbed"


@pytest.mark.parametrize("statement", [s for s in STATEMENTS if s.startswith(("CREATE", "ALTER", "DROP"))])
def test_a_kill_before_a_change_begins_loses_nothing(make_lake, warm, tmp_path, statement):
    armed_file = tmp_path / "armed"
    dying_text = f"""{HOOK}
import os, pathlib, signal
def dying(original):
    def once(at, asked):
        if pathlib.Path({str(armed_file)!r}).exists():
            pathlib.Path({str(armed_file)!r}).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(at, asked)
    return once
for method in ("token", "prepare_table", "stage"):
    hook(method, dying)
"""
    lake = make_lake(python=warm.program(tmp_path, dying_text))
    undisturbed_lake = make_lake(str(tmp_path / "undisturbed"))
    for each_lake in (lake, undisturbed_lake):
        prepare(each_lake)
        if each_lake is lake:
            armed_file.touch()
        each_lake.sql(statement)
    assert not armed_file.exists(), "the statement was never disturbed"
    assert state(lake) == state(undisturbed_lake)


def test_a_child_killed_while_idle_is_started_again(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    for child in children(lake.spark):
        os.kill(child, signal.SIGKILL)
    assert lake.sql("SELECT * FROM lake.t") == [(1,)]
    # A request that reaches a process which is about to die is repeated in another one than those that follow.
    assert len(children(lake.spark)) <= 2


@pytest.mark.parametrize(
    ("statement", "rows"), [("SELECT count(*) FROM lake.t", [(3,)]), ("INSERT INTO lake.t VALUES (9)", [])]
)
def test_requests_that_are_under_way_when_a_child_is_killed_are_retried(make_lake, statement, rows):
    lake = make_lake(python=NEW)
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(3)")
    (child,) = children(lake.spark)
    os.kill(child, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lake.sql, statement)
        time.sleep(1)
        assert not answer.done()
        os.kill(child, signal.SIGKILL)
        assert answer.result(60) == rows
    assert lake.catalog.load_table("t").row_count == (3 if rows else 4)


def test_sessions_and_threads_share_one_child(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    other = lake.spark.newSession()
    for key in ("", ".warehouse", ".python", ".fsync"):
        setting = f"spark.sql.catalog.{lake.name}{key}"
        other.conf.set(setting, lake.spark.conf.get(setting))

    def write(number):
        session = lake.spark if number % 2 else other
        session.sql(f"INSERT INTO {lake.name}.t VALUES ({number})")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(12)))
    assert lake.sorted("SELECT * FROM lake.t") == sorted([(n,) for n in range(12)], key=repr)
    assert len(children(lake.spark)) == 1


def test_a_slow_request_holds_up_no_other_whichever_thread_reads_the_answers(make_lake, warm, tmp_path):
    slow = f"""{HOOK}
import pathlib, time
def patient(original):
    def call(at, asked):
        released = pathlib.Path({str(tmp_path)!r}, *asked.namespace)
        while not released.exists():
            time.sleep(0.01)
        return original(at, asked)
    return call
hook("list_relations", patient)
"""
    lake = make_lake(python=warm.program(tmp_path, slow))
    for namespace in ("first", "second"):
        lake.sql(f"CREATE NAMESPACE lake.{namespace}")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    with ThreadPoolExecutor(2) as pool:
        listed = []
        for namespace in ("first", "second"):
            listed.append(pool.submit(lake.sql, f"SHOW TABLES IN lake.{namespace}"))
            time.sleep(0.5)
            assert lake.sql("SELECT * FROM lake.t") == [(1,)]
        for namespace, answer in zip(("first", "second"), listed, strict=True):
            (tmp_path / namespace).touch()
            assert answer.result(60) == []
            assert lake.sql("SELECT * FROM lake.t") == [(1,)]


def test_what_libraries_print_does_not_reach_the_pipe(make_lake, warm, tmp_path):
    noisy = """
import os
from lakelog.spark.dispatch import RequestDispatch
original = RequestDispatch.answer
def answer(self, *args, **named):
    print("noise", flush=True)
    os.write(1, b"more noise")
    return original(self, *args, **named)
RequestDispatch.answer = answer
"""
    lake = make_lake(python=warm.program(tmp_path, noisy))
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    assert lake.sql("SELECT * FROM lake.t") == [(1,)]


def test_a_jar_and_a_package_of_different_versions_refuse_each_other(make_lake, warm, tmp_path):
    lake = make_lake(
        python=warm.program(tmp_path, "import lakelog.spark.dispatch as d\nd.version = lambda: '99.9'")
    )
    with pytest.raises(Exception, match="99.9") as error:
        lake.sql(f"SHOW TABLES IN {lake.name}")
    assert "lakelog.spark jar" in str(error.value)


def test_a_python_without_lakelog_fails_with_how_to_get_it(make_lake, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    lake = make_lake(python=str(bare))
    with pytest.raises(Exception, match="No module named") as error:
        lake.sql(f"SHOW TABLES IN {lake.name}")
    assert "pip install /path/to/clone" in str(error.value) and str(bare) in str(error.value)


def test_a_python_that_is_not_there_is_named(make_lake):
    lake = make_lake(python="/nowhere/python")
    places = r"driver\.python \(.*PYSPARK_DRIVER_PYTHON \(.*PYSPARK_PYTHON \(.*python3 on the PATH"
    with pytest.raises(Exception, match=f"'/nowhere/python'.*{places}"):
        lake.sql(f"SHOW TABLES IN {lake.name}")


def test_a_child_that_dies_at_every_request_ends_in_one_clear_error(make_lake, warm, tmp_path):
    dying_text = f"""{HOOK}
import os, signal
hook("list_relations", lambda original: lambda at, asked: os.kill(os.getpid(), signal.SIGKILL))
"""
    lake = make_lake(python=warm.program(tmp_path, dying_text))
    with pytest.raises(Exception, match="ended 4 times during 'list_relations'. It changes nothing"):
        lake.sql(f"SHOW TABLES IN {lake.name}")


KILLED = "import os, pathlib, signal\n"


def test_a_child_that_is_killed_as_it_starts_is_started_again_and_else_said_to_be_killed(make_lake, tmp_path):
    armed_file = tmp_path / "armed"
    armed_file.touch()
    once = f"{KILLED}at = pathlib.Path({str(armed_file)!r})\nif at.exists(): at.unlink(), os.kill(os.getpid(), 9)"
    lake = make_lake(str(tmp_path / "once"), python=wrapper(tmp_path, once))
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    assert not armed_file.exists()
    always = tmp_path / "always"
    always.mkdir()
    lake = make_lake(str(tmp_path / "never"), python=wrapper(always, f"{KILLED}os.kill(os.getpid(), 9)"))
    for statement, happened_text in (
        (f"SHOW TABLES IN {lake.name}", "It changes nothing"),
        (f"CREATE NAMESPACE {lake.name}.n", "nothing was changed"),
    ):
        with pytest.raises(Exception, match="killed by signal 9") as error:
            lake.sql(statement)
        assert happened_text in str(error.value) and "pip install" not in str(error.value)
        assert "not known" not in str(error.value)


def test_a_change_whose_process_dies_before_it_begins_is_said_not_to_have_begun(make_lake, warm, tmp_path):
    dying_text = f"""{HOOK}
import os, signal
hook("token", lambda original: lambda at, asked: os.kill(os.getpid(), signal.SIGKILL))
"""
    lake = make_lake(python=warm.program(tmp_path, dying_text))
    with pytest.raises(Exception, match="had not begun, so nothing was changed"):
        lake.sql(f"CREATE NAMESPACE {lake.name}.n")
    assert lake.catalog.list_namespaces() == []


def test_modules_of_the_folder_that_it_runs_in_are_not_imported(make_lake, tmp_path):
    """Nor do they hide the installed ones if the driver has lakelog from there itself."""
    ran = tmp_path / "ran"
    for name in ("msgspec", "platform", "pyarrow"):
        (tmp_path / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write({name!r})")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncd {tmp_path}\nexec {sys.executable} "$@" {tmp_path}\n')
    python.chmod(0o755)
    lake = make_lake(python=str(python))
    lake.sql(f"CREATE NAMESPACE {lake.name}.n")
    assert not ran.exists()
    assert lake.catalog.list_namespaces() == [("n",)]


def test_modules_are_looked_for_where_the_driver_has_them(spark, tmp_path):
    jvm = spark.sparkContext._jvm
    path, some = jvm.org.apache.spark.sql.lakelog.bridge.PythonPath, jvm.scala.Option.apply
    assert path.cleaned(f":/a:.:b::{tmp_path}:../c").get() == f"/a:{tmp_path}"
    assert path.cleaned(":.").isEmpty()
    files = "/x/lakelog.zip, file:///y/more.EGG,/x/one.py,s3://b/z.zip,hdfs:/w.zip,own.zip"
    arguments = path.arguments(some("/d/own:e::/d/own"), some(files)).mkString("|")
    first, _, start, *folders = arguments.split("|")
    assert (first, folders) == ("-P", ["/d/own", "/x/lakelog.zip", "/y/more.EGG"])
    (tmp_path / "only_here.py").touch()
    code = start.replace("from lakelog.spark.bridge import main; main()", "import only_here")
    subprocess.run([sys.executable, "-P", "-c", code, str(tmp_path)], check=True, cwd="/")


def test_the_child_ends_with_its_jvm(tmp_path):
    requests = subprocess.Popen(
        [sys.executable, "-m", "lakelog.spark.bridge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert requests.stdin is not None and requests.stdout is not None
    requests.stdin.close()
    assert requests.wait(PATIENCE_S) == 0
    requests.stdout.close()


def test_a_stopped_child_does_not_hold_up_that_of_another_python(make_lake, warm, tmp_path):
    stopped_lake = make_lake(str(tmp_path / "one"), python=NEW)
    free = make_lake(str(tmp_path / "two"), python=warm.program(tmp_path))
    stopped_lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    (child,) = children(stopped_lake.spark)
    os.kill(child, signal.SIGSTOP)
    is_done = threading.Event()
    try:
        free.sql("CREATE TABLE lake.t AS SELECT 2 AS id")
        is_done.set()
    finally:
        os.kill(child, signal.SIGCONT)
    assert is_done.is_set()
    assert free.sql("SELECT * FROM lake.t") == [(2,)]


def interrupt_the_asking_thread(lake):
    """Interrupt the thread of Spark's that waits for an answer, as the end of a query or of its session does."""
    threads = lake.spark.sparkContext._jvm.java.lang.Thread.getAllStackTraces()
    asking_threads = [
        thread for thread, frames in threads.items() if any("bridge.Child.ask" in str(f) for f in frames)
    ]
    assert len(asking_threads) == 1
    asking_threads[0].interrupt()


def wait_for(path):
    wait_until(path.exists, f"{path}")


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO lake.t VALUES (2)", "CREATE OR REPLACE TABLE lake.t AS SELECT id FROM range(1, 3)"],
)
def test_a_statement_that_is_interrupted_while_the_answer_of_its_commit_is_lost_retries(
    make_lake, warm, tmp_path, statement
):
    committed_path, go_on = tmp_path / "committed", tmp_path / "go_on"
    dying_text = f"""{HOOK}
import os, pathlib, signal, subprocess, time
committed, go_on = pathlib.Path({str(committed_path)!r}), pathlib.Path({str(go_on)!r})
def once(original):
    def call(at, asked):
        answer = original(at, asked)
        if not committed.exists():
            committed.touch()
            while not go_on.exists():
                time.sleep(0.01)
            # It keeps the end of standard error from being seen at once.
            subprocess.Popen(["sleep", "2"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    return call
hook("commit_write", once)
hook("commit_stage", once)
"""
    make_lake().sql("CREATE TABLE lake.t AS SELECT 1L AS id")
    lake = make_lake(python=warm.program(tmp_path, dying_text))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lake.sql, statement)
        wait_for(committed_path)
        try:
            interrupt_the_asking_thread(lake)
        finally:
            go_on.touch()  # else the statement waits for ever, and the pool for it
        future.result(60)
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]
    assert lake.catalog.load_table("t").version == 2


def test_an_answer_that_the_driver_has_no_room_for_is_an_error_of_its_own_request(make_lake, warm, tmp_path):
    # As long as a frame can be, which is more than a JVM has for one array.
    huge = f"""
import pathlib, struct
import lakelog.spark.bridge as bridge
original = bridge.write_frame
def write_frame(stream, frame):
    if not pathlib.Path({str(tmp_path)!r}, "armed").exists():
        return original(stream, frame)
    stream.write(struct.pack(">IIQ", 2**31 - 1, 2, frame.number) + b"{{}}")
    left, zeros = 2**31 - 1 - 14, bytes(1 << 20)
    while left:
        left -= stream.write(zeros[:left])
    stream.flush()
bridge.write_frame = write_frame
"""
    lake = make_lake(python=warm.program(tmp_path, huge))
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    (tmp_path / "armed").touch()
    with pytest.raises(Exception, match=r"2147483647 bytes.*spark\.driver\.memory"):
        lake.sql(f"SHOW TABLES IN {lake.name}")
    (tmp_path / "armed").unlink()
    lake.sql("CALL lake.system.commit_transaction()")
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]


# Does what it is asked, and dies before it can say so: every time, so that Spark never learns what happened.
MUTE = (
    HOOK
    + """
import os, signal
def then_die(original):
    def call(at, asked):
        original(at, asked)
        os.kill(os.getpid(), signal.SIGKILL)
    return call
for method in ("commit_write", "commit_stage", "commit_rows"):
    hook(method, then_die)
"""
)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO lake.t VALUES (2)", [(1,), (2,)]),
        ("INSERT OVERWRITE lake.t VALUES (2)", [(2,)]),
        ("UPDATE lake.t SET id = 2", [(2,)]),
        (
            "MERGE INTO lake.t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
            [(1,), (2,)],
        ),
        ("CREATE OR REPLACE TABLE lake.t AS SELECT 2 AS id", [(2,)]),
    ],
)
def test_files_stay_when_it_is_not_known_whether_their_commit_happened(
    make_lake, warm, tmp_path, statement, rows
):
    lake = make_lake()
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    mute = make_lake(python=warm.program(tmp_path, MUTE))
    with pytest.raises(Exception, match="not known") as error:
        mute.sql(statement)
    assert "history" in str(error.value)
    assert lake.sorted("SELECT * FROM lake.t") == rows
    assert lake.catalog.load_table("t").version == 2


# What is asked of the warehouse `…/poisoned` kills its process, and `…/slow` answers when the file `go_on` is there.
OF_ONE_CATALOG = """
import os, pathlib, signal, time
go_on = pathlib.Path({go_on!r})
def wrap(original):
    def call(at, asked):
        if at.outside.warehouse.endswith("poisoned"):
            os.kill(os.getpid(), signal.SIGKILL)
        while at.outside.warehouse.endswith("slow") and not go_on.exists():
            time.sleep(0.01)
        return original(at, asked)
    return call
hook("list_relations", wrap)
"""


def test_a_hundred_catalogs_have_one_process_and_a_transaction_another(make_lake, tmp_path):
    lakes = [make_lake(str(tmp_path / f"warehouse{number}")) for number in range(100)]
    for number, lake in enumerate(lakes):
        lake.sql(f"CREATE NAMESPACE lake.n{number}")
    assert len(children(lakes[0].spark)) == 1
    first, last = lakes[0], lakes[-1]
    assert last.sql(f"SHOW NAMESPACES IN {last.name}") == [("n99",)]
    for lake in (first, last):
        lake.sql("CALL lake.system.begin_transaction()")
        lake.sql("CREATE TABLE lake.t (id INT)")
        lake.sql("CALL lake.system.commit_transaction()")
        assert lake.catalog.list_tables() == [("t",)]
    assert len(children(first.spark)) == 2


def test_a_catalog_that_is_used_no_more_is_closed(spark, warm, tmp_path):
    closed_path = tmp_path / "closed"
    text = f"""
import pathlib
from lakelog.spark.open_catalog import ServedCatalog
def close(self, original=ServedCatalog.close):
    original(self)
    with open({str(closed_path)!r}, "a") as file:
        print(self.outside.warehouse, file=file)
ServedCatalog.close = close
"""
    jvm = spark.sparkContext._jvm
    lakelog = jvm.org.apache.spark.sql.lakelog
    program = warm.program(tmp_path, text)

    def asked(name):
        settings = jvm.scala.collection.immutable.HashMap().updated("fsync", "off")
        settings = settings.updated("warehouse", str(tmp_path / name))
        bridge = lakelog.bridge.Bridge.of(lakelog.bridge.BridgeSettings(program, settings))
        nothing = jvm.scala.Option.empty()
        scope, ended = lakelog.wire.Scope(nothing, nothing), getattr(bridge, "ask$default$4")()
        bridge.ask(lakelog.wire.ListSystemTables(), scope, nothing, ended)
        return bridge

    kept = asked("kept")
    asked("dropped")

    def is_closed():
        gc.collect()
        jvm.System.gc()
        return closed_path.exists() and closed_path.read_text()

    wait_until(is_closed)
    assert closed_path.read_text().splitlines() == [str(tmp_path / "dropped")]
    assert kept.equals(asked("kept"))
    for child in children(spark):
        os.kill(child, signal.SIGKILL)


def test_a_request_that_kills_its_process_fails_and_those_of_other_catalogs_do_not(make_lake, warm, tmp_path):
    program = warm.program(tmp_path, HOOK + OF_ONE_CATALOG.format(go_on=str(tmp_path / "never")))
    poisoned_lake = make_lake(str(tmp_path / "poisoned"), python=program)
    other_lake = make_lake(str(tmp_path / "other"), python=program)
    third = make_lake(str(tmp_path / "third"), python=program)
    for lake in (poisoned_lake, other_lake, third):
        lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    other_lake.sql("CALL lake.system.begin_transaction()")
    other_lake.sql("INSERT INTO lake.t VALUES (2)")

    def work(number):
        third.sql(f"INSERT INTO lake.t VALUES ({number})")

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(work, number) for number in range(8)]
        with pytest.raises(Exception, match="ended 4 times"):
            poisoned_lake.sql(f"SHOW TABLES IN {poisoned_lake.name}")
        for each in futures:
            each.result(120)
    assert third.sql("SELECT count(*) FROM lake.t") == [(9,)]
    assert other_lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]
    other_lake.sql("CALL lake.system.commit_transaction()")
    assert other_lake.catalog.load_table("t").row_count == 2
    assert poisoned_lake.sql("SELECT * FROM lake.t") == [(1,)]


def test_slow_requests_of_a_catalog_hold_up_no_other_catalog(make_lake, warm, tmp_path):
    go_on = tmp_path / "go_on"
    program = warm.program(tmp_path, HOOK + OF_ONE_CATALOG.format(go_on=str(go_on)))
    slow, other_lake = (make_lake(str(tmp_path / name), python=program) for name in ("slow", "other"))
    other_lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    # More than Python answers of one catalog at a time.
    with ThreadPoolExecutor(40) as pool:
        futures = [pool.submit(slow.sql, f"SHOW TABLES IN {slow.name}") for _ in range(40)]
        time.sleep(1)
        assert other_lake.sql("SELECT * FROM lake.t") == [(1,)]
        other_lake.sql("INSERT INTO lake.t VALUES (2)")
        assert not any(each.done() for each in futures)
        go_on.touch()
        assert [each.result(60) for each in futures] == [[]] * 40
    assert len(children(other_lake.spark)) == 1

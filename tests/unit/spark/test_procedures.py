"""Procedures and transactions at the bridge, without Spark."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.unit.spark.asking import EVERYTHING, SCHEMA, Side, ask, of_write, reference

from lakelog.catalog import Catalog
from lakelog.catalog.errors import CommitConflict, NoSuchNamespace
from lakelog.log import Commit
from lakelog.log.errors import AlreadyExists, FormatError, InvalidInput, NotFound
from lakelog.log.format import Tombstone
from lakelog.spark.going_calls import JobFailed
from lakelog.spark.open_transactions import TransactionEnded, TransactionLost
from lakelog.spark.procedures import ProcedureCall, all_procedures, iceberg_words

WHO = {"user": "ada", "application": "app 1", "query": "q", "text": "INSERT INTO t VALUES (1)"}


@pytest.fixture
def fresh(tmp_path):
    """Makes one Python side after the other for the same warehouse, as restarts do."""

    def make(**settings):
        return Side(**{"warehouse": str(tmp_path / "lake"), "fsync": "off", **settings})

    return make


def run(dispatch, procedure, transaction=None, token=None, result=None, **arguments):
    asked = {"procedure": procedure, "arguments": arguments, "catalog_name": "lake", "current_namespace": []}
    if transaction is not None:
        asked["transaction"] = transaction
    if result is not None:
        asked["result"] = result
    return ask(dispatch, "call", **asked, token=token, query=WHO)["rows"]


def begun(dispatch, procedure, **arguments):
    """Begin a call of a procedure that asks for jobs, up to the first."""
    call = {"procedure": procedure, "arguments": arguments, "catalog_name": "lake", "current_namespace": []}
    return ask(dispatch, "begin_call", **call, query=WHO)


def run_asking(dispatch, procedure, came, **arguments):
    """Return the rows of a procedure that asks for one job, of which that came."""
    step = begun(dispatch, procedure, **arguments)
    return ask(dispatch, "go_on_call", going=step["going"], result=came, query=WHO)["rows"]


def create(dispatch, name, **scope):
    stage = ask(
        dispatch, "stage", kind="create", identifier=[name], schema=SCHEMA, partitioning=[], properties={},
        own_location=None, comment=None, provider=None, **scope,
    )  # fmt: skip
    return ask(dispatch, "commit_stage", stage=stage["stage"], files=[], query=WHO, **scope)


def append(dispatch, facts, **scope):
    begun = ask(dispatch, "begin_write", **reference(facts), **scope)
    files = [{"path": f"data/{begun['write']['id']}-0.parquet", "size": 10, "rows": 2, "spec": 0}]
    ask(
        dispatch, "commit_write", **reference(facts), **of_write(begun), operation="append", files=files,
        query=WHO, **scope,
    )  # fmt: skip


def begin(dispatch):
    [[id]] = run(dispatch, "begin_transaction", isolation=None)
    return id


@pytest.mark.parametrize("procedure", all_procedures().values(), ids=lambda procedure: procedure.name)
def test_every_procedure_is_declared_for_people_and_for_spark(procedure):
    declared = msgspec.to_builtins(procedure.declaration())
    assert declared["description"].endswith((".", "it."))
    is_required = [parameter["default"] is None for parameter in declared["parameters"]]
    assert is_required == sorted(is_required, reverse=True), "Spark wants required parameters first"
    for parameter in declared["parameters"]:
        assert parameter["name"] == parameter["name"].lower() and parameter["comment"]


def test_the_answer_of_what_may_only_report_says_so():
    """By the declaration alone, so that none forgets it; in each row, false if the call has acted."""
    choosing_defaults = {
        name: parameter.default
        for name, procedure in all_procedures().items()
        for parameter in procedure.parameters
        if parameter.name == "dry_run"
    }
    assert {name for name, default in choosing_defaults.items() if default == "true"} == {
        "expire", "vacuum", "forget", "delete_backup", "adopt_files", "release_clone",
    }  # fmt: skip
    for name, procedure in all_procedures().items():
        last = procedure.declaration().columns[-1:]
        assert ([each.name for each in last] == ["dry_run"]) == (name in choosing_defaults), name


def test_a_procedure_that_is_not_there_is_named(fresh):
    with pytest.raises(NotFound, match="conjure"):
        run(fresh(), "conjure")


@pytest.mark.parametrize(
    ("given", "table", "namespace"),
    [
        ("t", ("now", "t"), ("t",)),
        ("`t`", ("now", "t"), ("t",)),
        ("a.t", ("a", "t"), ("a", "t")),
        ("lake.a.t", ("a", "t"), ("a", "t")),
        ("`lake.a`.t", ("lake.a", "t"), ("lake.a", "t")),
        ("`a.b`.`c``d`", ("a.b", "c`d"), ("a.b", "c`d")),
        ("`lake`.`a`", ("a",), ("a",)),
        ("lake", ("now", "lake"), ()),
        ("`lake`", ("now", "lake"), ()),
        ("Lake.a", ("Lake", "a"), ("Lake", "a")),
    ],
)
def test_names_are_resolved_as_in_a_statement(given, table, namespace):
    call = ProcedureCall(
        catalog=None, catalog_name="lake", current_namespace=("now",), arguments={"n": given}, open_transactions=None
    )  # fmt: skip
    assert call.table("n") == table
    assert call.namespace("n") == namespace


def test_a_name_that_is_null_is_refused():
    call = ProcedureCall(
        catalog=None, catalog_name="lake", current_namespace=(), arguments={"n": None}, open_transactions=None
    )
    assert call.namespace("n") == ()
    with pytest.raises(InvalidInput, match="NULL"):
        call.table("n")


def test_what_a_transaction_does_is_seen_by_its_requests_only(fresh):
    side = fresh()
    ask(side, "create_namespace", namespace=["a"], properties={}, token=ask(side, "token", namespace=["a"]))
    id = begin(side)
    facts = create(side, "t", transaction=id)
    append(side, facts, transaction=id)
    assert ask(side, "table_exists", identifier=["t"], transaction=id) == {"exists": True}
    assert ask(side, "table_exists", identifier=["t"]) == {"exists": False}
    run(side, "commit_transaction", id, ask(side, "transaction_token", transaction=id))
    assert ask(side, "load_table", identifier=["t"])["version"] == 1
    with pytest.raises(TransactionEnded):
        ask(side, "load_table", identifier=["t"], transaction=id)


def test_a_table_that_a_transaction_changed_is_another_step_of_it(fresh):
    side = fresh()
    create(side, "t")
    id = begin(side)
    before = ask(side, "load_table", identifier=["t"], transaction=id)
    append(side, before, transaction=id)
    after = ask(side, "load_table", identifier=["t"], transaction=id)
    assert (after["version"], after["id"]) == (before["version"], before["id"])
    assert after["step"] > before["step"]
    counts = []
    for facts in (before, after):
        named_reference = reference(facts)
        _, body = side.answer("plan", {**named_reference, "predicate": EVERYTHING, "transaction": id})
        import pyarrow as pa

        counts.append(pa.ipc.open_stream(body).read_all().num_rows)
    assert counts == [0, 1]
    with pytest.raises(CommitConflict, match="run it again"):
        side.answer("plan", {**named_reference, "step": 1000, "transaction": id, "predicate": EVERYTHING})


def test_a_commit_is_retried_in_a_process_that_does_not_know_the_transaction(fresh):
    side = fresh()
    create(side, "t")
    facts = ask(side, "load_table", identifier=["t"])
    for commits in (True, False):
        id = begin(side)
        append(side, ask(side, "load_table", identifier=["t"], transaction=id), transaction=id)
        token = ask(side, "transaction_token", transaction=id)
        if commits:
            run(side, "commit_transaction", id, token)
            assert run(fresh(), "commit_transaction", id, token) == [[id]]
        else:
            with pytest.raises(TransactionLost, match="Nothing of it was committed"):
                run(fresh(), "commit_transaction", id, token)
    assert ask(fresh(), "load_table", identifier=["t"])["version"] == facts["version"] + 1


def test_a_transaction_that_is_lost_or_abandoned_is_rolled_back_without_a_word(fresh):
    side = fresh()
    create(side, "t")
    assert run(side, "rollback_transaction", "unknown") == [["unknown"]]
    ask(side, "abandon_transaction", transaction="unknown")
    id = begin(side)
    ask(side, "abandon_transaction", transaction=id)
    with pytest.raises(TransactionEnded):
        ask(side, "list_tables", namespace=[], transaction=id)


def test_a_failed_commit_ends_the_transaction(fresh):
    side = fresh()
    create(side, "t")
    id = begin(side)
    facts = ask(side, "load_table", identifier=["t"], transaction=id)
    append(side, facts, transaction=id)
    ask(side, "drop_table", identifier=["t"], token=ask(side, "token", identifier=["t"]), query=WHO)
    with pytest.raises(CommitConflict):
        run(side, "commit_transaction", id, ask(side, "transaction_token", transaction=id))
    with pytest.raises(TransactionEnded):
        ask(side, "list_tables", namespace=[], transaction=id)


def test_settings_are_checked_before_anything_is_asked(fresh):
    with pytest.raises(InvalidInput, match="statement-text"):
        fresh(**{"statement-text": "some"})
    create(fresh(), "t")
    with pytest.raises(NotFound, match="monday"):
        ask(fresh(**{"as-of": "monday"}), "list_tables", namespace=[])


def test_the_audit_is_declared_with_the_columns_that_it_has(fresh):
    import pyarrow as pa

    side = fresh()
    create(side, "t")
    [declared] = ask(side, "system_tables")["tables"]
    columns = [field["name"] for field in declared["schema"]["fields"]]
    params = {"name": "audit", "columns": columns, "since_us": None, "until_us": None}
    answer, body = side.answer("read_system_table", params)
    found = pa.ipc.open_stream(body).read_all()
    assert declared["name"] == "audit"
    assert answer["streams"] == [len(body)]
    assert found.column_names == columns
    assert found.num_rows > 0
    with pytest.raises(NotFound, match="nothing"):
        side.answer("read_system_table", {**params, "name": "nothing"})


def test_a_namespace_that_is_not_there_is_no_place_for_what_was_dropped(fresh):
    side = fresh()
    create(side, "t")
    with pytest.raises(NoSuchNamespace):
        run(side, "dropped", namespace="nowhere", recursive=True)


def test_fsck_reports_and_repairs_as_rows(fresh, tmp_path):
    side = fresh()
    create(side, "t")
    create(side, "u")
    check: dict[str, Any] = {
        "table": None, "namespace": None, "repair": False, "deep": True, "all_versions": True,
    }  # fmt: skip
    check["result"] = {"kind": "checksums", "files": []}
    assert run(side, "fsck", **check) == []
    [place] = (path for path in tmp_path.glob("lake/t-*") if side_table(side, "t").endswith(path.name))
    hint = place / "_log" / "latest.json"
    hint.write_bytes(b"{}")
    [found] = run(side, "fsck", **check)
    assert found[:3] == ["repairable", "hint-altered", str(hint)] and all(found)
    assert run(side, "fsck", **(check | {"table": "u"})) == []
    [repaired, kept] = run(side, "fsck", **(check | {"table": "t", "repair": True}))
    assert repaired[0] == "repaired" and "wrote snapshot and hint" in repaired[3]
    assert kept[:2] == ["note", "lost-kept"]
    (place / "_log" / "00000000000000000001.json").write_bytes(b"{}")
    assert [row[1] for row in run(side, "fsck", **check) if row[0] == "damage"] == ["commit-altered"]
    with pytest.raises(InvalidInput, match="repair of fsck is NULL"):
        run(side, "fsck", **(check | {"repair": None}))


def test_the_job_of_a_deep_check_has_the_files_of_all_tables_that_can_be_read(fresh, tmp_path):
    side = fresh()
    ask(side, "create_namespace", namespace=["a"], properties={}, token=ask(side, "token", namespace=["a"]))
    catalog = Catalog(str(tmp_path / "lake"), options={"fsync": "off"})
    for name in ("t", "a.u", "a.broken"):
        catalog.create_table(name, pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    files = {
        name: set(map(str, Path(catalog.load_table(name).location).glob("data/*"))) for name in ("t", "a.u")
    }
    (Path(catalog.load_table("a.broken").location) / "_log" / "00000000000000000001.json").write_bytes(b"{}")

    def job(**arguments):
        asked = {
            "table": None,
            "namespace": None,
            "repair": False,
            "deep": True,
            "all_versions": False,
            **arguments,
        }
        [prepared] = ask(
            side, "call_prepare", procedure="fsck", arguments=asked, catalog_name="lake", current_namespace=[]
        ).values()  # fmt: skip
        assert prepared["kind"] == "checksums"
        return set(prepared["files"])

    assert job() == files["t"] | files["a.u"]
    assert job(namespace="a") == files["a.u"]
    assert job(table="t") == files["t"]
    assert job(deep=False) == set()


def side_table(side, name):
    return ask(side, "load_table", identifier=[name])["location"]


def test_health_and_maintain_have_a_row_for_each_table_or_advice(fresh, tmp_path):
    catalog = Catalog(str(tmp_path / "lake"), options={"fsync": "off"})
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}))
    for id in range(9):
        table = table.append(pa.table({"id": [id]}))
    side = fresh()
    columns = {
        name: [column.name for column in all_procedures()[name].declaration().columns]
        for name in ("health", "maintain")
    }
    both = {"namespace": None, "table": None}
    [row] = run(side, "health", listing=False, **both)
    found = dict(zip(columns["health"], row, strict=True))
    assert (found["files"], found["action"], found["saves_files"], found["unreachable_bytes"]) == (
        9,
        "compact",
        8,
        None,
    )
    assert found["statement"] == "CALL lake.system.compact(table => '`t`')"
    limits = {"limit_time": 60_000_000, "limit_bytes": 1 << 40}
    nothing = {"kind": "maintain", "tables": [], "took_us": 0}
    [row] = run_asking(side, "maintain", nothing, dry_run=True, **limits, **both)
    found = dict(zip(columns["maintain"], row, strict=True))
    assert (found["rewritten_files"], found["added_files"], found["error"]) == (9, 1, None)
    job = begun(side, "maintain", dry_run=False, **limits, **both)["job"]
    assert [(each_table["table"], each_table["goal"]["fan_in"]) for each_table in job["tables"]] == [
        (["t"], 8)
    ]
    counts = {
        "rewritten_files": 9,
        "rewritten_bytes": 900,
        "added_files": 1,
        "added_bytes": 90,
        "deleted_rows": 0,
    }
    kept = {"table": ["t"], **counts, "lost": 0, "is_left": True, "error": None}
    [row] = run_asking(side, "maintain", {**nothing, "tables": [kept]}, dry_run=False, **limits, **both)
    found = dict(zip(columns["maintain"], row, strict=True))
    assert (found["rewritten_files"], found["added_bytes"], found["is_left"]) == (9, 90, True)
    assert table.refresh().version == 10, "it is the job that commits"
    arguments = {"dry_run": True, "limit_time": 0, "limit_bytes": None, **both}
    with pytest.raises(InvalidInput, match="limit"):
        begun(side, "maintain", **arguments)


def test_what_a_call_would_ignore_is_refused(fresh, tmp_path):
    side = fresh()
    create(side, "t")
    copy = {"table": "t", "namespace": None, "finish": True, "as_table": "u"}
    with pytest.raises(InvalidInput, match="leave outside out"):
        run(side, "copy", url=str(tmp_path / "copy"), outside="leave", **copy)
    erasure = {"where": "id = 1", "dry_run": True, "reference": None, "key": None, "leave_foreign": False}
    with pytest.raises(InvalidInput, match="give it once"):
        begun(side, "forget", table="a.t", namespace="b", **erasure)


def test_the_page_has_every_procedure_with_its_parameters():
    page = (Path(__file__).parents[3] / "docs/sql/procedures.md").read_text(encoding="utf-8")
    lines = [line for line in page.partition("## All procedures")[2].splitlines() if line.startswith("| `")]
    signatures = {
        name: [part for part in parameters.split(", ") if part]
        for line in lines
        for name, parameters in re.findall(r"`(\w+)(?:\(([^)]*)\))?`", line.split("|")[1])
    }
    declared_names = {
        name: [parameter.name for parameter in procedure.parameters]
        for name, procedure in all_procedures().items()
    }
    # Another page has the parameters of these.
    declared_names |= {each.name: [] for each in iceberg_words.PROCEDURES}
    assert signatures == declared_names


def test_a_restore_that_is_retried_happens_once(fresh, tmp_path):
    place = str(tmp_path / "backups")
    side = fresh()
    create(side, "t")
    (made,) = run(side, "backup", place=place, table=None, namespace=None, outside="refuse")
    assert run(side, "backups", place=place) == [made[:8]]
    arguments = {"place": place, "table": "t", "to": "u", "backup": None}
    asked = {"procedure": "restore_backup", "catalog_name": "lake", "current_namespace": []}
    token = ask(side, "call_token", arguments=arguments, **asked)["token"]
    (first,) = run(side, "restore_backup", token=token, **arguments)
    (again,) = run(fresh(), "restore_backup", token=token, **arguments)
    assert (first[:2], again[:2]) == ([made[0], 1], [made[0], 1])
    assert side.catalog.load_table("u").version == 1
    with pytest.raises(AlreadyExists):
        run(side, "restore_backup", token=None, **arguments)


def test_objects_are_deleted_by_jobs_where_there_are_many(fresh, tmp_path, monkeypatch):
    """The fence stands before the first job; what was under way in a process that is gone, a new vacuum finds."""
    from lakelog.catalog.keeping.maintenance import vacuum

    monkeypatch.setattr(vacuum, "MANY_OBJECTS", 2)
    monkeypatch.setattr(vacuum, "OBJECTS_AT_ONCE", 3)
    catalog = Catalog(str(tmp_path / "lake"))
    table = catalog.create_table("t", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    data = Path(table.location) / "data"
    for number in range(5):
        (data / f"{1:020d}-{'a' * 26}-{number:05d}.parquet").write_bytes(b"")
    arguments = {
        "table": "t", "namespace": None, "older_than": 0, "dropped_older_than": None, "dry_run": False,
        "trust_clock": True,
    }  # fmt: skip
    step = begun(fresh(), "vacuum", **arguments)
    assert len(step["job"]["objects"]) == 3
    assert catalog.load_table("t").table_head.view.fence == 3
    for url in step["job"]["objects"]:
        Path(url).unlink()
    # The process is lost before the others are deleted: a new one looks again.
    monkeypatch.setattr(vacuum, "MANY_OBJECTS", 1)
    side = fresh()
    step = begun(side, "vacuum", **arguments)
    assert len(step["job"]["objects"]) == 2
    for url in step["job"]["objects"]:
        Path(url).unlink()
    done = {"kind": "delete-objects", "work": ""}
    (row,) = ask(side, "go_on_call", going=step["going"], result=done)["rows"]
    assert row[3] == 2 and len(list(data.iterdir())) == 1


def test_tombstones_are_made_by_jobs_where_there_are_many(fresh, tmp_path, monkeypatch):
    """What a job leaves of a window, and its last version, Python does; a job that a user cancels ends the call."""
    from lakelog.catalog.keeping.maintenance import engine
    from lakelog.log.burial import bury_versions, windows

    monkeypatch.setattr(windows, "BURIED_TOGETHER", 10)
    monkeypatch.setattr(engine, "MANY_VERSIONS", 4)
    catalog = Catalog(str(tmp_path / "lake"))
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}))
    for number in range(25):
        table = table.append(pa.table({"id": [number]}))
    log = table.table_head.tracked.log
    arguments = {
        "table": "t", "namespace": None, "older_than": None, "retain_last": None, "version": 24, "dry_run": False,
        "trust_clock": True,
    }  # fmt: skip
    side = fresh()
    step = begun(side, "expire", **arguments)
    with pytest.raises(JobFailed):
        ask(side, "go_on_call", going=step["going"], failed="stopped", cancelled=True)
    side, jobs, remaining_numbers = fresh(), [], [3, 4, 7]
    step = begun(side, "expire", **arguments)
    while step.get("job"):
        job = step["job"]
        jobs.append((job["first"], job["until"], job["last"], job["what"]))
        mine = [number for number in range(job["first"], job["until"]) if number not in remaining_numbers]
        for version in mine:
            bury_versions(log, range(version, version + 1))
        assert isinstance(log.entry_at(job["until"]), Commit)
        others = [each for each in remaining_numbers if job["first"] <= each < job["until"]]
        done = {"kind": "bury-versions", "commits": len(mine), "size_bytes": 7, "left": others}
        step = ask(side, "go_on_call", going=step["going"], result=done)
    assert jobs == [(1, 10, 24, "`t`"), (11, 20, 24, "`t`")], "the last window has four versions"
    (row,) = step["rows"]
    assert row[3:7] == [0, 24, 27, 24] and row[7] > 14, "the call that was cancelled has made the base"
    assert catalog.load_table("t").row_count == 25
    assert [type(log.entry_at(version)) for version in (1, 10, 24, 25)] == [
        Tombstone,
        Tombstone,
        Tombstone,
        Commit,
    ]


def test_what_executors_copied_is_not_copied_again(fresh, tmp_path):
    place, side = str(tmp_path / "backups"), fresh()
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_table("t", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    arguments = {"place": place, "table": None, "namespace": None, "outside": "refuse"}
    asked = {"procedure": "backup", "catalog_name": "lake", "current_namespace": [], "arguments": arguments}
    job = ask(side, "call_prepare", **asked)["job"]
    [one] = job["objects"]
    Path(one["target"]).parent.mkdir(parents=True)
    data = Path(one["source"]).read_bytes()
    Path(one["target"]).write_bytes(data)
    result = {"kind": "copy-objects", "work": job["work"]}
    found = [{"size": len(data) - 1, "sha256": "0" * 64}]
    with pytest.raises(FormatError, match=f"has {len(data) - 1} bytes, and its log says {len(data)}"):
        ask(side, "call_prepare", **asked, result={**result, "objects": found})
    job = ask(side, "call_prepare", **asked)["job"]
    found = [{"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}]
    result = {"kind": "copy-objects", "work": job["work"], "objects": found}
    assert ask(side, "call_prepare", **asked, result=result)["job"] is None
    (made,) = run(side, "backup", result=result, **arguments)
    assert made[8:] == [1, len(data), True]  # the other objects were put before the error
    assert not catalog.verify_backup(place).problems

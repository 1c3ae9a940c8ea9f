"""The bridge and what it can be asked, without Spark."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from typing import Any, BinaryIO, cast
from unittest.mock import patch

import msgspec
import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S
from tests.unit.spark.asking import EVERYTHING, SCHEMA, Side, ask, named, of_write, reference

from lakelog.catalog import Catalog, engine
from lakelog.catalog.errors import NoSuchNamespace, NoSuchRef, NoSuchTable
from lakelog.log.errors import CommitUnknown, InvalidInput, NotFound, UnsupportedFormat
from lakelog.spark.bridge import serve
from lakelog.spark.dispatch import RequestDispatch, VersionMismatch
from lakelog.spark.frames import BridgeFrame, read_frame, write_frame
from lakelog.spark.jar import version


@pytest.fixture
def fresh(tmp_path):
    """Makes one Python side after the other for the same warehouse, as restarts do."""

    return lambda: Side(warehouse=str(tmp_path / "lake"), fsync="off")


def create(dispatch, name):
    stage = ask(
        dispatch, "stage", kind="create", identifier=[name], schema=SCHEMA, partitioning=[], properties={},
        own_location=None, comment=None, provider=None,
    )  # fmt: skip
    return ask(dispatch, "commit_stage", stage=stage["stage"], files=[]), stage["stage"]


BRANCH = {"kind": "branch", "name": "b"}


def with_branch(dispatch, facts):
    token = ask(dispatch, "token", identifier=["t"])
    ask(dispatch, "create_ref", **reference(facts), **BRANCH, where="new", as_of={}, token=token)
    loaded = ask(dispatch, "load_table", identifier=["t"], on=BRANCH)
    return reference(loaded)


def test_a_jar_of_another_version_is_refused():
    with pytest.raises(VersionMismatch, match=r"0\.0\.0.*lakelog\.spark jar"):
        RequestDispatch().answer("hello", b'{"version":"0.0.0","spark":"4.3.0"}')


def test_an_unknown_setting_is_refused_by_name():
    with pytest.raises(InvalidInput, match="ware_house"):
        Side(ware_house="/x")


def test_an_unknown_request_is_reported_as_a_difference_of_versions(fresh):
    with pytest.raises(VersionMismatch, match="do_magic"):
        ask(fresh(), "do_magic")


def test_a_request_that_is_retried_in_a_new_process_happens_once(fresh):
    facts, stage = create(fresh(), "t")
    again = ask(fresh(), "commit_stage", stage=stage, files=[])
    assert again == facts
    begun = ask(fresh(), "begin_write", **reference(facts))
    name = f"data/{begun['write']['id']}-0.parquet"
    files = [{"path": name, "size": 10, "rows": 2, "spec": 0, "partition": {}, "stats": {}}]
    for _ in range(3):
        ask(
            fresh(),
            "commit_write",
            **reference(facts),
            **of_write(begun),
            operation="append",
            filter=None,
            files=files,
        )
    assert ask(fresh(), "load_table", identifier=["t"])["version"] == facts["version"] + 1


@pytest.mark.parametrize("gone", ["branch", "table"])
def test_a_write_that_is_retried_keeps_its_files_where_what_it_changed_is_gone(fresh, gone):
    facts, _ = create(fresh(), "t")
    branch = with_branch(fresh(), facts)
    begun = ask(fresh(), "begin_write", **branch)
    files = [{"path": f"data/{begun['write']['id']}-0.parquet", "size": 10, "rows": 2, "spec": 0}]
    write = {**branch, **of_write(begun), "operation": "append", "filter": None, "files": files}
    other = ask(fresh(), "begin_write", **branch)
    ask(fresh(), "commit_write", **write)
    token = ask(fresh(), "token", identifier=["t"])
    if gone == "branch":
        ask(fresh(), "drop_ref", **reference(facts), **BRANCH, if_exists=False, token=token)
    else:
        ask(fresh(), "drop_table", identifier=["t"], token=token)
    with pytest.raises(CommitUnknown, match="happened"):
        ask(fresh(), "commit_write", **write)
    with pytest.raises((NoSuchRef, NoSuchTable)):
        ask(fresh(), "commit_write", **{**write, **of_write(other)})


@pytest.mark.parametrize("gone", ["branch", "table", "version"])
def test_a_batch_of_a_stream_that_is_retried_keeps_its_files_where_what_it_needs_is_gone(
    fresh, gone, tmp_path
):
    facts, _ = create(fresh(), "t")
    branch = with_branch(fresh(), facts)

    def batch():
        begun = ask(fresh(), "begin_batch", **branch, name="t", written_as=branch["version"])
        files = [{"path": f"data/{begun['write']['id']}-0.parquet", "size": 10, "rows": 2, "spec": 0}]
        stream = {
            "batch": {"stream": "s", "number": 0},
            "operation": "append",
            "filter": None,
            "files": files,
        }
        return {**branch, **of_write(begun), **stream}

    write, other_batch = batch(), batch()
    ask(fresh(), "commit_write", **write)
    if gone == "branch":
        token = ask(fresh(), "token", identifier=["t"])
        ask(fresh(), "drop_ref", **reference(facts), **BRANCH, if_exists=False, token=token)
    elif gone == "table":
        ask(fresh(), "drop_table", identifier=["t"], token=ask(fresh(), "token", identifier=["t"]))
    else:
        catalog = Catalog(str(tmp_path / "lake"))
        catalog.load_table("t").alter([{"change": "set-property", "key": "k", "value": "v"}])
        catalog.expire("t", retain_last=1, dry_run=False)
    if gone == "version":
        assert ask(fresh(), "commit_write", **write)["written"]
    else:
        with pytest.raises(CommitUnknown, match="happened"):
            ask(fresh(), "commit_write", **write)
    with pytest.raises(NotFound):
        ask(fresh(), "commit_write", **other_batch)


CHANGES: dict[str, dict[str, Any]] = {
    "alter_table": {"changes": [{"change": "set-property", "key": "k", "value": "v"}]},
    "create_ref": {"kind": "tag", "name": "x", "where": "new", "as_of": {}},
    "drop_ref": {"kind": "tag", "name": "old", "if_exists": False},
    "delete": {"predicate": {"op": "ALWAYS_TRUE", "args": []}},
    "truncate": {},
    "call": {
        "procedure": "fast_forward",
        "arguments": {"table": "t", "branch": "b", "to": "main"},
        "catalog_name": "lake",
        "current_namespace": [],
    },
}


@pytest.mark.parametrize("method", CHANGES)
def test_a_change_that_is_retried_says_that_it_happened_where_the_table_is_gone(fresh, method):
    facts, _ = create(fresh(), "t")
    write = ask(fresh(), "begin_write", **reference(facts))
    files = [{"path": f"data/{write['write']['id']}-0.parquet", "size": 10, "rows": 2, "spec": 0}]
    ask(
        fresh(),
        "commit_write",
        **reference(facts),
        **of_write(write),
        operation="append",
        filter=None,
        files=files,
    )
    for kind, name, of in (("tag", "old", None), ("branch", "b", 1)):
        token = ask(fresh(), "token", identifier=["t"])
        as_of = {} if of is None else {"version": of}
        made = {"kind": kind, "name": name, "where": "new", "as_of": as_of}
        ask(fresh(), "create_ref", **reference(facts), **made, token=token)
    facts = ask(fresh(), "load_table", identifier=["t"])
    token, other = (ask(fresh(), "token", identifier=["t"]) for _ in range(2))
    of_change: dict[str, dict[str, Any]] = {"alter_table": named(facts), "call": {}}
    subject = of_change.get(method, reference(facts))
    change = {**subject, **CHANGES[method]}
    ask(fresh(), method, **change, token=token)
    assert ask(fresh(), "load_table", identifier=["t"])["version"] == facts["version"] + 1
    ask(fresh(), "drop_table", identifier=["t"], token=ask(fresh(), "token", identifier=["t"]))
    with pytest.raises(CommitUnknown, match="happened, but what it needs is gone"):
        ask(fresh(), method, **change, token=token)
    with pytest.raises(NoSuchTable):
        ask(fresh(), method, **change, token=other)


def test_a_change_of_a_branch_that_is_retried_says_that_it_happened_where_that_is_gone(fresh):
    facts, _ = create(fresh(), "t")
    named = {"kind": "branch", "name": "b"}
    token, of_truncate, of_drop, other = (ask(fresh(), "token", identifier=["t"]) for _ in range(4))
    ask(fresh(), "create_ref", **reference(facts), **named, where="new", as_of={}, token=token)
    loaded = ask(fresh(), "load_table", identifier=["t"], on=named)
    branch = reference(loaded)
    ask(fresh(), "truncate", **branch, token=of_truncate)
    ask(fresh(), "drop_ref", **branch, **named, if_exists=False, token=of_drop)
    for token, method, params in (
        (of_truncate, "truncate", {}),
        (of_drop, "drop_ref", {**named, "if_exists": False}),
    ):
        with pytest.raises(CommitUnknown, match="happened"):
            ask(fresh(), method, **branch, **params, token=token)
    with pytest.raises(NoSuchRef):
        ask(fresh(), "truncate", **branch, token=other)


def test_what_is_asked_for_the_first_time_is_not_looked_for(fresh):
    facts, _ = create(fresh(), "t")
    token, of_drop = (ask(fresh(), "token", identifier=["t"]) for _ in range(2))
    dispatch = fresh()
    ask(dispatch, "drop_table", identifier=["t"], token=of_drop)
    with (
        patch.object(engine, "has_happened", side_effect=AssertionError),
        pytest.raises(NoSuchTable),
    ):
        dispatch.answer("truncate", {**reference(facts), "token": token}, is_first=True)


def test_a_namespace_that_is_gone_was_altered(fresh):
    token = ask(fresh(), "token", namespace=["n"])
    ask(fresh(), "create_namespace", namespace=["n"], properties={}, token=token)
    token, of_drop, other = (ask(fresh(), "token", namespace=["n"]) for _ in range(3))
    change = {"namespace": ["n"], "set": {"k": "v"}, "remove": []}
    ask(fresh(), "alter_namespace", **change, token=token)
    ask(fresh(), "drop_namespace", namespace=["n"], cascade=False, token=of_drop)
    ask(fresh(), "alter_namespace", **change, token=token)
    with pytest.raises(NoSuchNamespace):
        ask(fresh(), "alter_namespace", **change, token=other)


def test_a_write_that_is_retried_keeps_its_files_where_the_version_that_it_began_with_has_expired(
    fresh, tmp_path
):
    facts, _ = create(fresh(), "t")
    begun = ask(fresh(), "begin_write", **reference(facts))
    files = [{"path": f"data/{begun['write']['id']}-0.parquet", "size": 10, "rows": 2, "spec": 0}]
    write = {**reference(facts), **of_write(begun), "operation": "append", "filter": None, "files": files}
    ask(fresh(), "commit_write", **write)
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.load_table("t").alter([{"change": "set-property", "key": "k", "value": "v"}])
    catalog.expire("t", retain_last=1, dry_run=False)
    assert ask(fresh(), "commit_write", **write)["written"]
    assert catalog.load_table("t").row_count == 2


def test_a_write_that_is_retried_keeps_its_files_where_a_newer_client_has_written_since(fresh):
    facts, _ = create(fresh(), "t")
    begun = ask(fresh(), "begin_write", **reference(facts))
    files = [{"path": f"data/{begun['write']['id']}-0.parquet", "size": 10, "rows": 2, "spec": 0}]
    write = {**reference(facts), **of_write(begun), "operation": "append", "filter": None, "files": files}
    ask(fresh(), "commit_write", **write)
    with patch.object(Catalog, "table_at", side_effect=UnsupportedFormat("upgrade lakelog")):
        with pytest.raises(CommitUnknown, match=r"cannot be seen: upgrade lakelog"):
            ask(fresh(), "commit_write", **write)
        with pytest.raises(UnsupportedFormat):
            fresh().answer("commit_write", write, is_first=True)


def test_a_stage_that_is_retried_keeps_its_files_where_a_newer_client_has_written_since(fresh):
    _, stage = create(fresh(), "t")
    unreadable = UnsupportedFormat("upgrade lakelog")
    with (
        patch.object(engine, "commit_stage", side_effect=unreadable),
        pytest.raises(CommitUnknown, match=f"{stage['commit_id']}.*upgrade lakelog"),
    ):
        ask(fresh(), "commit_stage", stage=stage, files=[])


def test_a_write_starts_from_the_version_that_was_loaded_even_in_a_new_process(fresh):
    facts, _ = create(fresh(), "t")
    token = ask(fresh(), "token", identifier=["t"])
    changes = [{"change": "set-property", "key": "k", "value": "v"}]
    ask(fresh(), "alter_table", identifier=["t"], changes=changes, token=token)
    begun = ask(fresh(), "begin_write", **reference(facts))
    assert begun["write"]["version"] == facts["version"]
    assert set(begun["token"]["bases"].values()) == {facts["version"]}


def test_a_plan_is_of_the_version_that_was_loaded(fresh):
    facts, _ = create(fresh(), "t")
    begun = ask(fresh(), "begin_write", **reference(facts))
    files = [{"path": f"data/{begun['write']['id']}-0.parquet", "size": 10, "rows": 2, "spec": 0}]
    ask(
        fresh(),
        "commit_write",
        **reference(facts),
        **of_write(begun),
        operation="append",
        filter=None,
        files=files,
    )
    newer = ask(fresh(), "load_table", identifier=["t"])
    counts = []
    for loaded_facts in (facts, newer):
        _, body = fresh().answer("plan", {**reference(loaded_facts), "predicate": EVERYTHING})
        table = pa.ipc.open_stream(body).read_all()
        assert table.schema.names[:3] == ["path", "size", "rows"]
        counts.append(table.num_rows)
    assert counts == [0, 1]


def test_a_table_that_was_dropped_and_created_again_is_not_taken_for_the_old_one(fresh):
    facts, _ = create(fresh(), "t")
    with pytest.raises(NoSuchTable, match="was dropped and re-created"):
        ask(
            fresh(),
            "truncate",
            **{**reference(facts), "id": "other"},
            token=ask(fresh(), "token", identifier=["t"]),
        )


def request(number, method, **more):
    return BridgeFrame(number, msgspec.json.encode({"method": method, "params": {}, **more}))


def answers_to(dispatch, *requests):
    """Return the frames that come, in their order."""
    buffer, out = io.BytesIO(), io.BytesIO()
    for request in requests:
        write_frame(buffer, request)
    buffer.seek(0)
    serve(buffer, out, dispatch)
    out.seek(0)
    return list(iter(lambda: read_frame(out), None))


class Answering:
    """In the place of the dispatch: a function for each method, which gets the members of a request."""

    def __init__(self, **functions):
        self._functions = functions

    def answer(self, method, params, catalog=None, *, is_first=False):
        answered = self._functions[method](msgspec.json.decode(params))
        return answered if isinstance(answered, tuple) else (answered, b"")


def test_requests_are_answered_as_they_are_done_and_errors_name_their_kind():
    go_on = threading.Event()

    def slow(params):
        go_on.wait(PATIENCE_S)
        return {}

    def quick(params):
        go_on.set()
        return {"done": True}

    def bug(params):
        raise ZeroDivisionError("nothing to divide")

    def mistake(params):
        raise InvalidInput("that is wrong")

    methods = ("slow", "bug", "mistake", "quick")
    answering = Answering(slow=slow, bug=bug, mistake=mistake, quick=quick)
    answers = answers_to(answering, *(request(number, method) for number, method in enumerate(methods)))
    frames = {answer.number: msgspec.json.decode(answer.text) for answer in answers}
    assert frames[3] == {"ok": {"done": True}}
    assert frames[0] == {"ok": {}}
    assert frames[2]["error"] == {"kind": "invalid-input", "message": "that is wrong", "outcome_known": True}
    assert frames[1]["error"]["kind"] == "internal"
    assert "ZeroDivisionError" in frames[1]["error"]["message"]


def test_any_number_of_slow_requests_holds_up_no_other():
    go_on = threading.Event()

    def slow(params):
        assert go_on.wait(PATIENCE_S)
        return {}

    def quick(params):
        go_on.set()
        return {}

    requests = [*(request(number, "slow") for number in range(100)), request(100, "quick")]
    answers = answers_to(Answering(slow=slow, quick=quick), *requests)
    assert sorted(answer.number for answer in answers) == list(range(101))
    assert not any(b"error" in answer.text for answer in answers)


def test_whatever_becomes_of_a_request_it_is_answered_and_so_are_the_others():
    class Large(bytes):
        def __len__(self):
            return 2**31

    def raising(error):
        def call(params):
            raise error

        return call

    odd = Answering(
        unsayable=lambda params: {"name": "\ud800"},
        unsayable_mistake=raising(InvalidInput("no \udcff")),
        unsayable_bug=raising(FileNotFoundError("no \udcff")),
        large=lambda params: ({}, Large()),
        end=raising(SystemExit(3)),
        right=lambda params: {},
    )
    deep = b'{"method":"right","params":' + b'{"a":[' * 600 + b"]}" * 600 + b"}"
    methods = ("unsayable", "unsayable_mistake", "unsayable_bug", "large", "end", "right")
    requests = [request(number, method) for number, method in enumerate(methods)]
    # More than there are threads: each of them is there for the next request.
    answers = answers_to(odd, BridgeFrame(99, deep), BridgeFrame(98, b"no JSON"), *(4 * requests))
    assert len(answers) == 2 + 4 * len(methods)
    errors = {answer.number: msgspec.json.decode(answer.text).get("error") for answer in answers}
    assert "UnicodeEncodeError" in errors[0]["message"]
    assert errors[1] == {"kind": "invalid-input", "message": "no \\udcff", "outcome_known": True}
    assert "FileNotFoundError: no \\udcff" in errors[2]["message"]
    assert "larger than a JVM can read" in errors[3]["message"]
    assert "SystemExit" in errors[4]["message"]
    assert errors[5] is None
    assert "RecursionError" in errors[99]["message"]
    assert "DecodeError" in errors[98]["message"]


def test_a_process_that_cannot_write_an_answer_ends_so_that_its_requests_are_retried():
    program = """
import lakelog.spark.bridge as bridge
def broken(stream, frame):
    stream.write(b"half of it")
    raise MemoryError
bridge.write_frame = broken
bridge.main()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        write_frame(cast(BinaryIO, process.stdin), request(1, "procedures"))
        assert process.wait(PATIENCE_S) == 1
        assert b"MemoryError" in process.stderr.read()


def test_the_first_requests_may_be_many_at_once(tmp_path):
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "lakelog.spark.bridge"]
    call = {"arguments": {}, "catalog_name": "lake", "current_namespace": []}
    asked_texts = [
        ("list_namespaces", {"namespace": []}),
        ("load_table", {"identifier": ["t"]}),
        ("system_tables", {}),
        ("procedures", {}),
        ("token", {"identifier": ["t"]}),
        ("table_exists", {"location": str(tmp_path / "t")}),
        ("call_token", {"procedure": "begin_transaction", **call}),
        ("list_functions", {"namespace": []}),
        ("load_relation", {"identifier": ["t"]}),
    ]
    for _ in range(2):
        settings = {"warehouse": str(tmp_path / "lake"), "fsync": "off"}
        hello = {"version": version(), "spark": "4.3.0"}
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
            write_frame(process.stdin, request(0, "hello", params=hello))
            read_frame(process.stdout)
            write_frame(process.stdin, request(1, "open_catalog", params={"settings": settings}))
            opened = msgspec.json.decode(read_frame(process.stdout).text)["ok"]
            for number, (method, params) in enumerate(asked_texts):
                write_frame(process.stdin, request(number, method, params=params, **opened))
            answers = [read_frame(process.stdout).text for _ in asked_texts]
            process.stdin.close()
        known_answers = [answer for answer in answers if b'"internal"' in answer or b"not open" in answer]
        assert known_answers == []


def test_what_is_to_be_answered_first_is_written_before_the_request_begins():
    written = []

    def change(params):
        written.append(out.getvalue())
        return {"token": params["token"]}

    def mistake(params):
        raise InvalidInput("that is wrong")

    careful = Answering(token=lambda params: {"of": params["identifier"]}, change=change, mistake=mistake)

    def asked(number, first):
        first = {"method": first, "params": {"identifier": ["t"]}, "as": "token"}
        return request(number, "change", first=first)

    requests, out = io.BytesIO(), io.BytesIO()
    write_frame(requests, asked(1, "token"))
    requests.seek(0)
    serve(requests, out, careful)
    out.seek(0)
    first, last = read_frame(out), read_frame(out)
    assert (first.number, first.text) == (1, b"")
    assert msgspec.json.decode(first.body) == {"token": {"of": ["t"]}}
    assert last.number == 1
    assert msgspec.json.decode(last.text) == {"ok": {"token": {"of": ["t"]}}}
    assert len(written) == 1 and 0 < len(written[0]) < len(out.getvalue())

    (answer,) = answers_to(careful, asked(2, "mistake"))
    assert msgspec.json.decode(answer.text)["error"]["kind"] == "invalid-input"
    assert len(written) == 1


def test_what_stands_beside_an_answer_may_come_in_parts_before_it():
    def counted(params):
        return {"done": True}, (bytes([number]) for number in range(3))

    def empty(params):
        return {}, iter(())

    def broken(params):
        def parts():
            yield b"a"
            yield b"b"
            raise InvalidInput("no third one")

        return {}, parts()

    answers = answers_to(
        Answering(counted=counted, empty=empty, broken=broken),
        *(request(number, method) for number, method in enumerate(("counted", "empty", "broken"))),
    )
    of = {
        number: [(answer.text, answer.body) for answer in answers if answer.number == number]
        for number in range(3)
    }
    assert of[0] == [(b"+", b"\x00"), (b"+", b"\x01"), (b'{"ok":{"done":true},"parts":2}', b"\x02")]
    assert of[1] == [(b'{"ok":{}}', b"")]
    assert of[2][0] == (b"+", b"a")
    assert b"no third one" in of[2][-1][0] and b"error" in of[2][-1][0]

"""Frames that a jar and a package have exchanged before requests and answers were structs decode to the same values.

`frames.jsonl` has at least one request of each method with its answer. It is never edited.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from lakelog.spark.handlers.entries import HANDLERS
from lakelog.spark.requests import process

FRAMES = [json.loads(line) for line in Path(__file__).with_name("frames.jsonl").read_text().splitlines()]

NOT_SENT_ANY_MORE = {
    # What a change is of was sent as a whole for its token, which is made of one of three members.
    "token": {"id", "version", "past", "step", "ref", "case_sensitive"},
    # A table at a place was named as one that was loaded.
    "alter_table": {"id", "version", "past", "step"},
    # Files of a compaction are those of its groups.
    "commit_compaction": {"files"},
    # Settings are those of a catalog, which a process may have several of.
    "hello": {"settings"},
}
NOT_ASKED_ANY_MORE = {
    # The plan of a scan has the values of partition fields, too.
    "partition_keys",
}


def _end_of_changes(params):
    # A stream of changes had whether its query compares them.
    return {"changes": params["changes"]["end"]} if params.get("changes") else {}


SENT_SINCE = {
    **dict.fromkeys(("stream_start", "stream_head", "stream_next", "stream_files"), _end_of_changes),
    # The result of a job says which job it is of, as the job does, so that other results are refused.
    "call": lambda params: (
        {"result": {"kind": "compact", **params["result"]}} if params.get("result") else {}
    ),
}
ANSWERED_SINCE = {
    # What may be among the changes of a batch.
    "stream_files": dict.fromkeys(("may_carry", "may_update", "may_repeat"), False),
}
TRUE_UNLESS_SAID = {"nullable", "with_start", "with_end"}


def with_present_bounds(sent):
    """Return a request in which bounds of statistics have the names that lists of files in Arrow have for them."""
    if isinstance(sent, list):
        return [with_present_bounds(value) for value in sent]
    if not isinstance(sent, dict):
        return sent
    names = {"min": "lo", "max": "hi"}
    return {
        name: {id: {names.get(kind, kind): bound for kind, bound in own.items()} for id, own in value.items()}
        if name == "stats"
        else with_present_bounds(value)
        for name, value in sent.items()
    }


def decoded(method, params):
    sent_values = {
        key: value for key, value in params.items() if key not in NOT_SENT_ANY_MORE.get(method, ())
    }
    sent_values = with_present_bounds(sent_values | SENT_SINCE.get(method, lambda _: {})(params))
    request = process.Hello if method == "hello" else HANDLERS[method].request
    return sent_values, msgspec.json.decode(json.dumps(sent_values), type=request)


def values(struct):
    written = json.loads(msgspec.json.encode(struct))
    written.pop("method", None)
    return written


def assert_same(before, now, where="$"):
    """Nothing is lost, and nothing added, but what a member is anyway that is missing."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in before.keys() | now.keys():
            if name in before and name in now:
                assert_same(before[name], now[name], f"{where}.{name}")
            else:
                known = before.get(name, now.get(name))
                default = known is True if name in TRUE_UNLESS_SAID else not known
                assert default, f"{where}.{name} is {known!r} on one side"
    elif isinstance(before, list) and isinstance(now, list):
        assert len(before) == len(now), where
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            assert_same(old, new, f"{where}[{i}]")
    else:
        assert type(before) is type(now) and before == now, where


def asked(frame):
    request = json.loads(frame["request"])
    first = request.get("first")
    params = dict(request["params"])
    for begun in frame["begun"]:
        params |= json.loads(begun)
    if first is None:
        return [(request["method"], params)]
    # Where the first one failed, the other was not looked at.
    return [(first["method"], first["params"]), *([(request["method"], params)] if frame["begun"] else [])]


def test_every_request_is_among_the_frames():
    methods = {method for frame in FRAMES for method, _ in asked(frame)}
    assert methods == {*HANDLERS, "hello"} | NOT_ASKED_ANY_MORE


@pytest.mark.parametrize("method", sorted({*HANDLERS, "hello"}))
def test_requests_decode_to_the_values_that_they_had(method):
    for frame in FRAMES:
        for name, params in asked(frame):
            if name == method:
                assert_same(
                    *[part if isinstance(part, dict) else values(part) for part in decoded(name, params)]
                )


@pytest.mark.parametrize("method", sorted(HANDLERS))
def test_answers_decode_to_the_values_that_they_had(method):
    for frame in FRAMES:
        if json.loads(frame["request"])["method"] != method:
            continue
        answer = json.loads(frame["answer"])
        if "error" in answer:
            failed_text = msgspec.json.decode(json.dumps(answer["error"]), type=process.FailedRequest)
            assert_same(answer["error"], values(failed_text))
            continue
        answered, fitting = answer["ok"] | ANSWERED_SINCE.get(method, {}), []
        for kind in HANDLERS[method].answers:
            try:
                fitting.append(msgspec.json.decode(json.dumps(answered), type=kind))
            except msgspec.ValidationError as error:
                why = error
        assert len(fitting) == 1, why
        assert_same(answered, values(fitting[0]))


def test_frames_are_taken_as_they_were_sent():
    for frame in FRAMES:
        request = msgspec.json.decode(frame["request"], type=process.SentRequest)
        assert request.method == json.loads(frame["request"])["method"]

"""The Scala side of the bridge reads and writes every request, every answer and every part of them, as Python does."""

from __future__ import annotations

import json
from typing import get_args

import msgspec
import pytest
from tests.format.bridge.test_frames import FRAMES, NOT_ASKED_ANY_MORE, asked, assert_same, decoded, values
from tests.unit.spark.samples import sample

from lakelog.spark.handlers.entries import HANDLERS
from programs.wire.structs import BESIDE, PROCESS, UNIONS, by_subject, is_value, requests, tag

REQUESTS = [request for request, _, _ in requests()]
VALUES = [struct for structs in by_subject().values() for struct in structs if is_value(struct)]


@pytest.fixture(scope="module")
def mirror(spark):
    return spark.sparkContext._jvm.org.apache.spark.sql.lakelog.wire.Mirror


@pytest.mark.parametrize("full", [True, False], ids=["all", "only-what-must-be"])
@pytest.mark.adapter
def test_scala_writes_every_request_so_that_python_reads_it(mirror, full):
    assert {request for request, _ in PROCESS} < set(REQUESTS)
    for request in REQUESTS:
        new_request = sample(request, full=full)
        members = msgspec.to_builtins(new_request)
        del members["method"]
        written_request = mirror.request(tag(request), json.dumps(members))
        assert msgspec.json.decode(written_request, type=request) == new_request


@pytest.mark.parametrize("full", [True, False], ids=["all", "only-what-must-be"])
@pytest.mark.adapter
def test_scala_reads_and_writes_every_value_as_python_does(mirror, full):
    assert {answer for _, answers, _ in requests() for answer in answers} | set(BESIDE) <= set(VALUES)
    for struct in VALUES:
        new_struct = sample(struct, full=full)
        value = mirror.value(struct.__name__, msgspec.json.encode(new_struct).decode())
        assert msgspec.json.decode(value, type=struct) == new_struct


@pytest.mark.parametrize("full", [True, False], ids=["all", "only-what-must-be"])
@pytest.mark.parametrize("union", UNIONS)
@pytest.mark.adapter
def test_scala_distinguishes_the_structs_of_a_union(mirror, union, full):
    for struct in get_args(UNIONS[union]):
        new_struct = sample(struct, full=full)
        value = mirror.value(union, msgspec.json.encode(new_struct).decode())
        assert msgspec.json.decode(value, type=UNIONS[union]) == new_struct
    new_struct = {**msgspec.to_builtins(new_struct), new_struct.__struct_config__.tag_field: "another"}
    with pytest.raises(Exception, match="Python did not mean to say another here"):
        mirror.value(union, json.dumps(new_struct))


@pytest.mark.adapter
def test_scala_writes_old_frames_with_the_values_that_they_had(mirror):
    for frame in FRAMES:
        for method, params in asked(frame):
            if method in NOT_ASKED_ANY_MORE:
                continue
            sent, request = decoded(method, params)
            text = msgspec.json.decode(mirror.request(method, json.dumps(sent)), type=type(request))
            assert_same(values(request), values(text))
        method, answer = json.loads(frame["request"])["method"], json.loads(frame["answer"])
        if method in HANDLERS and "ok" in answer:
            for kind in HANDLERS[method].answers:
                try:
                    read = msgspec.json.decode(json.dumps(answer["ok"]), type=kind)
                except msgspec.ValidationError:
                    continue
                again = mirror.value(kind.__name__, json.dumps(answer["ok"]))
                assert_same(values(read), values(msgspec.json.decode(again, type=kind)))

"""The Scala side of the bridge reads and writes every request and every answer, as Python does."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.unit.spark.samples import sample

from programs.wire.structs import PROCESS, is_typed, requests, tag

REQUESTS = [request for request, _, _ in requests()]
ANSWERS = sorted(
    {answer for _, answers, _ in requests() for answer in answers if is_typed(answer)},
    key=lambda answer: answer.__name__,
)


@pytest.fixture(scope="module")
def mirror(spark):
    return spark.sparkContext._jvm.org.apache.spark.sql.lakelog.wire.Mirror


@pytest.mark.parametrize("full", [True, False], ids=["all", "only-what-must-be"])
@pytest.mark.adapter
def test_scala_writes_every_request_so_that_python_reads_it(mirror, full):
    assert {request for request, _ in PROCESS} < set(REQUESTS)
    for request in REQUESTS:
        made = sample(request, full=full)
        members = msgspec.to_builtins(made)
        del members["method"]
        written = mirror.request(tag(request), json.dumps(members))
        assert msgspec.json.decode(written, type=request) == made


@pytest.mark.parametrize("full", [True, False], ids=["all", "only-what-must-be"])
@pytest.mark.adapter
def test_scala_reads_every_answer_as_python_writes_it(mirror, full):
    for answer in ANSWERS:
        made = sample(answer, full=full)
        written = mirror.answer(answer.__name__, msgspec.json.encode(made).decode())
        assert msgspec.json.decode(written, type=answer) == made

"""The list of requests: its generated Scala is current, and unknown requests are refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.unit.spark.asking import Side
from tests.unit.spark.samples import sample

from lakelog.spark.dispatch import RequestDispatch, VersionMismatch
from lakelog.spark.handlers.entries import HANDLERS
from programs.wire.listing import listed
from programs.wire.scala import FOLDER, sources
from programs.wire.structs import requests, tag

ROOT = Path(__file__).parents[3]

WRITTEN_BY_HAND = ("Envelope", "Expression", "FreeJson", "Json", "JsonValues", "Message", "Scalar", "Scope")

LOADED = {"location": "/t", "id": "t", "version": 1, "past": False, "step": 0}

REQUESTS = {tag(request): request for request, _, _ in requests()}
ANSWERS = {answer.__name__: answer for _, answers, _ in requests() for answer in answers}


@pytest.fixture
def side(tmp_path):
    return Side(warehouse=str(tmp_path / "lake"), fsync="off")


def test_the_list_in_the_readme_is_current():
    for path, text in listed(ROOT).items():
        assert (ROOT / path).read_text() == text, "run scripts/wire"


def test_the_scala_side_is_current():
    """Except for how scalafmt lays it out."""
    for path, text in sources().items():
        written_text = (ROOT / path).read_text()
        assert "".join(written_text.split()) == "".join(text.split()), f"{path} is old: run scripts/wire"
    written_by_hand = {f"{FOLDER}/{name}.scala" for name in WRITTEN_BY_HAND}
    assert {f"{FOLDER}/{path.name}" for path in (ROOT / FOLDER).iterdir()} == {*sources(), *written_by_hand}


@pytest.mark.parametrize("full", [True, False], ids=["all", "only-what-must-be"])
@pytest.mark.parametrize("method", REQUESTS)
def test_a_request_is_read_as_it_is_written(method, full):
    request = REQUESTS[method]
    new_request = sample(request, full=full)
    members = msgspec.to_builtins(new_request)
    assert members.pop("method") == method
    assert msgspec.json.decode(msgspec.json.encode(members), type=request) == new_request


@pytest.mark.parametrize("method", sorted(HANDLERS))
def test_what_a_request_does_not_have_is_refused_by_name(side, method):
    members = msgspec.to_builtins(sample(HANDLERS[method].request, full=True))
    del members["method"]
    with pytest.raises(VersionMismatch, match=rf"{method}.*unknown field `surprise`.*lakelog\.spark jar"):
        side.answer(method, {**members, "surprise": 1})
    with pytest.raises(VersionMismatch, match=rf"{method}.*method"):
        side.answer(method, {**members, "method": "another"})


def test_what_is_inside_of_members_is_refused_too(side):
    members = msgspec.to_builtins(sample(HANDLERS["plan"].request, full=True))
    del members["method"]
    members["top"]["surprise"] = 1
    with pytest.raises(VersionMismatch, match=r"unknown field `surprise` - at `\$\.top`"):
        side.answer("plan", members)


@pytest.mark.parametrize(
    ("method", "members", "error"),
    [
        ("can_change", {"change": {"change": "another"}}, r"'another' - at `\$\.change\.change`"),
        (
            "can_change",
            {"change": {"change": "remove-property", "key": "k", "surprise": 1}},
            r"`surprise` - at `\$\.change`",
        ),
        (
            "plan",
            {"predicate": {"op": "NOT", "args": [{"col": ["a"], "surprise": 1}]}},
            r"unknown field `surprise`",
        ),
        (
            "plan",
            {"predicate": {"op": "NOT", "args": [{"col": ["a"], "lit": 1}]}},
            "has one of op, transform, col",
        ),
        ("plan", {"predicate": {"op": "NOT", "args": [{}]}}, "has one of op, transform, col"),
        ("plan", {"predicate": {"col": ["a"], "args": []}}, "only an op or a transform has args"),
        ("plan", {"predicate": {"col": ["a"], "type": "long"}}, "only a lit has a type"),
        ("add_partitions", {"partitions": [{"a": [1]}], "token": None}, r"at `\$\.partitions"),
    ],
)
def test_what_is_inside_of_values_is_refused_too(side, method, members, error):
    with pytest.raises(VersionMismatch, match=error):
        side.answer(method, {**LOADED, **members})


def test_a_table_is_named_in_one_way(side):
    for named in ({}, {"identifier": ["t"], "location": "/t"}):
        with pytest.raises(VersionMismatch, match="named by its identifier or its location"):
            side.answer("table_exists", named)


def test_an_unknown_request_is_refused_by_name_before_and_after_hello(side):
    for asked in (RequestDispatch(), side.dispatch):
        with pytest.raises(VersionMismatch, match="do_magic"):
            asked.answer("do_magic", b"{}")


def test_every_answer_is_written_as_the_list_says():
    for name, answer in ANSWERS.items():
        new_answer = sample(answer, full=True)
        assert msgspec.json.decode(msgspec.json.encode(new_answer), type=answer) == new_answer, name

"""Histories of real processes fit into one order, judged by porcupine, which knows nothing of lakelog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.linearizability.checker import check, has_go
from tests.linearizability.histories import place_of, record
from tests.processes.driver import LOCAL, S3, Report
from tests.processes.mutations import MUTATIONS

from lakelog.testing.versitygw import INSTALL, find_versitygw

pytestmark = pytest.mark.slow
HISTORIES = {LOCAL: 800, S3: 200}
AT_A_TIME = 100
MUTATED, MUTATED_AT_A_TIME = 90, 9
"""In how many histories a removed protection has to be missed. Most are in the first ones."""


@pytest.fixture(autouse=True)
def needs_go() -> None:
    if not has_go():
        pytest.skip(
            "no Go on this machine, so no history was checked by porcupine; install it: https://go.dev/dl"
        )


def parts() -> Iterator[Any]:
    for store, count in HISTORIES.items():
        for first in range(1, count + 1, AT_A_TIME):
            marks = [pytest.mark.s3] if store == S3 else []
            yield pytest.param(store, first, id=f"{store}-{first}", marks=marks)


@pytest.mark.parametrize(("store", "first"), [*parts()])
def test_what_processes_see_fits_into_one_order(tmp_path: Path, store: str, first: int) -> None:
    if store == S3 and find_versitygw() is None:
        pytest.skip(
            f"no versitygw on this machine, so no history is of a real S3 server; install it: {INSTALL}"
        )
    with place_of(store, tmp_path, first) as (place, faults):
        report = record(place, tmp_path, range(first, first + AT_A_TIME))
    report.faults.update(faults)
    print("\n".join(report.lines()))
    assert not report.wrong, report.wrong[:5]
    assert report.figures["histories"] == AT_A_TIME
    for label in ("clients killed", "clients stopped", "retries", "operations that nothing is known of"):
        assert report.figures[label] > 0, label
    assert bool(report.faults) == (store == S3)


@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_a_protection_that_is_removed_is_missed(tmp_path: Path, mutation: str) -> None:
    report = Report()
    with place_of(LOCAL, tmp_path, 1) as (place, _):
        for first in range(1, MUTATED + 1, MUTATED_AT_A_TIME):
            report = record(place, tmp_path, range(first, first + MUTATED_AT_A_TIME), mutation=mutation)
            if report.wrong:
                return
    pytest.fail(f"no history shows {mutation}")


def operation(do: str, call: int, end: int = 0, **named: Any) -> dict[str, Any]:
    """An operation of a history; without an end, nothing is known of its outcome."""
    assert (end > 0) == ("answer" in named)
    return {"do": do, "call": call, "return": end, "client": 0} | named


def judged(folder: Path, model: str, operations: Iterable[dict[str, Any]]) -> tuple[str, bool]:
    path = folder / "history.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"model": model}, *operations])))
    [judgement] = check([path])
    return judgement.result, judgement.moved_back


APPEND = operation("append", 1, 2, ids=[1, 2], answer="ok")
OVERWRITE = operation("overwrite", 3, ids=[3])
CREATE = operation("create", 1, 2, name="a", mark="m", answer="ok")
RENAME = operation("rename", 3, name="a", new="b")
TRANSFER = operation("transfer", 1, 2, change={0: -5, 1: 5}, answer=[0, 0, None])
DEPOSIT = operation("deposit", 3, change={2: 7})


@pytest.mark.parametrize(
    ("model", "operations", "result"),
    [
        ("rows", [APPEND, operation("read", 3, 4, answer=[2, 1])], "Ok"),
        ("rows", [APPEND, operation("count", 3, 4, answer=2)], "Ok"),
        ("rows", [APPEND, operation("read", 3, 4, answer=[])], "Illegal"),
        ("rows", [APPEND, operation("read", 2, 4, answer=[])], "Ok"),
        ("rows", [APPEND, operation("read", 3, 4, answer=[1])], "Illegal"),
        ("rows", [APPEND, operation("read", 3, 4, answer=[1, 2, 1, 2])], "Illegal"),
        ("rows", [APPEND, OVERWRITE, operation("read", 4, 5, answer=[3])], "Ok"),
        ("rows", [APPEND, OVERWRITE, operation("read", 4, 5, answer=[1, 2])], "Ok"),
        ("rows", [APPEND, OVERWRITE, operation("count", 4, 5, answer=3)], "Illegal"),
        (
            "rows",
            [
                APPEND,
                OVERWRITE,
                operation("read", 4, 5, answer=[3]),
                operation("read", 6, 7, answer=[1, 2]),
            ],
            "Illegal",
        ),
        ("names", [CREATE, operation("list", 3, 4, answer=["a"])], "Ok"),
        ("names", [CREATE, operation("list", 3, 4, answer=[])], "Illegal"),
        ("names", [CREATE, operation("look", 3, 4, name="a", answer="m")], "Ok"),
        ("names", [CREATE, operation("look", 3, 4, name="a", answer="n")], "Illegal"),
        ("names", [CREATE, operation("create", 3, 4, name="a", mark="n", answer="exists")], "Ok"),
        ("names", [CREATE, operation("create", 3, 4, name="a", mark="n", answer="ok")], "Illegal"),
        ("names", [CREATE, operation("drop", 3, 4, name="a", answer="missing")], "Illegal"),
        ("names", [CREATE, operation("drop", 3, 4, name="b", answer="missing")], "Ok"),
        ("names", [CREATE, RENAME, operation("look", 4, 5, name="b", answer="m")], "Ok"),
        ("names", [CREATE, RENAME, operation("look", 4, 5, name="b", answer="missing")], "Ok"),
        ("names", [CREATE, RENAME, operation("list", 4, 5, answer=["a", "b"])], "Illegal"),
        ("names", [CREATE, operation("rename", 3, 4, name="b", new="a", answer="exists")], "Ok"),
        ("names", [CREATE, operation("rename", 3, 4, name="a", new="b", answer="exists")], "Illegal"),
        ("balances", [TRANSFER, operation("read", 3, 4, answer=[-5, 5, 0])], "Ok"),
        ("balances", [TRANSFER, operation("read", 3, 4, answer=[-5, 0, 0])], "Illegal"),
        ("balances", [TRANSFER, operation("transfer", 3, 4, change={1: 1}, answer=[None, 0, 0])], "Illegal"),
        ("balances", [TRANSFER, DEPOSIT, operation("read", 4, 5, answer=[-5, 5, 7])], "Ok"),
        ("balances", [TRANSFER, DEPOSIT, operation("read", 4, 5, answer=[-5, 5, 0])], "Ok"),
        ("balances", [TRANSFER, DEPOSIT, operation("read", 4, 5, answer=[0, 0, 7])], "Illegal"),
    ],
)
def test_a_history_fits_into_one_order_or_not(
    tmp_path: Path, model: str, operations: list[dict[str, Any]], result: str
) -> None:
    assert judged(tmp_path, model, operations) == (result, False)


def test_a_cut_may_be_of_a_moment_before_its_call_but_not_before_what_its_process_has_seen(
    tmp_path: Path,
) -> None:
    early = operation("read", 3, 4, answer=[0, 0, 0])
    assert judged(tmp_path, "balances", [TRANSFER, early | {"since": 1}]) == ("Ok", True)
    assert judged(tmp_path, "balances", [TRANSFER, early | {"since": 3}]) == ("Illegal", False)

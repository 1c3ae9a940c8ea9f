"""The adapter's requests about changes of rows, and the answers that it may rely on."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.spark.asking import EVERYTHING, ask, reference
from tests.unit.spark.test_procedures import append, begin, create, fresh

from lakelog.catalog.next_step import start_over
from lakelog.log.errors import NotFound

__all__ = ["fresh"]

NO_ENDS = dict.fromkeys(("start_version", "end_version", "start_us", "end_us"))


def load(dispatch, transaction=None, **asked):
    scope = {} if transaction is None else {"transaction": transaction}
    given = {**NO_ENDS, **asked, **scope, "with_start": True, "with_end": True}
    return ask(dispatch, "load_changes", identifier=["t"], **given)


def files(dispatch, method, facts, **more):
    _, body = dispatch.answer(method, {**reference(facts), "predicate": EVERYTHING, **more})
    return pa.ipc.open_stream(body).read_all().num_rows


def test_nothing_is_said_of_what_is_among_changes_that_may_become_more(fresh):
    dispatch = fresh()
    create(dispatch, "t")
    time_us = dispatch.catalog.load_table("t").table_head.time_us

    def claims(**asked):
        found = load(dispatch, **asked)
        assert (found["first"], found["last"]) == (1, 1)
        return {not found[name] for name in ("may_carry", "may_update", "may_repeat")}

    assert claims(start_version=1, end_version=1) == {True}
    for end_us in (time_us, time_us + 1):
        assert claims(start_us=0, end_us=end_us) == {False}, (
            "a stream may have begun before that time had passed"
        )
    assert claims(start_version=1) == {False}


def test_changes_are_not_of_what_their_transaction_has_done_nor_is_the_version_that_they_end_at(fresh):
    dispatch = fresh()
    create(dispatch, "t")
    id = begin(dispatch)
    append(dispatch, ask(dispatch, "load_table", identifier=["t"], transaction=id), transaction=id)
    past = ask(dispatch, "load_table", identifier=["t"], version=1, transaction=id)
    for asked in ({"end_version": 1}, {}):
        changes = load(dispatch, id, start_version=1, **asked)
        ends = {"first": changes["first"], "last": changes["last"], "transaction": id}
        assert files(dispatch, "plan_changes", changes, **ends) == 0
        assert files(dispatch, "plan", past, transaction=id) == 0
    now = ask(dispatch, "load_table", identifier=["t"], transaction=id)
    assert files(dispatch, "plan", now, transaction=id) == 1


def test_changes_up_to_a_version_are_loaded_where_some_expired_and_refused_where_they_are_read(fresh):
    dispatch = fresh()
    create(dispatch, "t")
    for _ in range(3):
        append(dispatch, ask(dispatch, "load_table", identifier=["t"]))
    dispatch.catalog.expire("t", retain_last=2, dry_run=False)
    found = load(dispatch, start_version=1, end_version=4)
    assert [found[name] for name in ("first", "last", "may_carry", "end")] == [
        1, 4, True, {"last": 4},
    ]  # fmt: skip
    with pytest.raises(NotFound, match="from version 1 to 4 can no longer be read"):
        files(dispatch, "plan_changes", found, first=1, last=4)
    assert files(dispatch, "plan_changes", found, first=4, last=4) == 1


def test_a_conflict_of_a_statement_advises_to_run_it_again(fresh, monkeypatch):
    dispatch = fresh()
    create(dispatch, "t")
    facts = ask(dispatch, "load_table", identifier=["t"])
    advice = []
    monkeypatch.setattr(
        "lakelog.catalog.table.delete.delete", lambda head, *_: advice.append(start_over()) or head
    )
    ask(
        dispatch,
        "delete",
        **reference(facts),
        predicate=EVERYTHING,
        token=ask(dispatch, "token", identifier=["t"]),
    )
    assert advice == ["run the statement again"] and start_over() != advice[0]

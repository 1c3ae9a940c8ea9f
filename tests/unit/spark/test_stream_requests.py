"""The adapter's requests about streams: their cost, and retries."""

from __future__ import annotations

import json

import pytest
from tests.unit.spark.asking import ask, reference
from tests.unit.spark.test_bridge import create, fresh

from lakelog.catalog.errors import CommitConflict
from lakelog.log.errors import InvalidInput
from lakelog.log.stores.local_store import LocalStore

__all__ = ["fresh"]


@pytest.fixture
def requests(monkeypatch):
    """The names of the requests to the store, as they are made; a round of several reads is several."""
    texts: list[str] = []
    for name in ("get", "put_if_absent", "list_after"):
        real = getattr(LocalStore, name)

        def counted(self, *args, real=real, name=name, **kwargs):
            texts.append(name)
            return real(self, *args, **kwargs)

        monkeypatch.setattr(LocalStore, name, counted)
    return texts


def stream(dispatch, facts, method, **params):
    form = ask(dispatch, "stream_form", **reference(facts))["form"]
    own = {"name": "lake.t", "form": form, "skips_changes": False}
    if method == "stream_next":
        own["limits"] = {}
    return ask(dispatch, method, **reference(facts), **own, **params)


def write(dispatch, facts, number, stream_id="q", **more):
    """Commit a batch of one file as the adapter does; return whether its file is in the table."""
    begun = ask(dispatch, "begin_batch", **reference(facts), name="lake.t", written_as=facts["version"])
    token = {key: begun[key] for key in ("write", "token")}
    where = reference(facts) | {"version": begun["version"]}
    path = f"data/{begun['write']['version']:020d}-{begun['write']['id']}-0.parquet"
    files = [{"path": path, "size": 10, "rows": 2, "spec": 0}]
    batch = {"stream": stream_id, "number": number, "from_checkpoint": True}
    asked = {**where, **token, "operation": "append", "filter": None, "files": files, "batch": batch, **more}
    return ask(dispatch, "commit_write", **asked)["written"], asked


def test_an_idle_trigger_costs_one_request(fresh, requests):
    dispatch = fresh()
    facts, _ = create(dispatch, "t")
    position = stream(dispatch, facts, "stream_start")["position"]
    end = stream(dispatch, facts, "stream_next", position=position)["position"]
    del requests[:]
    for _ in range(3):
        assert stream(dispatch, facts, "stream_next", position=end)["position"] == end
    assert requests == ["get"] * 3


def test_an_idle_trigger_costs_one_request_after_the_end_of_changes_too(fresh, requests):
    dispatch = fresh()
    facts, _ = create(dispatch, "t")
    end_us = dispatch.catalog.load_table("t").table_head.time_us
    for number in range(3):
        write(dispatch, facts, number)
    changes = {"last": None, "last_us": end_us}
    position = stream(dispatch, facts, "stream_start", changes=changes, starting_version=1)["position"]
    end = stream(dispatch, facts, "stream_next", position=position, changes=changes)["position"]
    assert json.loads(end)["version"] == 2
    del requests[:]
    for _ in range(3):
        assert stream(dispatch, facts, "stream_next", position=end, changes=changes)["position"] == end
    assert requests == ["get"] * 3


def test_a_batch_costs_a_look_and_a_commit(fresh, requests):
    dispatch = fresh()
    facts, _ = create(dispatch, "t")
    write(dispatch, facts, 0)
    del requests[:]
    assert write(dispatch, facts, 1)[0]
    assert requests == ["get", "put_if_absent"]


def test_a_batch_whose_answer_was_lost_is_found_by_a_new_process_as_its_own(fresh):
    facts, _ = create(fresh(), "t")
    written, asked = write(fresh(), facts, 0)
    assert written
    for _ in range(2):
        assert ask(fresh(), "commit_write", **asked)["written"], "the files are in the table: they must stay"
    assert write(fresh(), facts, 0)[0] is False, "those of another write of the same batch are not"
    assert ask(fresh(), "load_table", identifier=["t"])["version"] == facts["version"] + 1


def test_a_query_may_write_for_longer_than_its_first_version_is_known(fresh):
    dispatch = fresh()
    facts, _ = create(dispatch, "t")
    for number in range(300):
        assert write(dispatch, facts, number)[0]
        if number % 100 == 50:
            dispatch.catalog.expire("t", retain_last=1, dry_run=False)


def test_a_table_that_was_altered_takes_no_rows_that_were_made_for_it_before(fresh):
    dispatch = fresh()
    facts, _ = create(dispatch, "t")
    column = {"change": "add-column", "name": ["more"], "type": "long"}
    ask(dispatch, "alter_table", identifier=["t"], changes=[column], token=None)
    with pytest.raises(CommitConflict, match="it has other columns now.*Restart the query"):
        write(dispatch, facts, 0)


def test_limits_of_nothing_are_refused(fresh):
    dispatch = fresh()
    facts, _ = create(dispatch, "t")
    position = stream(dispatch, facts, "stream_start")["position"]
    own = {"name": "lake.t", "form": "", "skips_changes": False, "limits": {"files": 0}}
    with pytest.raises(InvalidInput, match="give 1 or more"):
        ask(dispatch, "stream_next", **reference(facts), **own, position=position)

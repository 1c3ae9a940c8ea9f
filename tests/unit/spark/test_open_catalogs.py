"""Several catalogs in one process share nothing."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from tests.patience import PATIENCE_S, wait_until
from tests.unit.spark.asking import Side, ask
from tests.unit.spark.test_procedures import append, begin, create

from lakelog.catalog import Catalog
from lakelog.catalog.errors import NoSuchTable
from lakelog.log import combined_ids
from lakelog.log.errors import InvalidInput
from lakelog.spark.dispatch import RequestDispatch
from lakelog.spark.jar import version
from lakelog.spark.open_catalog import AT_ONCE
from lakelog.spark.open_transactions import TransactionLost


class OneOf(Side):
    """One of the catalogs of a process."""

    def __init__(self, dispatch, **settings):
        self.dispatch = dispatch
        self._catalog = None
        self._catalog = ask(self, "open_catalog", settings=settings)["catalog"]

    def close(self):
        ask(self, "close_catalog", catalog=self._catalog)


@pytest.fixture
def dispatch():
    made = RequestDispatch()
    made.answer("hello", msgspec.json.encode({"version": version(), "spark": "4.3.0"}))
    return made


@pytest.fixture
def opened(dispatch, tmp_path):
    def open_one(name, **more):
        (tmp_path / name).mkdir(exist_ok=True)
        return OneOf(dispatch, warehouse=str(tmp_path / name), fsync="off", **more)

    return open_one


def test_tables_and_transactions_of_one_catalog_are_not_those_of_another(opened):
    one, two = opened("one"), opened("two")
    facts = create(one, "t")
    assert ask(two, "table_exists", identifier=["t"]) == {"exists": False}
    with pytest.raises(NoSuchTable):
        ask(two, "load_table", identifier=["t"])
    id = begin(one)
    append(one, facts, transaction=id)
    with pytest.raises(TransactionLost):
        ask(two, "load_table", identifier=["t"], transaction=id)
    assert ask(one, "load_table", identifier=["t"], transaction=id)["step"] == 2


def test_a_catalog_that_is_closed_rolls_back_and_leaves_the_others_alone(opened):
    one, two = opened("one"), opened("two")
    facts, of_two = create(one, "t"), create(two, "t")
    append(one, facts, transaction=begin(one))
    kept = begin(two)
    append(two, of_two, transaction=kept)
    transaction = next(iter(one.dispatch.opened(1).open_transactions._open.values())).transaction
    one.close()
    assert not transaction.is_open
    with pytest.raises(InvalidInput, match="not open in this process"):
        ask(one, "load_table", identifier=["t"])
    one.close()
    assert ask(two, "load_table", identifier=["t"], transaction=kept)["step"] == 2
    assert ask(opened("one"), "load_table", identifier=["t"])["version"] == facts["version"]


def test_sessions_of_several_drivers_propose_where_a_setting_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0)
    drivers = [Side(warehouse=str(tmp_path), fsync="off", proposals="on") for _ in range(4)]
    create(drivers[0], "t")

    def work(driver):
        for _ in range(6):
            append(driver, ask(driver, "load_table", identifier=["t"]))

    table, rounds = Catalog(str(tmp_path)).load_table("t"), 0

    def meet():
        nonlocal table, rounds
        with ThreadPoolExecutor(len(drivers)) as threads:
            list(threads.map(work, drivers))
        table, rounds = table.refresh(), rounds + 1
        return any(combined_ids(commit) for commit in table.table_head.commits())

    # Whether a driver finds what another proposes is chance: they go on until it happens.
    wait_until(meet, "that one driver commits what another proposes")
    assert table.table_head.all_files().num_rows == rounds * 4 * 6 == len(list(table.history())) - 1
    assert table.version - 1 < rounds * 4 * 6


def test_settings_of_one_catalog_are_not_those_of_another(dispatch, opened):
    environ_before = dict(os.environ)
    with pytest.raises(InvalidInput, match="maintenance"):
        opened("bad", maintenance="sometimes")
    with pytest.raises(InvalidInput, match="the catalog's proposals is yes, but it can be auto, on, off"):
        opened("bad", proposals="yes")
    with pytest.raises(InvalidInput, match="statement-text"):
        opened("bad", **{"statement-text": "some"})
    same = {"warehouse": "s3://bucket/warehouse", "path_style": "true"}
    stores = []
    for endpoint, region in (("http://127.0.0.1:1", "eu-west-1"), ("http://127.0.0.1:2", "us-east-1")):
        side = OneOf(dispatch, **same, endpoint=endpoint, region=region)
        places = side.catalog._logs.places
        stores.append(places.store(places.warehouse))
    files = [store.clients.files().fs for store in stores]
    assert [file.endpoint_url for file in files] == ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    assert [file.client_kwargs["region_name"] for file in files] == ["eu-west-1", "us-east-1"]
    # s3fs would hand the same file system, with its credentials, to all that give the same settings.
    again = OneOf(dispatch, **same, endpoint="http://127.0.0.1:1", region="eu-west-1").catalog._logs.places
    assert again.store(again.warehouse).clients.files().fs is not files[0]
    assert dict(os.environ) == environ_before


def test_snapshots_of_a_store_that_hangs_hold_up_no_other_catalog(opened):
    one, two = opened("one"), opened("two")
    go_on, is_done = threading.Event(), threading.Event()
    for number, (side, work) in enumerate(
        ((one, lambda: go_on.wait(PATIENCE_S)), (two, is_done.set)), start=1
    ):
        side.dispatch.opened(number)._background.run("the same place", work)
    assert is_done.wait(PATIENCE_S)
    go_on.set()


def test_so_many_requests_of_a_catalog_are_answered_at_a_time_and_of_another_too(opened):
    one, two = opened("one"), opened("two")
    at = one.dispatch.opened(1)
    for _ in range(AT_ONCE):
        at.turns.acquire()
    is_listed = threading.Event()

    def ask_one():
        ask(one, "list_namespaces", namespace=[])
        is_listed.set()

    waiting_thread = threading.Thread(target=ask_one, daemon=True)
    waiting_thread.start()
    assert ask(two, "list_namespaces", namespace=[]) == {"namespaces": []}
    assert not is_listed.wait(0.2)
    at.turns.release()
    assert is_listed.wait(PATIENCE_S)
    waiting_thread.join()

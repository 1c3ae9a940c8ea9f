"""What the verifier makes of states that kills leave behind rarely."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pytest
from tests.processes import chains, models
from tests.processes.world import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.log import LogOptions, expiry
from lakelog.log.stores import open_store
from lakelog.log.stores.local_store import LocalStore


class _Killed(Exception):
    pass


def test_a_purge_that_was_killed_after_the_data_is_not_taken_for_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("n")
    # No journal knows this append, so that the model asks the rows whose it was.
    catalog.create_table("n.t", SCHEMA).append(rows(1, 2, "w.1.1", "w"))
    catalog.drop_table("n.t")

    def killed(*_: object, **__: object) -> None:
        raise _Killed

    monkeypatch.setattr(expiry, "expire", killed)
    with pytest.raises(_Killed):
        catalog.vacuum(older_than=dt.timedelta(0), dropped_older_than=dt.timedelta(0), dry_run=False)
    warehouse = chains.read(open_store(str(tmp_path), {}))
    [chain] = [chain for chain in warehouse.chains.values() if chain.is_table]
    assert chain.purged and not any(path.suffix == ".parquet" for path in tmp_path.rglob("t-*/data/**/*"))
    checked = models.Checked(wrong=warehouse.wrong)
    models.TableModel(catalog, chain, random.Random(1), checked).follow(models.Requests([]))
    assert checked.wrong == []


def test_a_restore_that_was_killed_before_any_name_leads_to_its_log_is_settled_by_its_next_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(tmp_path)
    table = catalog.create_table("t", SCHEMA)
    catalog.drop_table("t")
    real = LocalStore.put_if_absent

    def killed_after_the_table(store: LocalStore, key: str, data: bytes) -> bool:
        if key.startswith("_log/") or "_txn" in key:
            raise _Killed
        return real(store, key, data)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put_if_absent", killed_after_the_table)
        with pytest.raises(_Killed):
            catalog.undrop_table("t")
    store = open_store(str(tmp_path), {})
    [chain] = [chain for chain in chains.read(store).chains.values() if chain.is_table]
    assert chain.entries[-1].version == table.version + 2 and chain.sealed
    assert len(chains.read(store).wrong) == 1
    impatient = Catalog(tmp_path, log_options=LogOptions(patience_s=0, patience_each_s=0))
    assert (chains.settle_restores(impatient), chains.settle_restores(impatient)) == (1, 0)
    warehouse = chains.read(store)
    assert warehouse.wrong == [] and warehouse.chains[chain.prefix].sealed
    catalog.undrop_table("t")
    assert Catalog(tmp_path).load_table("t").id == table.id

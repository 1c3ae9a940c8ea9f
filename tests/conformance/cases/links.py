"""Cases of what a reader believes: names that lead to nothing, and intents that have no effect."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from tests.conformance.cases.logs import Death, without_hints
from tests.conformance.cases.tables import NAMED, named
from tests.conformance.making import Bench, Case

from lakelog.catalog import Table
from lakelog.catalog.core.state import TableDropped, encode
from lakelog.log import Draft
from lakelog.log.decisions import DecisionPlace
from lakelog.log.participants import intents_of


def dropped_by_place(table: Table) -> None:
    """Seal a table's log alone, so that its name stays."""
    head = table.table_head
    head.tracked.commit(head.view, lambda view, passed: Draft(events=encode([TableDropped()]), seals=True))


def links(bench: Bench) -> None:
    """Tables that moved, tables at names of others, and names that lead to nothing any more."""
    catalog, places = bench.catalog, bench.folder / "warehouse" / "places"
    catalog.create_namespace("n")
    catalog.create_table("moved", NAMED).append(named(0))
    catalog.rename_table("moved", "n.first")
    catalog.rename_table("n.first", "n.second")
    catalog.create_table("moved", NAMED).append(named(10))
    catalog.create_table("n.first", NAMED).append(named(20))
    dropped_by_place(catalog.create_table("n.sealed", NAMED).append(named(30)))
    place = str(places / "t")
    dropped_by_place(catalog.create_table("n.old", NAMED, location=place).append(named(40)))
    catalog.create_table("n.new", NAMED, location=place).append(named(50))


def intents(bench: Bench) -> None:
    """Intents at heads: of an aborted transaction, and void ones, which no client writes."""
    catalog = bench.catalog
    names = ("one", "other", "left", "locked", "copied", "index", "longer", "outside", "followed")
    for name in names:
        catalog.create_table(name, NAMED)
    with catalog.transaction() as tx:
        tx.load_table("one").append(named(1))
        tx.load_table("other").append(named(2))

    def die(*_args: object) -> None:
        raise Death

    with patch.object(DecisionPlace, "create", die), contextlib.suppress(Death), catalog.transaction() as tx:
        tx.load_table("left").append(named(3))
        tx.load_table("locked").append(named(4))
    catalog.load_table("left").append(named(5))  # aborts it; the intent of `locked` stays at the head
    one = folder_of(bench, "one")
    model = json.loads(version_of(one, 2).read_bytes())
    there = {name: folder_of(bench, name).name for name in names}
    listed = {
        intent.log: msgspec.to_builtins(intent)
        for intent in intents_of("idforged", "", sorted([there["one"], there["longer"]]), "")
    }
    outside = {
        intent.log: msgspec.to_builtins(intent)
        for intent in intents_of("idforged", "n-elsewhere", sorted([there["one"], there["outside"]]), "")
    }
    own = model["intent"]
    for name, intent in (
        ("copied", own),
        ("index", {**own, "log": there["index"]}),
        ("longer", {**listed[there["longer"]], "proof": [*listed[there["longer"]]["proof"], "0" * 64]}),
        ("outside", outside[there["outside"]]),
        ("followed", {**own, "log": there["followed"]}),
    ):
        folder = folder_of(bench, name)
        shutil.copytree(one / "data", folder / "data", dirs_exist_ok=True)
        _follow(folder, model, intent)
        without_hints(bench, catalog.load_table(name))
    catalog.load_table("followed").append(named(6))


def folder_of(bench: Bench, name: str) -> Path:
    return bench.folder / "warehouse" / bench.catalog.load_table(name).table_head.tracked.location


def version_of(folder: Path, version: int) -> Path:
    return folder / "_log" / f"{version:020}.json"


def _follow(folder: Path, model: dict[str, Any], intent: dict[str, Any]) -> None:
    """Put version 2 of a log: the events of `model`, as an intent."""
    first = json.loads(version_of(folder, 1).read_bytes())
    commit = {**model, "log_id": first["log_id"], "prev": first["hash"], "intent": intent}
    del commit["hash"]
    body = json.dumps(commit, ensure_ascii=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    version_of(folder, 2).write_bytes(body[:-1] + f',"hash":"{digest}"}}'.encode())


CASES = (
    Case("links", "tables that moved, and names that lead to nothing", links),
    Case("intents", "intents of transactions that were aborted, and void intents", intents),
)

"""A client that may write a single namespace forges objects there. Nothing outside is changed, locked or reported."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.forging.forge import SCHEMA, Place, build, hashed

from lakelog.catalog import Vacuumed
from lakelog.catalog.keeping.maintenance.fsck import Severity
from lakelog.cli.main import run
from lakelog.log.errors import FormatError, InvalidInput
from lakelog.log.grammar import TIME_MAX_US
from lakelog.log.participants import intents_of

NO_AGE = dt.timedelta(0)

ROW = pa.table({"id": [9]}, schema=SCHEMA)


class Died(BaseException):
    """The coordinator of a transaction dies."""


@pytest.fixture
def place() -> Place:
    return build()


def die_before_the_decision(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    """Leave a transaction of the forger's table and the victim's undecided."""

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr("lakelog.log.together._Transaction._decide", die)
        with place.catalog().transaction() as transaction:
            for name in ("forger.t", "victim.t"):
                transaction.load_table(name).append(ROW)


def test_an_abort_on_behalf_of_another_commit_is_an_abort(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer that meets the forged intent decides the transaction by what stands there."""
    die_before_the_decision(monkeypatch, place)
    place.alter(place.commit_key(place.own, place.head), lambda intent: intent.update(commit_id="e" * 26))
    place.catalog().load_table("forger.t").append(ROW)
    assert place.catalog().load_table("victim.t").append(ROW).row_count == 4
    assert place.catalog().load_table("victim.t").scan().to_arrow().num_rows == 4
    assert not [finding for finding in place.catalog().fsck().found if "decision" in finding.kind]


@pytest.mark.parametrize("name", ["forger", "forger.t"])
def test_the_end_of_all_times_is_not_carried_to_other_logs(place: Place, name: str) -> None:
    """A transaction has one time in all of its logs, and nothing can be committed after the last one."""
    place.own = place.own if "." in name else place.own.rpartition("/")[0]
    event: dict[str, Any] = {"event": "table-altered" if "." in name else "namespace-altered", "set": {}}
    place.forge_next(events=[event], time_us=TIME_MAX_US - 3)
    catalog, head_before = place.catalog(), place.head
    with pytest.raises(FormatError, match=r"is 2,\d{3},\d{3} days ahead of that of memory:"):
        catalog.rename_table("forger.t", "victim.moved")
    with pytest.raises(FormatError, match="days ahead"), catalog.transaction() as transaction:
        transaction.load_table("victim.t").append(ROW)
        transaction.rename_table("forger.t", "victim.moved")
    assert place.head == head_before
    # The name goes by itself: a log that nothing else can change with it is left as it is.
    if name == "forger":
        catalog.drop_namespace(name, cascade=True)
        assert catalog.list_namespaces() == [("victim",)]
    else:
        assert catalog.drop_table(name)
        assert catalog.list_tables("forger") == []
    assert place.head == head_before
    for number in range(5):
        catalog.create_namespace(f"n{number}")
        catalog.create_table(f"victim.t{number}", SCHEMA)


def first_commit(place: Place, location: str, id: str, *events: dict[str, Any], **members: Any) -> None:
    """Put the first commit of a log of that id."""
    plain: dict[str, Any] = {
        "kind": "commit", "format": 1, "log_id": id, "version": 1, "commit_id": "c" * 26, "attempt_id": "d" * 26,
        "base": 0, "prev": "", "time_us": 1, "events": list(events),
    }  # fmt: skip
    place.store.put(place.commit_key(location, 1), hashed(plain | members))


def vacuumed(place: Place, namespace: str | None = "forger") -> list[Vacuumed]:
    return place.catalog().vacuum(
        namespace=namespace, older_than=NO_AGE, dropped_older_than=NO_AGE, dry_run=False
    )


def test_a_vacuum_forgets_an_unlinked_log_in_the_namespace_of_its_folder_only(place: Place) -> None:
    """Another namespace would never link that id again, though it may be about to."""
    own, victim = (location.rpartition("/")[0] for location in (place.own, place.victim))
    created_event = place.read(place.commit_key(place.own, 1))["events"][0] | {"namespace": victim}
    first_commit(place, f"{own}/t-{'a' * 26}", "a" * 26, created_event)
    number_before = place.last(victim)
    [refused] = [each for each in vacuumed(place) if each.error]
    assert refused.kind == "unlinked-table" and "which does not know it" in (refused.error or "")
    assert place.last(victim) == number_before


@pytest.mark.parametrize("home", ["x-outside", "gopher://host/x", "/proc/1/root"])
def test_a_log_names_no_namespace_outside_of_its_warehouse(place: Place, home: str) -> None:
    """It is not even read there."""
    location = f"{place.own.rpartition('/')[0]}/t-{'a' * 26}"
    home = f"{place.url}-outside" if home == "x-outside" else home
    created_event = place.read(place.commit_key(place.own, 1))["events"][0] | {"namespace": home}
    first_commit(place, location, "a" * 26, created_event)
    second = place.read(place.commit_key(location, 1))
    second |= {"version": 2, "prev": second["hash"], "time_us": 2, "events": []}
    place.store.put(place.commit_key(location, 2), hashed(second))
    place.outside.touched.clear()
    [refused] = [each for each in vacuumed(place) if each.error]
    assert "Expected `str` of the form that it has - at `$.namespace`" in (refused.error or "")
    place.catalog().fsck(repair=True)
    assert not place.outside.touched


@pytest.mark.parametrize("how", ["location", "former folder"])
def test_a_vacuum_deletes_no_files_in_the_folder_of_another_namespace(place: Place, how: str) -> None:
    """The forger makes a namespace that has the id of the victim's."""
    own, victim = (location.rpartition("/")[0] for location in (place.own, place.victim))
    under_way = f"{victim}/t-{'k' * 26}/data/{0:020d}-{'w' * 26}-00000.parquet"
    place.store.put(under_way, b"precious")
    nested_text, place.own = f"{own}/{victim}", own
    linked = {"event": "entry-linked", "space": "relation", "kind": "table", "id": "x" * 26, "name": "z"}
    properties = {"location": place.url} if how == "location" else {}
    first_commit(
        place,
        nested_text,
        victim[2:],
        {"event": "namespace-created", "properties": properties, "parent": own, "name": "nested"},
        {"event": "entry-forgotten", "id": "k" * 26},
        *([] if properties else [linked | {"location": f"{victim}/t-{'q' * 26}"}]),
    )
    child = linked | {"space": "namespace", "kind": "namespace", "id": victim[2:], "name": "nested"}
    place.forge_next(events=[child | {"location": nested_text}])
    assert "`forger`.`nested`" in [each.name for each in vacuumed(place)]
    assert place.store.get(under_way) == b"precious"


@pytest.mark.parametrize("location", ["", "_txn", "relative", "n-{victim}"])
def test_no_table_is_created_where_a_forged_location_leads(place: Place, location: str) -> None:
    place.own, victim = place.own.rpartition("/")[0], place.victim.rpartition("/")[0]
    where = location if location == "relative" else f"{place.url}/{location}".replace("n-{victim}", victim)
    place.forge_next(events=[{"event": "namespace-altered", "set": {"location": where}}])
    if location:
        with pytest.raises(InvalidInput, match="is inside of lakelog's own folders|is relative"):
            place.catalog().create_table("forger.new", SCHEMA)
    else:
        created_table = place.catalog().create_table("forger.new", SCHEMA)
        assert created_table.location.startswith(f"{place.url}/{place.own}/t-")
    assert not [each for each in vacuumed(place) if each.error]


def test_a_decision_says_nothing_of_logs_that_are_not_in_its_folder(place: Place) -> None:
    own, victim = (location.rpartition("/")[0] for location in (place.own, place.victim))
    for folder, listed_texts, positions in (
        (own, [place.own], {place.victim: 999}),
        (own, [place.own, place.victim], {place.own: 1, place.victim: 999}),
        (own, [place.victim], {place.victim: 1}),
        ("", [place.own], {place.victim: 999}),
    ):
        txn = intents_of("x" * 26, folder, sorted(listed_texts), "")[0].txn
        forged = {"kind": "decision", "format": 1, "txn": txn, "commit_id": "c" * 26, "outcome": "committed"}
        key = f"{own}/_txn/{txn}.json"
        place.store.put(key, hashed(forged | {"time_us": 5, "positions": positions}))
        findings = place.catalog().fsck().found
        assert {finding.kind for finding in findings} <= {"decision-unused", "decision-void"}
        assert {finding.where for finding in findings} <= {f"{place.url}/{key}"}, (
            folder,
            listed_texts,
            positions,
        )
        place.store.delete([key])
    assert victim


def test_what_a_log_says_of_a_transaction_of_others_is_no_sign_of_a_lost_decision(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forger's log says that it committed, and takes no part in it."""
    catalog = place.catalog()
    catalog.create_table("victim.u", SCHEMA)

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr("lakelog.log.together._Transaction._decide", die)
        with catalog.transaction() as transaction:
            for name in ("victim.t", "victim.u"):
                transaction.load_table(name).append(ROW)
    undecided = place.read(place.commit_key(place.victim, place.last(place.victim)))
    place.forge_next(commit_id=undecided["commit_id"], intent=undecided["intent"])
    place.forge_next(settles={"outcome": "committed", "time_us": undecided["time_us"]})
    findings = place.catalog().fsck().found
    assert [
        finding.kind
        for finding in findings
        if finding.where.endswith("_txn/" + undecided["intent"]["txn"] + ".json")
    ] == []
    damaged_texts = {finding.where for finding in findings if finding.severity is Severity.DAMAGE}
    assert damaged_texts and all(place.own in where for where in damaged_texts)
    assert "transaction-undecided" in {finding.kind for finding in findings if place.victim in finding.where}


def test_a_hint_that_names_a_namespace_elsewhere_is_not_used(place: Place) -> None:
    log = place.catalog()._logs.table(place.own)
    log.log.snapshot(log.current())
    elsewhere = {"namespace": f"{place.url}-outside", "name": "t"}
    place.alter(f"{place.own}/_log/latest.json", lambda hint: hint["state"].update(link=elsewhere))
    place.outside.touched.clear()
    assert place.catalog().load_table("forger.t").row_count == 3
    assert not [each for each in vacuumed(place) if each.error]
    assert not place.outside.touched


@pytest.mark.parametrize("kind", ["table", "namespace"])
@pytest.mark.parametrize("elsewhere", ["gopher://host/t", "/proc/1/root/x", "s3://"])
def test_a_hint_of_no_version_that_leads_elsewhere_ends_no_load(
    place: Place, kind: str, elsewhere: str
) -> None:
    """What it says is read ahead, before it turns out not to be of this log."""
    namespace = place.own.rpartition("/")[0] if kind == "table" else ""
    log = place.catalog()._logs.namespace(namespace)
    log.log.snapshot(log.current())

    def forge(hint: dict[str, Any]) -> None:
        hint["commit_hash"] = "0" * 64
        for names in hint["state"]["entries"].values():
            for entry in names.values():
                entry["location"] = elsewhere

    place.alter(log.log.keys.latest, forge)
    assert place.catalog().load_table("forger.t").row_count == 3


@pytest.mark.parametrize("kind", ["table", "namespace"])
@pytest.mark.parametrize(
    "location", ["gopher://host/t", "/proc/1/root/x", "memory://none/t", "", "_log", "~x"]
)
def test_a_name_that_leads_nowhere_ends_nothing_for_others(place: Place, kind: str, location: str) -> None:
    place.own = place.own.rpartition("/")[0]
    space = "relation" if kind == "table" else "namespace"
    linked = {"event": "entry-linked", "space": space, "kind": kind, "id": "x" * 26, "name": "child"}
    place.forge_next(events=[linked | {"location": location}])
    catalog = place.catalog()
    structs = [*vacuumed(place, None), *catalog.expire(older_than=NO_AGE, dry_run=False)]
    kept_up = {getattr(struct, "name", "") for struct in structs if not getattr(struct, "error", "")}
    assert {"`victim`.`t`", "`forger`.`t`"} <= kept_up
    assert ("victim", "t") in {entry.name for entry in catalog.audit()}
    assert catalog.fsck().found
    if not (kind == "table" and location.startswith("/")):  # it could be read with other rights
        assert catalog.save_cut("tuesday").logs == 5
        drop = catalog.drop_table if kind == "table" else catalog.drop_namespace
        if location:
            drop("forger.child")
            assert not [each for each in vacuumed(place, None) if each.error]
        else:
            catalog.drop_namespace("forger", cascade=True)
            assert catalog.list_namespaces() == [("victim",)]


@pytest.mark.parametrize("location", ["gopher://host/t", "memory://none/t", "_log"])
def test_a_forged_name_ends_no_list_of_what_was_dropped(place: Place, location: str) -> None:
    place.catalog().drop_table("victim.t")
    place.own = place.own.rpartition("/")[0]
    named: dict[str, Any] = {"space": "relation", "id": "x" * 26, "name": "old"}
    place.forge_next(
        events=[
            {"event": "entry-linked", "kind": "table", "location": location} | named,
            {"event": "entry-unlinked", "dropped": True} | named,
            {"event": "entry-linked", "kind": "namespace", "location": location}
            | {"space": "namespace", "id": "y" * 26, "name": "child"},
        ]
    )
    names = {entry.name for entry in place.catalog().dropped((), recursive=True)}
    assert names == {("victim", "t"), ("forger", "old")}


def test_a_command_shows_what_was_forged_as_text_and_without_secrets(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal obeys control characters: it could show another answer than that of the command."""
    obeyed_text = "\x1b[2J\x1b]0;title\x07\r\u202e"
    facts = {"user": f"mallory{obeyed_text}", "statement": f"SET password='hunter2' {obeyed_text}"}
    place.forge_next(
        events=[{"event": "table-altered", "set": {f"k{obeyed_text}": obeyed_text}}], writer=facts
    )
    place.own = place.own.rpartition("/")[0]
    linked = {"event": "entry-linked", "space": "relation", "kind": "table", "id": "x" * 26}
    place.forge_next(events=[linked | {"name": f"child{obeyed_text}", "location": "_log"}], writer=facts)
    for command in (
        "audit",
        "fsck",
        "ls forger",
        "history forger.t",
        "history forger.t --graph",
        "show forger.t",
        "vacuum",
        "expire",
    ):
        run([*command.split(), "--warehouse", place.url])
        out, err = capsys.readouterr()
        assert out and not set(obeyed_text) - set("[2J]0;title") & set(out + err), command
        assert "hunter2" not in out + err
        if command == "fsck":
            assert "`child\\x1b[2J\\x1b]0;title\\x07\\r\\u202e`" in out

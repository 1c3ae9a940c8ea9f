"""A forged entry that leads to what another user has dropped: it is not purged for it, restored or renamed."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from tests.integration.forging.forge import SCHEMA, Place, build

from lakelog.log.errors import FormatError

NO_AGE = dt.timedelta(0)


@pytest.fixture
def place() -> Place:
    """A warehouse in which the victim has dropped a table and, beside it, a namespace with a table."""
    place = build()
    catalog = place.catalog()
    catalog.create_namespace(("victim", "below"))
    for name in ("victim.old", "victim.below.t"):
        catalog.create_table(name, SCHEMA)
    catalog.drop_table("victim.old")
    catalog.drop_namespace(("victim", "below"), cascade=True)
    return place


def dropped(place: Place, name: str) -> tuple[str, str]:
    """Return the id and location of what the victim has dropped under a name."""
    [entry] = [entry for entry in place.catalog().dropped("victim") if entry.name[-1] == name]
    return entry.id, entry.location.removeprefix(f"{place.url}/")


def forge_dropped(place: Place, name: str) -> None:
    """Have the forger's namespace say that what the victim dropped was dropped there."""
    id, location = dropped(place, name)
    space, kind = ("relation", "table") if name == "old" else ("namespace", "namespace")
    named: dict[str, Any] = {"space": space, "name": name, "id": id}
    place.own = place.own.rpartition("/")[0]
    place.forge_next(
        events=[
            {"event": "entry-linked", "kind": kind, "location": location} | named,
            {"event": "entry-unlinked", "dropped": True} | named,
        ]
    )


@pytest.mark.parametrize("name", ["old", "below"])
def test_a_vacuum_purges_only_what_was_dropped_in_the_namespace_itself(place: Place, name: str) -> None:
    forge_dropped(place, name)
    report = place.catalog().vacuum(
        namespace="forger", older_than=NO_AGE, dropped_older_than=NO_AGE, dry_run=False
    )
    [refused] = [each for each in report if each.error]
    assert (refused.name, dropped(place, name)[1] in refused.location) == (f"`forger`.`{name}`", True)
    assert "the entry was forged" in (refused.error or "")
    undrop = place.catalog().undrop_table if name == "old" else place.catalog().undrop_namespace
    assert undrop(("victim", name)) == ("victim", name)


@pytest.mark.parametrize("name", ["old", "below"])
def test_a_restore_is_of_what_was_dropped_in_the_namespace_itself(place: Place, name: str) -> None:
    forge_dropped(place, name)
    undrop = place.catalog().undrop_table if name == "old" else place.catalog().undrop_namespace
    with pytest.raises(FormatError, match="the entry was forged"):
        undrop(("forger", name), to=("forger", "mine"))
    assert undrop(("victim", name)) == ("victim", name)


def test_a_namespace_is_restored_without_what_another_user_dropped(place: Place) -> None:
    """Though its seal, too, is forged: with the id of the other drop."""
    id, location = dropped(place, "old")
    above = place.own.rpartition("/")[0]
    place.own = nested_child = place.child(above, "nested")
    linked = {"event": "entry-linked", "space": "relation", "kind": "table", "id": id, "location": location}
    place.forge_next(events=[linked | {"name": "old"}])
    drop_id = place.read(place.commit_key(location, place.last(location)))["commit_id"]
    place.forge_next(events=[{"event": "namespace-dropped", "cascade": True}], seals=True, commit_id=drop_id)
    place.own = above
    unlinked = {"event": "entry-unlinked", "space": "namespace", "name": "nested", "id": nested_child[-26:]}
    place.forge_next(events=[unlinked | {"dropped": True}])
    data_before = place.store.get(place.commit_key(location, place.last(location)))
    assert place.catalog().undrop_namespace("forger.nested") == ("forger", "nested")
    assert place.store.get(place.commit_key(location, place.last(location))) == data_before


def test_a_table_that_was_renamed_while_vacuum_looks_is_vacuumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The namespace is read, the table is renamed, the table is read: they differ, and nothing was forged."""
    place = build()
    catalog, other_catalog = place.catalog(), place.catalog()
    logs = catalog._logs
    table = logs.table(place.victim)

    def renamed_first() -> Any:
        monkeypatch.undo()
        other_catalog.rename_table("victim.t", "victim.u")
        return table.anew()

    monkeypatch.setattr(table, "current", renamed_first)
    report = catalog.vacuum(namespace="victim", dry_run=True)
    assert [(each.name, each.error) for each in report if each.kind == "table"] == [("`victim`.`u`", None)]


@pytest.mark.parametrize("space", ["relation", "namespace"])
def test_a_forged_name_can_be_dropped_and_what_it_leads_to_stays(space: str) -> None:
    place = build()
    location = place.victim if space == "relation" else place.victim.rpartition("/")[0]
    kind = "table" if space == "relation" else "namespace"
    linked = {"event": "entry-linked", "space": space, "kind": kind, "id": location[-26:], "name": "child"}
    place.own = place.own.rpartition("/")[0]
    place.forge_next(events=[linked | {"location": location}])
    catalog = place.catalog()
    with pytest.raises(FormatError, match="the entry was forged"), catalog.transaction() as transaction:
        transaction.drop_table("forger.child") if space == "relation" else transaction.drop_namespace(
            "forger.child"
        )
    number_before = place.last(location)
    if space == "relation":
        assert catalog.drop_table("forger.child") and not catalog.drop_table("forger.child", missing_ok=True)
    else:
        catalog.drop_namespace("forger.child", cascade=True)
    assert catalog.list_tables("forger") == [("forger", "t")]
    assert (catalog.list_namespaces("forger"), catalog.dropped("forger")) == ([], [])
    assert place.last(location) == number_before

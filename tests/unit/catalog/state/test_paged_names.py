"""Names in pages: whatever was dumped, loaded and folded, the state is that of a full replay without pages."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lakelog.catalog.core.files.arrow_lists import decode_table, encode_table
from lakelog.catalog.core.schema import VIEW, ViewDefinition
from lakelog.catalog.core.state import (
    RELATION,
    TABLE,
    NamespaceState,
    encode,
    name_pages,
    names_difference,
    names_digest,
    namespace_state,
    paged_map,
    pages_in,
)
from lakelog.catalog.core.state.events import (
    EntryDefined,
    EntryForgotten,
    EntryLinked,
    EntryPurged,
    EntryRenamed,
    EntryUnlinked,
    NamespaceEvent,
)
from lakelog.catalog.core.state.name_pages import NamePages, PageLayout, StoredPage
from lakelog.catalog.core.state.namespace_projection import NamespaceProjection
from lakelog.catalog.core.state.namespace_state import LAYOUTS, apply_all
from lakelog.catalog.core.state.paged_map import PagedMap
from lakelog.log import Commit, Json
from lakelog.log.errors import FormatError, NotFound, UnsupportedFormat
from lakelog.log.format import FORMAT, hash_of


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few names are in pages, of four each."""
    make_small(monkeypatch)


def make_small(patch: pytest.MonkeyPatch) -> None:
    for module in (namespace_state, paged_map):
        patch.setattr(module, "PAGED_FROM", 6)
    for module in (name_pages, paged_map):
        patch.setattr(module, "PAGE_NAMES", 4)
    patch.setattr(paged_map, "DIFFERENT_MIN", 1)


class Store:
    """A namespace's pages, and the states that can be read anew."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.states: dict[int, NamespaceState] = {}
        self.rounds: list[int] = []

    def read(self, names: Sequence[str]) -> list[bytes]:
        self.rounds.append(len(names))
        if missing := [name for name in names if name not in self.blobs]:
            raise NotFound(f"{missing} expired")
        return [self.blobs[name] for name in names]

    def state_at(self, version: int) -> NamespaceState:
        if version not in self.states:
            raise NotFound(f"version {version} expired")
        return self.states[version]

    def dump(self, projection: NamespaceProjection, state: NamespaceState, version: int) -> Json:
        """Do what the log does, and return the root as it is read again."""
        dump = projection.dump(state, version)
        self.blobs.update(dump.blobs)
        assert dump.uses is not None and set(dump.blobs) <= set(dump.uses)
        assert pages_in(dump.root) == {name: hash_of(self.blobs[name]) for name in dump.uses}
        projection.stored(dump)
        root: Json = msgspec.json.decode(msgspec.json.encode(dump.root))
        return root


def commit_of(version: int, events: Sequence[NamespaceEvent]) -> Commit:
    return Commit(
        format=FORMAT, log_id="l", version=version, commit_id=f"c{version}", attempt_id="a", base=version - 1,
        prev="", time_us=version, writer={}, events=encode(events),
    )  # fmt: skip


def linked(name: str, id: str | None = None) -> EntryLinked:
    id = id or f"id-{name}"
    return EntryLinked(space=RELATION, name=name, kind=TABLE, id=id, location=f"t-{id}")


def many(count: int) -> list[NamespaceEvent]:
    return [linked(f"n{number:03d}") for number in range(count)]


# Lives


@st.composite
def lives(draw: st.DrawFn) -> list[list[NamespaceEvent]]:
    """Return the events of some valid commits: names come, go, come back and are given to others."""
    names, views = dict[str, str](), dict[str, str]()
    dropped, dropped_views = dict[str, str](), dict[str, str]()
    commits, ids = list[list[NamespaceEvent]](), iter(range(10_000))
    for _ in range(draw(st.integers(1, 12))):
        events = list[NamespaceEvent]()
        for _ in range(draw(st.integers(1, 12))):
            fresh = f"n{draw(st.integers(0, 60)):02d}"
            is_free = fresh not in names and fresh not in views
            kind = draw(
                st.sampled_from(
                    ["link", "link", "link", "define", "rename", "drop", "restore", "purge", "forget"]
                )
            )
            of, gone = (names, dropped) if draw(st.booleans()) else (views, dropped_views)
            if kind == "link" and is_free:
                names[fresh] = f"id{next(ids)}"
                events.append(linked(fresh, names[fresh]))
            elif kind == "define" and is_free:
                views[fresh] = f"v{next(ids)}"
                events.append(defined(fresh, views[fresh]))
            elif kind == "rename" and is_free and of:
                old = draw(st.sampled_from(sorted(of)))
                of[fresh] = of.pop(old)
                events.append(EntryRenamed(space=RELATION, name=old, id=of[fresh], new_name=fresh))
            elif kind == "drop" and of:
                old = draw(st.sampled_from(sorted(of)))
                id, is_kept = of.pop(old), draw(st.booleans())
                if is_kept:
                    gone[id] = old
                events.append(EntryUnlinked(space=RELATION, name=old, id=id, dropped=is_kept))
            elif kind == "restore" and gone and is_free:
                id = draw(st.sampled_from(sorted(gone)))
                del gone[id]
                of[fresh] = id
                events.append(linked(fresh, id) if of is names else defined(fresh, id))
            elif kind == "purge" and gone:
                id = draw(st.sampled_from(sorted(gone)))
                del gone[id]
                events.append(EntryPurged(id=id))
            elif kind == "forget":
                events.append(EntryForgotten(id=f"f{next(ids)}"))
        commits.append(events)
    return commits


def defined(name: str, id: str) -> EntryDefined:
    return EntryDefined(
        space=RELATION, name=name, id=id, definition=ViewDefinition(text=f"SELECT '{id}'", columns=())
    )


@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(lives(), st.data())
def test_a_state_of_pages_is_that_of_a_full_replay(
    life: list[list[NamespaceEvent]], data: st.DataObject
) -> None:
    plain, truth = NamespaceState(), [NamespaceState()]
    for version, events in enumerate(life, 1):
        plain = apply_all(plain, events, version)
        truth.append(plain)
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        store = Store()
        writer, state, roots = NamespaceProjection(store), NamespaceState(), dict[int, Json]()
        for version, events in enumerate(life, 1):
            state = writer.apply(state, commit_of(version, events), ())
            if data.draw(st.booleans()):
                roots[version] = store.dump(writer, state, version)
            assert_same(state, truth[version])
        for version, root in roots.items():
            reader = NamespaceProjection(store)
            states = {version: reader.load(root)}
            del store.rounds[:]
            for later in range(version + 1, len(truth)):
                states[later] = reader.apply(states[later - 1], commit_of(later, life[later - 1]), ())
            looked_at = data.draw(st.sampled_from(sorted(states)))
            assert_same(states[looked_at], truth[looked_at])
            last = max(states)
            dumped_state = NamespaceProjection(store).load(store.dump(reader, states[last], last))
            assert_same(dumped_state, truth[last])
            assert names_digest(dumped_state, store.read) == names_digest(truth[last], store.read)


def assert_same(state: NamespaceState, truth: NamespaceState) -> None:
    assert names_difference(truth, state) is None and names_difference(state, truth) is None
    assert state.names(RELATION, TABLE) == truth.names(RELATION, TABLE)
    assert state.names(RELATION, VIEW) == truth.names(RELATION, VIEW)
    for of in (NamespaceState.logs, NamespaceState.definitions):
        assert sorted(of(state, RELATION)) == sorted(of(truth, RELATION))
    assert state.is_empty == truth.is_empty
    for (at, mapping), (_, true) in zip(state.mappings(), truth.mappings(), strict=True):
        assert (len(mapping), bool(mapping), sorted(mapping)) == (len(true), bool(true), sorted(true)), at
        for key in [*true, "", "n", "zz"]:
            assert mapping.get(key) == true.get(key)


def test_pages_are_read_when_a_name_of_them_is_asked_for_and_folding_reads_none(small: None) -> None:
    store, state, root = paged(100)
    reader = NamespaceProjection(store)
    loaded_state = reader.load(root)
    events: list[NamespaceEvent] = [
        linked("n0005"),
        EntryRenamed(space=RELATION, name="n010", id="id-n010", new_name="n0105"),
        EntryUnlinked(space=RELATION, name="n020", id="id-n020", dropped=True),
        EntryUnlinked(space=RELATION, name="n030", id="id-n030"),
    ]
    state_after = reader.apply(loaded_state, commit_of(2, events), ())
    assert store.rounds == []
    assert state_after.entry(RELATION, "n0005") is not None and not state_after.is_taken(RELATION, "n030")
    assert state_after.is_taken(RELATION, "n0105") and not state_after.is_taken(RELATION, "n010")
    assert store.rounds == [1]
    dropped_log = state_after.dropped_log("id-n020")
    assert dropped_log is not None and dropped_log.entry.location == "t-id-n020"
    assert (
        loaded_state.entry(RELATION, "n010") is not None and state_after.entry(RELATION, "n009") is not None
    )
    assert store.rounds == [1, 1], "the pages of two names that were given up, which have neighbours"
    assert len(state_after.names(RELATION, TABLE)) == 99
    assert store.rounds == [1, 1, 23], "and the others in one round"


def test_folding_reads_no_page_for_views_either(small: None) -> None:
    store = Store()
    projection = NamespaceProjection(store)
    views = [defined(f"v{number:03d}", f"id{number}") for number in range(40)]
    root = store.dump(projection, projection.apply(NamespaceState(), commit_of(1, views), ()), 1)
    reader = NamespaceProjection(store)
    events: list[NamespaceEvent] = [
        EntryRenamed(space=RELATION, name="v010", id="id10", new_name="w"),
        EntryUnlinked(space=RELATION, name="v020", id="id20", dropped=True),
    ]
    state = reader.apply(reader.load(root), commit_of(2, events), ())
    assert store.rounds == []
    assert state.definition(RELATION, "w") is not None
    assert [(definition.name, definition.entry.id) for definition in state.dropped_definitions()] == [
        ("v020", "id20")
    ]


def paged(count: int) -> tuple[Store, NamespaceState, Json]:
    """Return a namespace of many names at version 1, and its root."""
    store = Store()
    projection = NamespaceProjection(store)
    state = projection.apply(NamespaceState(), commit_of(1, many(count)), ())
    return store, state, store.dump(projection, state, 1)


def test_a_dump_writes_the_pages_that_were_changed(small: None) -> None:
    store = Store()
    projection = NamespaceProjection(store)
    state = projection.apply(NamespaceState(), commit_of(1, many(1000)), ())
    dump = projection.dump(state, 1)
    assert len(dump.blobs) == 250
    projection.stored(dump)
    assert not projection.dump(state, 2).blobs
    for number in range(70):
        state = projection.apply(state, commit_of(2 + number, [linked(f"n500-{number:03d}")]), ())
    dump = projection.dump(state, 71)
    assert 15 < len(dump.blobs) < 25, "one page has become many"
    projection.stored(dump)
    assert dump.uses is not None and len(dump.uses) == len(set(dump.uses)) and len(dump.uses) < 275
    state = projection.apply(state, commit_of(72, [linked("o")]), ())
    entries = state.entries[RELATION]
    assert isinstance(entries, PagedMap) and list(entries.parts[1]) == ["o"], "the others are in pages now"


def test_what_becomes_small_again_is_in_no_pages(small: None) -> None:
    store, state, root = paged(30)
    projection = NamespaceProjection(store)
    gone: list[NamespaceEvent] = [
        EntryUnlinked(space=RELATION, name=f"n{number:03d}", id=f"id-n{number:03d}")
        for number in range(2, 30)
    ]
    state = projection.apply(projection.load(root), commit_of(2, gone), ())
    root = store.dump(projection, state, 2)
    assert "paged" not in root and list(root["entries"][RELATION]) == ["n000", "n001"]


def test_pages_that_expiry_has_replaced_are_read_anew_at_the_version(small: None) -> None:
    store, _, root = paged(40)
    reader = NamespaceProjection(store)
    events: list[NamespaceEvent] = [linked("x"), EntryUnlinked(space=RELATION, name="n001", id="id-n001")]
    known_state = reader.apply(reader.load(root), commit_of(2, events), ())
    store.states[2] = with_other_pages(store, apply_all(NamespaceState(), [*many(40), *events], 2))
    # What a transaction has done since is in no version.
    own = reader.apply(known_state, msgspec.structs.replace(commit_of(3, [linked("own")]), commit_id=""), ())
    assert own.entry(RELATION, "n002") is not None and own.entry(RELATION, "n001") is None
    assert own.entry(RELATION, "x") is not None and own.entry(RELATION, "own") is not None
    assert len(own.names(RELATION, TABLE)) == 41 and len(known_state.names(RELATION, TABLE)) == 40


def test_an_expired_version_whose_pages_are_gone_is_an_error(small: None) -> None:
    store, _, root = paged(40)
    loaded_state = NamespaceProjection(store).load(root)
    store.blobs.clear()
    with pytest.raises(NotFound):
        loaded_state.entry(RELATION, "n001")
    with pytest.raises(NotFound):
        loaded_state.names(RELATION, TABLE)


def with_other_pages(store: Store, state: NamespaceState) -> NamespaceState:
    """Return the same state in other pages than there were, which are gone."""
    store.blobs.clear()
    pages = NamePages.of(LAYOUTS["entries"], [*state.entries[RELATION].items()][1:], None)
    first = dict([[*state.entries[RELATION].items()][0]])
    mapping = PagedMap(pages, first, 2, ("entries", RELATION))
    projection = NamespaceProjection(store)
    return projection.load(store.dump(projection, state.with_mappings({("entries", RELATION): mapping}), 2))


# What is wrong


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.set_column(1, "kind", pa.array(["?"] * len(table))), "not of its form"),
        (
            lambda table: table.set_column(3, "location", pa.array(["a/../../b"] * len(table))),
            "not of its form",
        ),
        (lambda table: table.take([1, 0, 2, 3]), "not in their order"),
        (lambda table: table.take([0, 1, 1, 3]), "not in their order"),
        (lambda table: table.slice(1), "has 3 names"),
        (lambda table: pa.concat_tables([table.slice(1), table.slice(3)]), "order"),
        (lambda table: table.set_column(0, "name", pa.array(["m", "n001", "n002", "n003"])), "another name"),
        (lambda table: table.set_column(0, "name", pa.array(["n000", "n001", "n002", "n004"])), "page after"),
        (lambda table: table.set_column(0, "name", pa.array(["n000", "n001", "n002", "x" * 256])), "form"),
        (lambda table: table.drop(["id"]), "other columns"),
        (lambda table: table.append_column("more", pa.array([1] * len(table))), "other columns"),
        (lambda table: table.set_column(2, "id", pa.array([1] * len(table))), "other columns"),
        (lambda table: table.set_column(2, "id", pa.array(["i", None, "k", "l"])), "other columns"),
        (lambda table: table.set_column(3, "location", pa.nulls(4, pa.string())), "not of its form"),
        (lambda table: table.set_column(1, "kind", pa.array(["view"] * 4)), "not of its form"),
        (lambda table: table.set_column(4, "definition", pa.array([DEFINITION] * 4)), "not of its form"),
        (lambda table: table.set_column(4, "definition", pa.array(["{"] * 4)), "not of its form"),
        (lambda table: defining_table(table, "view", '{"kind":"view"}'), "not of its form"),
        (lambda table: defining_table(table, "function", DEFINITION), "not of its form"),
        (lambda table: defining_table(table, "table", DEFINITION), "not of its form"),
    ],
)  # fmt: skip
def test_a_forged_page_is_an_error(small: None, change: Callable[[pa.Table], pa.Table], said: str) -> None:
    store, state, root = paged(40)
    forged_table = encode_table(change(decode_table(store.blobs[first_page(root)])))
    loaded_state = NamespaceProjection(store).load(naming(root, forged_table))
    store.blobs[first_page(naming(root, forged_table))] = forged_table
    for look in (lambda: loaded_state.entry(RELATION, "n001"), lambda: names_difference(state, loaded_state)):
        with pytest.raises(FormatError, match=said):
            look()


DEFINITION = '{"kind":"view","text":"SELECT 1","columns":[]}'


def defining_table(table: pa.Table, kind: str, definition: str) -> pa.Table:
    """Return a page whose names have a definition in place of a location."""
    columns = {"kind": pa.array([kind] * 4), "location": pa.nulls(4, pa.string())}
    columns["definition"] = pa.array([definition] * 4)
    for name, column in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def test_a_page_of_views_is_read_as_a_root_has_them(small: None) -> None:
    store, _, root = paged(40)
    views = encode_table(defining_table(decode_table(store.blobs[first_page(root)]), "view", DEFINITION))
    loaded_state = NamespaceProjection(store).load(naming(root, views))
    store.blobs[first_page(naming(root, views))] = views
    view = loaded_state.definition(RELATION, "n001")
    assert view is not None and view.definition == ViewDefinition(text="SELECT 1", columns=())
    assert loaded_state.entry(RELATION, "n001") is None
    assert [name for name, _ in loaded_state.definitions(RELATION)] == loaded_state.names(RELATION, VIEW)
    assert [name for name, _ in loaded_state.logs(RELATION)] == loaded_state.names(RELATION, TABLE)
    assert len(loaded_state.names(RELATION, VIEW)) == 4 and len(loaded_state.names(RELATION, TABLE)) == 36


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "table", "id": "i"},
        {"kind": "view", "id": "i", "location": "t-i"},
        {"kind": "table", "id": "i", "location": "t-i", "definition": msgspec.json.decode(DEFINITION)},
        {"kind": "function", "id": "i", "definition": msgspec.json.decode(DEFINITION)},
        {"kind": "table", "id": "i", "definition": msgspec.json.decode(DEFINITION)},
    ],
)
def test_an_entry_has_a_location_or_a_definition_of_its_kind(entry: dict[str, Json]) -> None:
    root: Any = {"properties": {}, "entries": {RELATION: {"n": entry}}}
    with pytest.raises(FormatError, match="cannot be read"):
        NamespaceProjection().load(root)
    dropped = {"space": RELATION, "name": "n", "time_us": 1, **entry}
    del dropped["id"]
    with pytest.raises(FormatError, match="cannot be read"):
        NamespaceProjection().load({"properties": {}, "entries": {}, "dropped": {"i": dropped}})


def test_a_list_of_names_makes_no_definition(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _, root = paged(40)
    state = NamespaceProjection(store).load(root)
    state = apply_all(state, [defined("n0005", "v1"), defined("n0015", "v2")], 2)
    columns = list[str]()
    real = PageLayout._column
    monkeypatch.setattr(
        PageLayout,
        "_column",
        lambda self, items, field: columns.append(field.name) or real(self, items, field),
    )
    assert (state.names(RELATION, VIEW), len(state.names(RELATION, TABLE))) == (["n0005", "n0015"], 40)
    assert set(columns) == {"name", "kind"}


def first_page(root: Any) -> str:
    return StoredPage(*root["paged"][0]["pages"][0]).name


def naming(root: Json, blob: bytes) -> Any:
    """Return a root that names another first page."""
    forged_root: Any = copy.deepcopy(root)
    forged_root["paged"][0]["pages"][0][3] = hash_of(blob)
    return forged_root


def test_an_altered_page_is_an_error(small: None) -> None:
    store, _, root = paged(40)
    store.blobs[first_page(root)] += b"?"
    with pytest.raises(FormatError, match="altered"):
        NamespaceProjection(store).load(root).entry(RELATION, "n001")


@pytest.mark.parametrize(
    "change",
    [
        lambda paged: paged["pages"].reverse(),
        lambda paged: paged["pages"].append(paged["pages"][-1]),
        lambda paged: paged.update(space=""),
        lambda paged: paged.update(of="dropped"),
        lambda paged: paged.update(of="cuts"),
        lambda paged: paged["pages"][0].__setitem__(3, "../../x"),
        lambda paged: paged["pages"][0].append(1),
    ],
)
def test_a_forged_root_is_an_error(small: None, change: Callable[[Any], object]) -> None:
    root: Any = paged(40)[2]
    change(root["paged"][0])
    with pytest.raises((FormatError, UnsupportedFormat)):
        NamespaceProjection(Store()).load(root)


def test_a_mapping_that_is_in_pages_twice_is_an_error(small: None) -> None:
    root: Any = paged(40)[2]
    root["paged"] *= 2
    with pytest.raises(FormatError, match="twice"):
        NamespaceProjection(Store()).load(root)


def test_a_name_that_a_forged_commit_gave_up_is_an_error_where_it_is_asked_for(small: None) -> None:
    store, _, root = paged(40)
    reader = NamespaceProjection(store)
    forged = EntryRenamed(space=RELATION, name="n0015", id="id", new_name="new")
    state = reader.apply(reader.load(root), commit_of(2, [forged]), ())
    with pytest.raises(FormatError, match="did not exist"):
        state.entry(RELATION, "new")
    with pytest.raises(FormatError, match="did not exist"):
        reader.dump(state, 2)


def test_what_a_step_of_a_transaction_drops_stays_dropped_on_newer_pages(small: None) -> None:
    store = Store()
    writer, projection = NamespaceProjection(store), NamespaceProjection(store)
    written_state = writer.apply(writer.initial(), commit_of(1, many(20)), ())
    state = projection.load(store.dump(writer, written_state, 1))
    assert "n001" in state.entries[RELATION]  # its page is read
    created_commit = commit_of(2, [linked("n001x")])
    state = projection.apply(state, created_commit, ())
    drop = EntryUnlinked(space=RELATION, name="n001x", id="id-n001x", dropped=False)
    state = projection.apply(state, msgspec.structs.replace(commit_of(3, [drop]), commit_id=""), ())
    # Expiry replaces the pages by those of version 2, one of which has the name.
    anew = NamespaceProjection(store)
    full = anew.apply(anew.initial(), commit_of(1, [*many(20), linked("n001x")]), ())
    store.blobs.clear()
    store.states[2] = NamespaceProjection(store).load(store.dump(anew, full, 2))
    assert "n015" in state.entries[RELATION]  # reads the newer pages
    assert "n001x" not in state.entries[RELATION]
    assert len(state.entries[RELATION]) == 20

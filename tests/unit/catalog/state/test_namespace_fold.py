"""The fold of a namespace: what it costs, and that older versions stay as they were."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.schema import ViewDefinition
from lakelog.catalog.core.state import NAMESPACE, RELATION, NamespaceState, shared_map
from lakelog.catalog.core.state.events import (
    CutDropped,
    EntryDefined,
    EntryForgotten,
    EntryLinked,
    EntryPurged,
    EntryRenamed,
    EntryUnlinked,
    FilesVacuumed,
    HistoryExpired,
    NamespaceAltered,
    NamespaceEvent,
)
from lakelog.catalog.core.state.namespace_state import apply, apply_all

NAMES = st.sampled_from("uvwxyz")
SPACES = st.sampled_from([RELATION, NAMESPACE])
VIEW = ViewDefinition(text="SELECT 1", columns=())


def linked(name: str, space: str = RELATION) -> EntryLinked:
    return EntryLinked(space=space, name=name, kind="table", id=f"id-{name}", location=f"t-{name}")


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the dicts that were copied."""
    real, sizes = shared_map.copied, list[int]()

    def counting(names: dict[str, Any]) -> dict[str, Any]:
        sizes.append(len(names))
        return real(names)

    monkeypatch.setattr(shared_map, "copied", counting)
    return sizes


def test_a_commit_of_many_links_copies_the_names_once(copied: list[int]) -> None:
    state_before = apply_all(NamespaceState(), [linked(f"a{n}") for n in range(1000)], 1)
    del copied[:]
    names = [f"b{n}" for n in range(1000)]
    events: list[NamespaceEvent] = [linked(name) for name in names]
    events += [
        EntryRenamed(space=RELATION, name=name, id=f"id-{name}", new_name=f"{name}-new")
        for name in names[:500]
    ]
    events += [
        EntryUnlinked(space=RELATION, name=name, id=f"id-{name}", dropped=True) for name in names[500:]
    ]
    state_after = apply_all(state_before, events, 2)
    assert len(state_after.entries[RELATION]) == 1500 and len(state_after.dropped) == 500
    assert sum(copied) == 1000


def test_a_change_of_one_name_copies_few_of_many(copied: list[int]) -> None:
    state = apply_all(NamespaceState(), [linked(f"a{n}") for n in range(10_000)], 1)
    del copied[:]
    for n in range(1000):
        state = apply(state, linked(f"b{n}"), n + 2)
        gone = EntryUnlinked(space=RELATION, name=f"a{n}", id=f"id-a{n}", dropped=True)
        state = apply(state, gone, n + 2)
    assert (len(state.entries[RELATION]), len(state.dropped)) == (10_000, 1000)
    assert sum(copied) / 2000 < 250, "copies of names for a change, on average"


EVENTS: st.SearchStrategy[NamespaceEvent] = st.one_of(
    st.builds(linked, NAMES, SPACES),
    st.builds(lambda name: EntryDefined(space=RELATION, name=name, id=f"v-{name}", definition=VIEW), NAMES),
    st.builds(
        lambda space, name, kind, dropped: EntryUnlinked(
            space=space, name=name, id=f"{kind}-{name}", dropped=dropped
        ),
        SPACES,
        NAMES,
        st.sampled_from(["id", "v"]),
        st.booleans(),
    ),
    st.builds(
        lambda space, name, kind, new: EntryRenamed(
            space=space, name=name, id=f"{kind}-{name}", new_name=new
        ),
        SPACES,
        NAMES,
        st.sampled_from(["id", "v"]),
        NAMES,
    ),
    st.builds(lambda name: EntryPurged(id=f"id-{name}"), NAMES),
    st.builds(lambda name: EntryForgotten(id=f"id-{name}"), NAMES),
    st.builds(lambda name: CutDropped(name=name), NAMES),
    st.builds(
        lambda names: FilesVacuumed(files=0, size_bytes=0, begun=tuple(names)), st.lists(NAMES, unique=True)
    ),
    st.builds(lambda version: HistoryExpired(version=version), st.integers(1, 9)),
    st.builds(lambda key, value: NamespaceAltered(set={key: value}, removed=("u",)), NAMES, NAMES),
)


@given(st.lists(st.lists(EVENTS, max_size=6), max_size=6))
def test_a_commit_folds_as_its_events_one_by_one_and_leaves_the_version_before_as_it_was(
    commits: list[list[NamespaceEvent]],
) -> None:
    state = NamespaceState()
    for time_us, events in enumerate(commits, 1):
        state_before, single = copy.deepcopy(state), state
        try:
            for event in events:
                single = apply(single, event, time_us)
        except KeyError:
            with pytest.raises(KeyError):
                apply_all(state, events, time_us)
            assert state == state_before
            continue
        folded_state = apply_all(state, events, time_us)
        assert folded_state == single and state == state_before
        state = folded_state

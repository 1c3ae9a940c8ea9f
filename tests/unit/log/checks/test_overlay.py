"""That an overlay shows what a store would after the same writes, and that nothing reaches the store below it."""

from __future__ import annotations

import random

import pytest

from lakelog.log import MemoryStore, NotFound
from lakelog.log.checks.overlay import StoreOverlay

KEYS = [f"{folder}/{name}" for folder in ("a", "a/b", "é") for name in ("1", "2", "3")]


def seen(store: MemoryStore | StoreOverlay) -> object:
    return (
        store.get_many(KEYS),
        [store.get(key) for key in KEYS],
        list(store.list_after("a/")),
        list(store.list_after("", "a/2")),
        list(store.list_sizes("a/b")),
        store.list_folders("a/"),
    )


@pytest.mark.parametrize("seed", range(20))
def test_an_overlay_is_like_a_store_and_leaves_the_one_below_alone(seed: int) -> None:
    choose = random.Random(seed)
    below, alike = MemoryStore(), MemoryStore()
    for key in choose.sample(KEYS, 5):
        below.put(key, b"below")
        alike.put(key, b"below")
    state_before, overlay = seen(below), StoreOverlay(below)
    for n in range(30):
        key, data = choose.choice(KEYS), str(n).encode() * 3
        match choose.choice(("put", "delete", "put if absent")):
            case "put":
                overlay.put(key, data)
                alike.put(key, data)
            case "delete":
                overlay.delete([key])
                alike.delete([key])
            case _:
                assert overlay.put_if_absent(key, data) == alike.put_if_absent(key, data)
        assert seen(overlay) == seen(alike)
        for each_key in KEYS:
            expected = alike.get(each_key)
            if expected is None:
                with pytest.raises(NotFound):
                    overlay.open_input(each_key)
            else:
                assert overlay.open_input(each_key).read() == expected
    assert seen(below) == state_before

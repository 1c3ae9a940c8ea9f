"""Versions of a mapping that share their common part equal dicts, and stay equal."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.state import shared_map
from lakelog.catalog.core.state.shared_map import ChangingMap, SharedMap

KEYS = st.sampled_from("abcdefgh")
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 99)), max_size=5)


def check(version: Mapping[str, int], expected: dict[str, int], *, whole: bool) -> None:
    assert len(version) == len(expected)
    for key in "abcdefgh":
        assert version.get(key) == expected.get(key) and (key in version) == (key in expected)
    if whole:
        assert version == expected and dict(version.items()) == expected
        assert set(version) == set(version.keys()) == set(expected)
        assert sorted(version.values()) == sorted(expected.values())


@given(
    st.dictionaries(KEYS, st.integers(0, 99)), st.lists(st.tuples(CHANGES, st.booleans())), st.integers(-9, 4)
)
def test_each_version_is_and_stays_what_a_dict_would_be(
    begin: dict[str, int], commits: list[tuple[list[tuple[str, int | None]], bool]], limit: int
) -> None:
    versions: list[tuple[SharedMap[int], dict[str, int]]] = [(SharedMap(dict(begin)), begin)]
    with patch.object(shared_map, "DIFFERENT_MIN", limit):
        for changes, read in commits:
            version, plain = versions[-1]
            map_, expected = ChangingMap(version), dict(plain)
            for key, value in changes:
                if value is not None:
                    map_[key] = expected[key] = value
                elif key in expected:
                    assert map_.pop(key) == expected.pop(key)
                else:
                    with pytest.raises(KeyError):
                        del map_[key]
                check(map_, expected, whole=read)
            versions.append((map_.shared(), expected))
            check(*versions[-1], whole=read)
    for version, expected in versions:
        check(version, expected, whole=False)
    for version, expected in versions:
        check(version, expected, whole=True)

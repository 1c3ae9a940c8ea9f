"""How identifiers are written and which names are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.names import check_name, check_namespace, identifier, quoted
from lakelog.log import InvalidInput


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("t", ("t",)),
        ("a.b.t", ("a", "b", "t")),
        ("`a.b`.t", ("a.b", "t")),
        ("`a``b`", ("a`b",)),
        ("a..t", ("a", "", "t")),
        ("a.", ("a", "")),
    ],
)
def test_dots_separate_and_backticks_quote(text: str, parts: tuple[str, ...]) -> None:
    assert identifier(text) == parts


@pytest.mark.parametrize("text", ["`a", "`a`b", "`a``"])
def test_bad_quoting_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not an identifier"):
        identifier(text)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_quoting_is_undone_by_splitting(parts: list[str]) -> None:
    assert identifier(quoted(parts)) == tuple(parts)


@pytest.mark.parametrize(
    "name", ["a/b", "..", " ", "é", "名", "a.b", "`", "'", "%41", "x" * 255, "-", "\u00a0", "🦆"]
)
def test_any_printable_name_is_allowed(name: str) -> None:
    check_name(name, "table")


@pytest.mark.parametrize("name", ["", "a\n", "\x7f", "é" * 128, "\ud800", "\x85"])
def test_empty_long_and_control_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name of"):
        check_name(name, "table")


def test_too_deep_a_namespace_is_refused() -> None:
    check_namespace(("a",) * 32)
    with pytest.raises(InvalidInput, match="33 levels"):
        check_namespace(("a",) * 33)

"""Whatever a statement is: no secret in a literal or a comment survives, and what is no literal does."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.state.statement_text import NORMALIZED_LIMIT_BYTES, normalized

SECRET = "hunter2"

noise = st.text(st.sampled_from("ab1 '\"`\\/*-$?.\n,;()[]ü\ud800\x00"), max_size=8)
words = st.sampled_from(
    ["SELECT", "from", "t1", "_a", "größe", "2nd", "INTERVAL", "`a b`", "`it's``--`", "/*+ h */"]
)
marks = st.sampled_from([",", "(", ")", "=", "<=", "+", "||", "::", ";", "->"])


def without(*stops: str) -> st.SearchStrategy[str]:
    """Text with the secret in it, in which none of `stops` stands."""
    strategy = st.tuples(noise, noise).map(lambda around: f"{around[0]}{SECRET}{around[1]}")
    return strategy.filter(lambda text: not any(stop in text for stop in stops))


def quoted_by(quote: str) -> st.SearchStrategy[str]:
    def escape(inner: str) -> str:
        return quote + inner.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote

    return without().map(escape) | without("\\").map(
        lambda inner: quote + inner.replace(quote, quote * 2) + quote
    )


literals = st.one_of(
    quoted_by("'"),
    quoted_by('"'),
    without("'").map(lambda inner: f"r'{inner}'"),
    without('"').map(lambda inner: f'R"{inner}"'),
    without("$").map(lambda inner: f"$${inner}$$"),
    without("$").map(lambda inner: f"$tag${inner}$tag$"),
    without("'", "\\").map(lambda inner: f"TIMESTAMP '{inner}'"),
)
comments = st.one_of(
    without("\n").map(lambda inner: f"--{inner}\n").filter(lambda text: not text.endswith("\\\n")),
    without("*", "/", "+").map(lambda inner: f"/*{inner}*/"),
    without("*", "/", "+").map(lambda inner: f"/* /*{inner}*/ {inner}*/"),
)
unclosed = st.one_of(
    without("'", "\\").map(lambda inner: "'" + inner),
    without('"', "\\").map(lambda inner: '"' + inner),
    without("`").map(lambda inner: "`" + inner),
    without("*/").map(lambda inner: "/* " + inner),
    without("$$").map(lambda inner: "$$" + inner),
)
statements = st.tuples(
    st.lists(st.one_of(words, marks, literals, comments), max_size=30), st.none() | unclosed
).map(lambda made: " ".join([*made[0], *([made[1]] if made[1] is not None else [])]))


@given(statements)
def test_no_secret_of_a_literal_or_a_comment_survives(statement: str) -> None:
    assert SECRET not in normalized(statement)


@given(st.lists(st.one_of(words, marks, literals, comments), max_size=30))
def test_words_and_marks_survive_in_their_order(pieces: list[str]) -> None:
    text = normalized(" ".join(pieces))
    expected = [piece for piece in pieces if SECRET not in piece]
    assert re.sub(r"[\s?]", "", text) == re.sub(r"[\s?]", "", "".join(expected))


@given(st.text() | statements | st.text(noise.map(lambda text: text[:1] or "'"), max_size=60))
def test_any_text_is_taken_and_twice_is_as_good_as_once(text: str) -> None:
    once = normalized(text)
    assert normalized(once) == once
    assert len(once.encode()) <= NORMALIZED_LIMIT_BYTES
    assert "\n" not in once and once == once.strip()


@given(statements, st.integers(20, 200))
def test_a_cut_text_stays_as_it_is(statement: str, limit_bytes: int) -> None:
    once = normalized(statement, limit_bytes)
    assert normalized(once, limit_bytes) == once and len(once.encode()) <= limit_bytes

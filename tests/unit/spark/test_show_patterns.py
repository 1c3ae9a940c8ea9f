"""What is listed for a pattern has every name that Spark's rule would find."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

from lakelog.spark.show_patterns import may_match


def spark_finds(names: list[str], pattern: str) -> set[str]:
    """As Spark's StringUtils.filterPattern, for patterns that mean the same to Java and to Python."""
    parts = [part.replace("*", ".*") for part in pattern.strip().split("|")]
    return {name for name in names for part in parts if re.fullmatch(part, name, re.IGNORECASE | re.ASCII)}


@pytest.mark.parametrize("seed", range(30))
def test_no_name_is_left_out_that_spark_would_find(seed: int) -> None:
    chance = random.Random(seed)
    letters = "aAbB_-%1. é\n\U0001f600K"
    names = list({"".join(chance.choices(letters, k=chance.randrange(1, 5))) for _ in range(200)})
    for _ in range(40):
        pattern = "".join(chance.choices("aAb_-%1. **|é", k=chance.randrange(0, 6)))
        kept_rows = set(may_match(pa.array(names, pa.string()), pattern).to_pylist())
        assert spark_finds(names, pattern) <= kept_rows <= set(names)


@pytest.mark.parametrize("pattern", [None, "a[b]", "a\\d", "(a", "a+", "é*"])
def test_what_is_not_plain_is_left_to_spark(pattern: str | None) -> None:
    assert may_match(pa.array(["a", "b", "ab"]), pattern).to_pylist() == ["a", "b", "ab"]


def test_names_that_cannot_match_are_left_out() -> None:
    names = pa.array(["a1", "A2", "b1", "ab"])
    assert may_match(names, "a*").to_pylist() == ["a1", "A2", "ab"]
    assert may_match(pa.array(["ab", "a%", "A%"]), "a%").to_pylist() == ["a%", "A%"]
    assert may_match(names, " b1|a2 ").to_pylist() == ["A2", "b1"]

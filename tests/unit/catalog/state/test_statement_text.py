"""What is kept of a statement's text, literal by literal."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from lakelog.catalog.core.state.statement_text import (
    CUT,
    FULL_LIMIT_BYTES,
    NORMALIZED_LIMIT_BYTES,
    kept,
    normalized,
)
from lakelog.log.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 'a'", "SELECT ?"),
        ("SELECT 'it''s' , 'a\\'b'", "SELECT ? , ?"),
        ('SELECT "a" FROM t', "SELECT ? FROM t"),
        ("SELECT 'one' \n 'two' \"three\"", "SELECT ?"),
        ("SELECT r'c:\\' AS path, R\"\\\"", "SELECT ? AS path, ?"),
        ("SELECT bar'x'", "SELECT bar?"),
        ("SELECT $$it's$$, $tag$ it's $$ $tag$ FROM t", "SELECT ?, ? FROM t"),
        ("SELECT DATE '2020-01-01', timestamp_ntz'2020-01-01', X'1F', x '1F'", "SELECT ?, ?, ?, ?"),
        (
            "SELECT INTERVAL '1-2' YEAR TO MONTH, INTERVAL 5 days",
            "SELECT INTERVAL ? YEAR TO MONTH, INTERVAL ? days",
        ),
        ("SELECT 1, -2L, 3.5, .5, 1e-5, 2.5E+3BD, 7Y, 8f", "SELECT ?, -?, ?, ?, ?, ?, ?, ?"),
        ("SELECT col1, 2nd, t1.c2, _3 FROM db.1st", "SELECT col1, 2nd, t1.c2, _3 FROM db.1st"),
        ("SELECT 1.e FROM t", "SELECT ?.e FROM t"),
        ("SELECT a FROM t WHERE x>5 AND y=:p OR z=?", "SELECT a FROM t WHERE x>? AND y=:p OR z=?"),
        ("INSERT INTO `a``b`.`it's` VALUES (1,'x')", "INSERT INTO `a``b`.`it's` VALUES (?,?)"),
        ("SELECT a -- it's a secret\nFROM t", "SELECT a FROM t"),
        ("SELECT a -- goes \\\n on\nFROM t", "SELECT a FROM t"),
        ("SELECT a/* it's /* nested */ still */FROM t", "SELECT a FROM t"),
        ("SELECT /*+ BROADCAST(t), X('a */ b') */ a", "SELECT /*+ BROADCAST(t), X(?) */ a"),
        ("SELECT a /* never closed 'x'", "SELECT a"),
        ("SELECT 'never closed", "SELECT ?"),
        ("SELECT 'never closed\\", "SELECT ?"),
        ("SELECT `never closed 'x'", "SELECT ?"),
        ("SELECT $$never closed", "SELECT ?"),
        ("LOCATION hdfs://node/it's?token=abc", "LOCATION ??"),
        ("  SELECT\t a ,\r\n b  ;  ", "SELECT a , b ;"),
        ("SELECT a\x00b, \x1b[31m, \ud800", "SELECT a\ufffdb, \ufffd[31m, \ufffd"),
        ("", ""),
        ("/* only */ -- comments", ""),
    ],
)
def test_literals_and_comments_go_and_the_rest_stays(text: str, expected: str) -> None:
    assert normalized(text) == expected


def test_a_long_statement_is_cut_between_tokens_with_a_mark() -> None:
    text = "SELECT " + ", ".join(f"`spalte {i} ü`" for i in range(1000))
    found_text = normalized(text)
    assert found_text.endswith(CUT) and len(found_text.encode()) <= NORMALIZED_LIMIT_BYTES
    assert found_text.removesuffix(CUT) == text[: len(found_text) - len(CUT)]
    assert normalized(found_text) == found_text
    assert normalized("x" * 5000) == CUT


def test_the_setting_says_what_is_kept() -> None:
    text = "SELECT 'a' -- b"
    assert kept(text, "full") == text
    assert kept(text, "normalized") == "SELECT ?"
    assert kept(text, "none") is None
    with pytest.raises(InvalidInput, match="normalized, full, none"):
        kept(text, "all")


def test_a_full_text_is_limited_and_valid_utf_8() -> None:
    text = kept("ü" * FULL_LIMIT_BYTES + "\udfff", "full")
    assert text is not None and text.endswith(CUT) and len(text.encode()) <= FULL_LIMIT_BYTES
    assert kept("a\ud800b\n", "full") == "a\ufffdb\n"


@pytest.mark.parametrize(
    "text_of",
    [
        lambda n: "'" * n,
        lambda n: "'" + "\\'" * n,
        lambda n: "/*" * n,
        lambda n: "1" * 2 * n + "a",
        lambda n: "`" * (n + 1),
    ],
)
def test_a_text_is_read_once_however_it_is_made(text_of: Callable[[int], str]) -> None:
    """The time of a text grows with its length, not with its square."""

    def least_s(length: int) -> float:
        text, times_s = text_of(length), []
        for _ in range(3):
            begun_s = time.process_time()
            normalized(text)
            times_s.append(time.process_time() - begun_s)
        return min(times_s)

    assert least_s(400_000) < 100 * max(least_s(10_000), 1e-4)

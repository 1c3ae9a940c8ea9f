"""Values of a condition are found in statements, in whatever form SQL and JSON have them."""

from __future__ import annotations

import pytest

from lakelog.catalog.core.schema import as_predicate
from lakelog.catalog.keeping.erasure.texts import quotes, values_of


@pytest.mark.parametrize(
    ("condition", "text", "expected"),
    [
        ("a = 'ada@x.com'", "WHERE a = 'ada@x.com'", True),
        ("a = 'ada'", "WHERE a = 'adam'", False),
        ("a = 'O''Neil'", r"WHERE a = 'O\'Neil'", True),
        ("a = 'one\ntwo'", r'{"sql": "one\ntwo"}', True),
        ("a = 1234", "VALUES (01234L)", True),
        ("a = 1234", "VALUES (1234.00)", True),
        ("a = 1234", "VALUES (12345, 1234.5, 9.1234, 1234.05)", False),
        ("a = 1234.5", "VALUES (1234.500BD)", True),
        ("a = 1234.50", "VALUES (1234.5)", True),
        ("a = 1234.5", "VALUES (1234.51)", False),
        ("a = 12", "VALUES (12)", False),
        ("a = -1234", "VALUES (-1234)", True),
        ("a = DATE '1970-03-04'", "VALUES (DATE '1970-03-04')", True),
        ("a = DATE '1970-03-04'", "VALUES (62, '1970-03-05')", False),
        ("a = TIMESTAMP_NTZ '2020-01-02 03:04:05.5'", "VALUES ('2020-01-02T03:04:05.500Z')", True),
        ("a = TIMESTAMP_NTZ '2020-01-02 03:04:05'", "VALUES ('2020-01-02 03:04:06')", False),
        ("a = TIMESTAMP_NTZ '2020-01-02 00:00:00'", "VALUES (DATE '2020-01-02')", True),
        ("a = TIMESTAMP '2020-01-02 03:04:00Z'", "VALUES ('2020-01-02 03:04')", True),
        ("a = X'41424344ff'", "VALUES (x'41424344FF')", True),
        ("a = X'41424344'", "VALUES (CAST('ABCD' AS BINARY))", True),
    ],
)  # fmt: skip
def test_a_value_is_found_in_each_of_its_forms(condition: str, text: str, expected: bool) -> None:
    assert quotes(text, values_of(as_predicate(condition))) is expected

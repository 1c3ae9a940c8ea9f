"""Random conditions, handed down to files of several forms, held against what Spark makes of them row by row."""

from __future__ import annotations

import random

import pytest

pytestmark = pytest.mark.adapter

CONDITIONS = 30

TYPES = {
    "i": "INT", "d": "DECIMAL(5, 2)", "x": "DOUBLE", "b": "BOOLEAN", "s": "STRING", "c": "CHAR(5)", "t": "TIMESTAMP",
}  # fmt: skip

LITERALS = {
    "i": ["0", "1", "5", "-3", "2147483648", "4294967297", "1.5"],
    "d": ["0", "1.25", "-99.99", "21474836.48", "42949674.21", "99999999.995"],
    "x": ["0.0D", "-0.0D", "1.5D", "double('NaN')", "double('Infinity')"],
    "b": ["true", "false"],
    "s": ["''", "'a'", "'ab'", "'b '", f"'{'x' * 33}'"],
    "c": ["'a'", "'ab '", "''"],
    "t": ["DATE'1500-01-01'", "DATE'1970-01-01'", "TIMESTAMP'2020-02-29 12:00:00'"],
    "n.y": ["1", "7", "-1"],
}
"""Values to compare columns with; the first half of the rows is written before `i`, `d` and `c` are widened."""

OTHER = [
    "i = n.y",
    "d + 1 > 2",
    "lake.bucket(4, i) = 1",
    "lake.truncate(1, s) = 'a'",
    "s LIKE 'a%'",
    "s LIKE '%b'",
    "b",
]


def one_text(chance: random.Random) -> str:
    if chance.random() < 0.2:
        return chance.choice(OTHER)
    column = chance.choice(list(LITERALS))

    def value() -> str:
        return "NULL" if chance.random() < 0.1 else chance.choice(LITERALS[column])

    match chance.randrange(4):
        case 0:
            return f"{column} IS {chance.choice(['', 'NOT '])}NULL"
        case 1:
            values = ", ".join(value() for _ in range(chance.choice([1, 2, 12])))
            return f"{column} {chance.choice(['', 'NOT '])}IN ({values})"
        case _:
            return f"{column} {chance.choice(['=', '<', '<=', '>', '>=', '<>', '<=>'])} {value()}"


def condition(chance: random.Random, depth: int = 0) -> str:
    match chance.randrange(4 if depth < 3 else 1):
        case 0:
            return one_text(chance)
        case 1:
            return f"NOT ({condition(chance, depth + 1)})"
        case _:
            word = chance.choice(["AND", "OR"])
            return f"({condition(chance, depth + 1)} {word} {condition(chance, depth + 1)})"


def rows(chance: random.Random, first: int, count: int) -> str:
    def value(column: str) -> str:
        small = [text for text in LITERALS[column] if len(text) < 8 or column not in "id"]
        return "NULL" if chance.random() < 0.2 else chance.choice(small)

    def row(id: int) -> str:
        values = [f"CAST({value(column)} AS {type})" for column, type in TYPES.items()]
        return f"({id}, {', '.join(values)}, named_struct('y', {value('n.y')}))"

    return f"INSERT INTO lake.t VALUES {', '.join(row(first + i) for i in range(count))}"


@pytest.mark.parametrize(
    ("seed", "layout"), [(1, ""), (2, "PARTITIONED BY (b, truncate(1, s), bucket(4, i), months(t))")]
)
def test_a_condition_finds_the_rows_of_which_it_is_true(lake, seed, layout):
    chance = random.Random(seed)
    columns = ", ".join(f"{name} {type}" for name, type in TYPES.items())
    lake.sql(f"CREATE TABLE lake.t (id INT, {columns}, n STRUCT<y: INT>) {layout}")
    for first, count in ((0, 1), (10, 2), (20, 9)):
        lake.sql(rows(chance, first, count))
    for column, type in (("i", "BIGINT"), ("d", "DECIMAL(12, 2)"), ("c", "VARCHAR(9)")):
        lake.sql(f"ALTER TABLE lake.t ALTER COLUMN {column} TYPE {type}")
    lake.sql(rows(chance, 40, 5))
    lake.sql("DELETE FROM lake.t WHERE id IN (22, 41)")
    wanted_conditions = [condition(chance) for _ in range(CONDITIONS)]
    conditions = ", ".join(f"({each}) AS p{number}" for number, each in enumerate(wanted_conditions))
    by_row = lake.sql(f"SELECT id, {conditions} FROM lake.t")
    assert len(by_row) == 15
    for number, each in enumerate(wanted_conditions):
        expected = sorted((row[0],) for row in by_row if row[number + 1])
        assert sorted(lake.sql(f"SELECT id FROM lake.t WHERE {each}")) == expected, each

"""The partition transforms as SQL functions: Iceberg's values, the same in Spark and in Python."""

import datetime as dt
from decimal import Decimal

import pytest

INT_MAX = 2**31 - 1

# Hashes are those of appendix B of Iceberg's specification; a bucket of 2^31 - 1 shows nearly the whole hash.
GOLDEN = [
    ("lake.bucket(2147483647, 34)", (2017239379 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, 34L)", (2017239379 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, CAST(34 AS SMALLINT))", (2017239379 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, 14.20BD)", (-500754589 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, DATE'2017-11-16')", (-653330422 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, TIMESTAMP'2017-11-16 22:31:08')", (-2047944441 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, TIMESTAMP_NTZ'2017-11-16 22:31:08')", (-2047944441 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, TIMESTAMP'2017-11-16 22:31:08.000001')", (-1207196810 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, 'iceberg')", (1210000089 & INT_MAX) % INT_MAX),
    ("lake.bucket(2147483647, X'00010203')", (-188683207 & INT_MAX) % INT_MAX),
    ("lake.bucket(16, CAST(NULL AS INT))", None),
    ("lake.truncate(10, 1)", 0),
    ("lake.truncate(10, -1)", -10),
    ("lake.truncate(10, -1L)", -10),
    ("lake.truncate(50, 10.65BD)", Decimal("10.50")),
    ("lake.truncate(50, -0.05BD)", Decimal("-0.50")),
    ("lake.truncate(3, 'iceberg')", "ice"),
    ("lake.truncate(2, 'ünïcode')", "ün"),
    ("lake.truncate(2, '🧊🧊🧊')", "🧊🧊"),
    ("lake.truncate(3, X'0102030405')", bytearray(b"\1\2\3")),
    ("lake.years(DATE'2017-11-16')", 47),
    ("lake.year(DATE'1969-12-31')", -1),
    ("lake.months(TIMESTAMP'2017-11-16 22:31:08')", 574),
    ("lake.month(DATE'1969-11-30')", -2),
    ("lake.days(TIMESTAMP'2017-11-16 22:31:08')", dt.date(2017, 11, 16)),
    ("lake.day(TIMESTAMP_NTZ'1969-12-31 23:59:59')", dt.date(1969, 12, 31)),
    ("lake.date(DATE'2017-11-16')", dt.date(2017, 11, 16)),
    ("lake.hours(TIMESTAMP'2017-11-16 22:31:08')", 419686),
    ("lake.hour(TIMESTAMP'1969-12-31 23:59:59')", -1),
    ("lake.date_hour(TIMESTAMP_NTZ'1970-01-01 01:00:00')", 1),
]


@pytest.mark.parametrize(("expression", "value"), GOLDEN, ids=[expression for expression, _ in GOLDEN])
def test_transforms_have_icebergs_values(lake, expression, value):
    assert lake.sql(f"SELECT {expression}") == [(value,)]


@pytest.mark.parametrize(
    "expression",
    [
        "lake.bucket(16, 1.5D)",
        "lake.bucket('x', 1)",
        "lake.bucket(1)",
        "lake.hours(DATE'2020-01-01')",
        "lake.truncate(0, 5)",
        "lake.nope(1)",
    ],
)
def test_what_a_transform_does_not_take_is_refused(lake, expression):
    with pytest.raises(Exception) as error:
        lake.sql(f"SELECT {expression}")
    assert "INTERNAL_ERROR" not in str(error.value)


def test_the_functions_are_listed(lake):
    # Spark lists the session's temporary functions as well, whose names have no dot.
    listed = {row[0] for row in lake.sql(f"SHOW USER FUNCTIONS IN {lake.name}") if "." in row[0]}
    assert listed == {
        f"{lake.name}.{name}" for name in ("bucket", "truncate", "years", "months", "days", "hours")
    }


def test_python_prunes_by_what_executors_computed(lake):
    """Every value is found again by a filter, whichever side computed its partition."""
    lake.sql(
        "CREATE TABLE lake.t (i INT, l BIGINT, d DECIMAL(10, 3), s STRING, b BINARY, dt DATE, ts "
        "TIMESTAMP, n TIMESTAMP_NTZ) "
        "PARTITIONED BY (bucket(7, i), bucket(7, l), bucket(7, d), bucket(7, s), truncate(7, d), "
        "months(dt), hours(ts), days(n))"
    )
    lake.sql(
        "INSERT INTO lake.t SELECT CAST(v AS INT), v * 1000000007, v / 1000BD, concat('s', v), unhex(hex(v + 100)), "
        "date_add(DATE'1970-01-01', CAST(v * 37 AS INT)), timestamp_micros(v * 3599999999), "
        "CAST(timestamp_micros(v * 43199999999) AS TIMESTAMP_NTZ) FROM (SELECT id - 6 AS v FROM range(12))"
    )
    rows = lake.sql("SELECT i, l, d, s, dt, n FROM lake.t")
    table = lake.catalog.load_table("t")
    for i, l, d, s, date, n in rows:  # noqa: E741
        values = {"i": i, "l": l, "d": d, "s": s, "dt": date, "n": n}
        for column, value in values.items():
            assert 1 <= table.plan([(column, "=", value)]).num_rows <= table.file_count
        conditions = [
            f"i = {i}",
            f"l = {l}L",
            f"d = {d}BD",
            f"s = '{s}'",
            f"dt = DATE'{date}'",
            f"n = TIMESTAMP_NTZ'{n}'",
        ]
        counts = " UNION ALL ".join(
            f"SELECT count(*) FROM lake.t WHERE {condition}" for condition in conditions
        )
        assert lake.sql(counts) == [(1,)] * len(conditions), counts

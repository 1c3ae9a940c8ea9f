"""A filter that Python is given as text means what it means in Spark: true, false or NULL for the same rows."""

from __future__ import annotations

from tests.integration.catalog.tools.tables import make_table
from tests.spark.conftest import Lake

from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.schema.filters import as_predicate

CONDITIONS = [
    "id > 2", "id = 3.0", "id >= 2.5 AND id <= 1e1", "ID == 3L", "id <> 3", "id != 3S", "3 < id", "id <=> NULL",
    "id <=> 3", "id IS NULL", "id IS NOT DISTINCT FROM 3", "id BETWEEN 2 AND 12", "id NOT BETWEEN 2 AND 12",
    "id IN (1, 2, NULL)", "id NOT IN (1, NULL)", "id NOT IN (1)", "NOT id = 1 AND real > 0", "! id = 1 OR flag",
    "NOT NOT id = 1", "id = 1 OR id = 2 AND real > 0", "flag", "NOT flag", "flag IS TRUE", "flag IS NOT TRUE",
    "flag IS FALSE", "flag IS UNKNOWN", "TRUE", "NULL", "NULL OR id > 2", "small = 2Y", "small > -1.5BD", "real > 1",
    "real >= CAST('NaN' AS DOUBLE)", "real = CAST('NaN' AS DOUBLE)", "real < CAST('Infinity' AS DOUBLE)",
    "real = -0.0D", "real = 0", "real IN (0, 2.5)", "real = 0.1", "single = 0.1F", "single = 0.1D", "single = 0.1",
    "single > 2", "price = 2.75", "price > 2.751", "price >= 1", "price IN (0.25, 3)", "word = 'ada'",
    "Word LIKE 'a%'", "word LIKE '%d%'", "word LIKE '%e'", "word LIKE 'ada'", "word LIKE '%'", "word NOT LIKE 'a%'",
    "word LIKE 'x!%!_' ESCAPE '!'", "word LIKE 'x\\\\%%'", "word LIKE r'x\\%%'", "word = 'x%_'", "word > \"b\"",
    "word = ''", "word = '\\u00e9'", "word = 'a\\da'", "word = '\\141da'", "word LIKE NULL", "`Word` = 'it''s'",
    "fixed = 'ab'", "fixed = 'ab  '", "fixed <> 'ab'", "fixed IN ('ab', 'x')", "fixed LIKE 'ab'", "fixed LIKE 'ab  '",
    "fixed LIKE 'ab%'", "fixed LIKE '% '", "fixed BETWEEN 'a' AND 'ab'", "fixed NOT BETWEEN 'ab' AND 'x'",
    "data = X'FF'", "data > X''", "data = x'0ff'", "day = DATE'2026-01-11'",
    "day < DATE '2026-01-11'", "day >= '2026-01-11'", "moment >= TIMESTAMP'2026-01-11 12:00:00Z'",
    "moment < TIMESTAMP'2026-01-11 13:11:00.000001+01:00'", "local > TIMESTAMP_NTZ'2026-01-11 12:11:00'",
    "clock > TIME'12:12:00'", "lasting > INTERVAL '12' SECOND", "lasting <= INTERVAL '0 00:00:11' DAY TO SECOND",
    "part.x > 2", "`part`.`Y` = 'ada'", "part IS NULL", "part.x IS NULL", "added = 7", "added IS NOT NULL",
    "((id)) > ((2))",
]  # fmt: skip


def test_a_text_means_in_python_what_it_means_in_spark(lake: Lake) -> None:
    table = make_table(lake.catalog)
    rows = table.to_arrow()
    columns = ", ".join(f"({condition})" for condition in CONDITIONS)
    in_spark = lake.frame(f"SELECT {columns} FROM lake.lab.lived ORDER BY id, real").collect()
    order = (
        rows.append_column("row", [range(rows.num_rows)]).sort_by([("id", "ascending")])["row"].to_pylist()
    )
    # Spark puts NULL first.
    order = order[-1:] + order[:-1]
    assert len(set(zip(*in_spark, strict=True))) > 40, "the rows differ in most conditions"
    for index, condition in enumerate(CONDITIONS):
        found_rows = evaluate(bind(as_predicate(condition), table.schema), rows).take(order).to_pylist()
        assert found_rows == [row[index] for row in in_spark], condition

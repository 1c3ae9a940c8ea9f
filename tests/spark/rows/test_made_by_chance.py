"""Values that are others each time that they are computed, in statements that change rows."""

from __future__ import annotations

import pytest
from tests.spark.sql.rows import MODES, in_mode

pytestmark = pytest.mark.adapter
in_both_modes = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def table(lake, mode):
    lake.sql(
        f"CREATE TABLE lake.t (k INT, u STRING, w STRING NOT NULL DEFAULT 'x', d DOUBLE) {in_mode(mode)}"
    )
    lake.sql("INSERT INTO lake.t (k) SELECT CAST(id AS INT) FROM range(0, 8, 1, 2)")
    return lake


def rows(lake):
    return {k: (u, w, d) for k, u, w, d in lake.sql("SELECT k, u, w, d FROM lake.t")}


@in_both_modes
def test_every_clause_of_a_merge_computes_them_once_for_each_row(table, mode):
    lake = table
    lake.sql(
        "MERGE INTO lake.t AS t USING (SELECT CAST(id AS INT) AS k, uuid() AS u FROM range(4, 14)) AS s ON t.k = s.k "
        "WHEN MATCHED AND s.k = 4 THEN DELETE "
        "WHEN MATCHED AND s.k = 5 THEN UPDATE SET u = s.u, w = s.u "
        "WHEN MATCHED THEN UPDATE SET u = uuid(), w = uuid(), d = rand() "
        "WHEN NOT MATCHED AND s.k = 8 THEN INSERT (k, u, w) VALUES (s.k, s.u, s.u) "
        # What another row's value would fail with is not computed for it.
        "WHEN NOT MATCHED AND s.k < 11 THEN INSERT (k, u, d) VALUES (s.k, uuid(), rand() / (s.k - 11)) "
        "WHEN NOT MATCHED THEN INSERT (k, w, d) VALUES (s.k, concat('n', uuid()), monotonically_increasing_id()) "
        "WHEN NOT MATCHED BY SOURCE AND t.k < 2 THEN UPDATE SET d = -1 - rand(), w = upper(uuid())"
    )
    found_rows = rows(lake)
    assert sorted(found_rows) == [0, 1, 2, 3, 5, 6, 7, *range(8, 14)]
    assert found_rows[2] == found_rows[3] == (None, "x", None)
    for k in (5, 8):
        assert found_rows[k][0] == found_rows[k][1] and len(found_rows[k][0]) == 36
    texts = [text for k in found_rows for text in {*found_rows[k][:2]} - {None, "x"}]
    assert len(set(texts)) == len(texts) == 2 + 2 * 2 + 2 + 3 + 2
    assert all(found_rows[k][2] <= -1 and found_rows[k][1].isupper() for k in (0, 1))
    assert all(0 <= found_rows[k][2] < 1 for k in (6, 7)) and all(found_rows[k][2] <= 0 for k in (9, 10))
    assert len({found_rows[k][2] for k in (11, 12, 13)}) == 3


@in_both_modes
def test_they_may_be_made_of_a_source_that_is_stored(table, mode):
    lake = table
    lake.spark.range(6, 10).selectExpr(
        "CAST(id AS INT) AS k", "concat('n', id) AS name", "rand() AS unused"
    ).limit(100).createOrReplaceTempView("moving")
    lake.sql(
        "MERGE INTO lake.t AS t USING moving AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET u = concat(s.name, uuid()) "
        "WHEN NOT MATCHED THEN INSERT (k, u) VALUES (s.k, concat(s.name, uuid()))"
    )
    found_rows = rows(lake)
    assert sorted(found_rows) == list(range(10))
    assert all(found_rows[k][0].startswith(f"n{k}") and len(found_rows[k][0]) == 38 for k in range(6, 10))


@in_both_modes
def test_a_merge_that_only_inserts_and_one_of_a_file_name_work(table, mode, tmp_path):
    lake = table
    lake.sql(
        "MERGE INTO lake.t AS t USING (SELECT CAST(id AS INT) AS k FROM range(7, 10)) AS s ON t.k = s.k "
        "WHEN NOT MATCHED AND s.k = 8 THEN INSERT (k, u) VALUES (s.k, uuid()) "
        "WHEN NOT MATCHED THEN INSERT (k, u) VALUES (s.k, 'plain')"
    )
    assert len(rows(lake)[8][0]) == 36 and rows(lake)[9][0] == "plain"
    lake.spark.range(7, 11).selectExpr("CAST(id AS INT) AS k").write.parquet(str(tmp_path / "files"))
    lake.sql(
        f"MERGE INTO lake.t AS t USING (SELECT k, input_file_name() AS u FROM parquet.`{tmp_path}/files`) AS s "
        "ON t.k = s.k WHEN MATCHED THEN UPDATE SET u = s.u WHEN NOT MATCHED THEN INSERT (k, u) VALUES (s.k, s.u)"
    )
    assert all(rows(lake)[k][0].endswith(".parquet") for k in range(7, 11))
    lake.sql("UPDATE lake.t SET u = uuid(), w = uuid() WHERE k IN (SELECT CAST(id AS INT) FROM range(0, 3))")
    found_rows = rows(lake)
    assert len({text for k in range(3) for text in found_rows[k][:2]}) == 6


@in_both_modes
def test_a_condition_that_is_another_one_each_time_is_refused_in_one_line(table, mode):
    lake = table
    rows_before = rows(lake)
    for statement in (
        "DELETE FROM lake.t WHERE rand() < 0.5",
        "UPDATE lake.t SET d = 1 WHERE k > 1 AND uuid() > 'a'",
    ):
        with pytest.raises(
            Exception, match=r"condition of the (DELETE|UPDATE) of \S+ has (rand|uuid)\(\)"
        ) as error:
            lake.sql(statement)
        assert "RelationV2" not in str(error.value)
    with pytest.raises(Exception, match="NON_DETERMINISTIC"):
        lake.sql(
            "MERGE INTO lake.t AS t USING (SELECT 1 AS k) AS s ON t.k = s.k AND rand() < 0.5 WHEN MATCHED THEN DELETE"
        )
    assert rows(lake) == rows_before

"""Write, audit, publish: rows come to tables by one commit once all of them pass the checks, or not at all."""

from __future__ import annotations

import pytest

import lakelog.spark


def test_branches_are_published_together_or_the_rows_that_failed_are_shown(lake):
    lake.sql("CREATE NAMESPACE lake.n")
    for name in ("a", "b"):
        lake.sql(f"CREATE TABLE lake.n.{name} AS SELECT id FROM range(2)")
        lake.sql(f"ALTER TABLE lake.n.{name} CREATE BRANCH audit")
        lake.sql(f"INSERT INTO lake.n.{name}.branch_audit VALUES (7), (-1), (NULL)")
    checks = {f"{lake.name}.n.a": ["id < 10"], f"{lake.name}.n.b": ["id >= 0"]}
    done = lakelog.spark.audit_and_publish(lake.spark, checks, branch="audit", catalog=lake.name)
    (failed,) = done.failed
    assert (done.published, failed.table, failed.check, failed.count) == (
        False,
        f"{lake.name}.n.b",
        "id >= 0",
        1,
    )
    assert lake.sql(failed.query) == [(-1,)]
    assert lake.catalog.load_table("n.a").row_count == 2
    lake.sql("DELETE FROM lake.n.b.branch_audit WHERE id < 0")
    done = lakelog.spark.audit_and_publish(lake.spark, checks, branch="audit", catalog=lake.name)
    assert done.published and not done.failed
    tables = [lake.catalog.load_table(f"n.{name}") for name in ("a", "b")]
    assert [table.row_count for table in tables] == [5, 4]
    assert len({next(iter(table.history())).commit_id for table in tables}) == 1
    lake.sql("INSERT INTO lake.n.a VALUES (8)")
    lake.sql("INSERT INTO lake.n.a.branch_audit VALUES (9)")
    with pytest.raises(Exception, match="rows could be lost"):
        lakelog.spark.audit_and_publish(lake.spark, checks, branch="audit", catalog=lake.name)
    assert lake.catalog.load_table("n.b").row_count == 4

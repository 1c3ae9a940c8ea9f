"""Backups by CALL, and a table of one that comes back."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from lakelog.catalog.keeping.maintenance import Severity

pytestmark = pytest.mark.adapter


def test_a_table_comes_back_from_a_backup(lake, tmp_path):
    place = str(tmp_path / "backups")
    lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("CREATE TABLE lake.n.a (id BIGINT)")
    lake.sql("INSERT INTO lake.n.a SELECT id FROM range(4)")
    lake.sql("DELETE FROM lake.n.a WHERE id = 3")
    (made,) = lake.sql(f"CALL lake.system.backup(place => '{place}')")
    assert (made[2], made[4], made[10]) == ("warehouse", 1, False)
    lake.sql("DROP TABLE lake.n.a")
    (one,) = lake.sql(f"CALL lake.system.backups('{place}')")
    assert one[:2] == made[:2]
    assert list(lake.sql(f"CALL lake.system.verify_backup('{place}')")) == []
    lake.sql("USE lake.n")
    (back,) = lake.sql(f"CALL lake.system.restore_backup('{place}', 'a')")
    assert back[1] == 1
    lake.sql("INSERT INTO a VALUES (9)")
    assert sorted(row[0] for row in lake.sql("SELECT id FROM lake.n.a")) == [0, 1, 2, 9]
    with pytest.raises(AnalysisException, match="already"):
        lake.sql(f"CALL lake.system.restore_backup('{place}', 'a')")
    (gone,) = lake.sql(f"CALL lake.system.delete_backup('{place}', array('{made[0]}'), dry_run => false)")
    assert (gone[0], gone[3], list(lake.sql(f"CALL lake.system.backups('{place}')"))) == ([made[0]], 0, [])


def test_executors_copy_what_is_backed_up_copied_verified_and_restored(make_lake, tmp_path):
    """All objects but those of logs, each hashed where it was read; a stream goes on at the copy."""
    lake, spark = make_lake(), make_lake().spark
    place, target = str(tmp_path / "backups"), str(tmp_path / "copy")
    lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("CREATE TABLE lake.n.a (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    lake.sql("INSERT INTO lake.n.a SELECT id, id % 4 FROM range(100)")
    jobs_before = jobs_of(spark)
    (made,) = lake.sql(f"CALL lake.system.backup('{place}')")
    assert jobs_of(spark) - jobs_before == {"lakelog backup: 4 objects"}
    assert made[8:] == (made[5], made[6], False)
    jobs_before = jobs_of(spark)
    assert lake.sql(f"CALL lake.system.verify_backup('{place}')") == []
    assert jobs_of(spark) - jobs_before == {f"lakelog verify_backup: {made[5]} objects"}
    assert not lake.catalog.verify_backup(place).problems
    assert not [path for path in (tmp_path / "backups").rglob("*.crc")]

    (first,) = lake.sql(f"CALL lake.system.copy(url => '{target}', finish => false)")
    lake.sql("INSERT INTO lake.n.a VALUES (100, 0)")
    jobs_before = jobs_of(spark)
    (done,) = lake.sql(f"CALL lake.system.copy('{target}')")
    assert (first[-1], done[-1]) == (False, True)
    assert "lakelog copy: 1 objects" in jobs_of(spark) - jobs_before
    copy = make_lake(target)
    assert copy.sql("SELECT count(*), sum(id) FROM lake.n.a") == [(101, 5050)]
    assert copy.sql("SELECT count(*) FROM lake.n.a VERSION AS OF 2") == [(100,)]

    # What was altered is found on the executors, and restored by none.
    empty = make_lake(str(tmp_path / "restored"))
    altered_path = next(path for path in (tmp_path / "backups" / "objects").rglob("*.parquet"))
    data = altered_path.read_bytes()
    altered_path.write_bytes(data[:-1] + b"?")
    assert [row[0] for row in lake.sql(f"CALL lake.system.verify_backup('{place}')")] == ["altered"]
    with pytest.raises(Exception, match="was altered: restore another backup"):
        empty.sql(f"CALL lake.system.restore_warehouse('{place}')")
    altered_path.write_bytes(data)
    (restored,) = empty.sql(f"CALL lake.system.restore_warehouse('{place}')")
    assert restored[0] == made[0]
    assert empty.sql("SELECT count(*), sum(id) FROM lake.n.a") == [(100, 4950)]
    assert not empty.catalog.fsck(deep=True).of(Severity.DAMAGE)


def jobs_of(spark) -> set[str]:
    """What Spark's page of jobs says of those that it keeps."""
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    return {
        jobs.apply(at).description().get()
        for at in range(jobs.size())
        if jobs.apply(at).description().isDefined()
    }

"""Backups by CALL, and a table of one that comes back."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

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

"""Tables named by their place."""

import pytest
from pyspark.errors import AnalysisException

pytestmark = pytest.mark.adapter


@pytest.mark.parametrize(
    "form", ["{}/", "file://{}", *(pytest.param(form, marks=pytest.mark.slow) for form in ("{}", "file:{}/"))]
)
def test_a_table_is_used_by_its_path_with_and_without_the_last_slash(lake, tmp_path, form):
    plain = tmp_path / "my table"
    path = f"lake.`{form.format(plain)}`"
    lake.sql(f"CREATE TABLE {path} (a INT, k STRING) USING lakelog PARTITIONED BY (k)")
    lake.sql(f"INSERT INTO {path} VALUES (1, 'x'), (2, 'y')")
    lake.sql(f"INSERT OVERWRITE {path} PARTITION (k = 'y') VALUES (3)")
    lake.sql(f"ALTER TABLE {path} ADD COLUMN b INT DEFAULT 5")
    assert lake.sorted(f"SELECT a, k, b FROM lake.`{plain}`") == [(1, "x", 5), (3, "y", 5)]
    assert [row[0] for row in lake.sql(f"DESCRIBE TABLE {path}")][:3] == ["a", "k", "b"]
    lake.sql(f"DELETE FROM {path} WHERE k = 'x'")
    assert lake.sql(f"SELECT count(*) FROM {path} VERSION AS OF 2") == [(2,)]
    files = sorted(plain.rglob("*.parquet"))
    lake.sql(f"DROP TABLE {path}")
    assert sorted(plain.rglob("*.parquet")) == files
    with pytest.raises(AnalysisException) as error:
        lake.sql(f"SELECT * FROM {path}")
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_a_table_at_a_path_is_created_and_replaced_from_a_query(lake, tmp_path):
    path = f"lake.`{tmp_path}/t`"
    lake.sql(f"CREATE TABLE {path} AS SELECT 1 AS id")
    with pytest.raises(AnalysisException):
        lake.sql(f"CREATE TABLE {path} AS SELECT 1 AS id")
    lake.sql(f"CREATE OR REPLACE TABLE {path} AS SELECT id + 1 AS next FROM {path}")
    assert lake.sql(f"SELECT next FROM {path}") == [(2,)]
    lake.spark.range(3).writeTo(f"{lake.name}.`{tmp_path}/t`").replace()
    assert lake.catalog.table_at(str(tmp_path / "t")).row_count == 3
    assert lake.sql(f"SHOW TABLES IN {lake.name}") == []


def test_a_table_of_a_namespace_can_be_read_by_its_place(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    assert lake.sql(f"SELECT * FROM lake.`{lake.catalog.load_table('t').location}`") == [(1,)]


def test_a_path_cannot_be_renamed(lake, tmp_path):
    lake.sql(f"CREATE TABLE lake.`{tmp_path}/t` AS SELECT 1 AS id")
    with pytest.raises(Exception, match="renamed"):
        lake.sql(f"ALTER TABLE lake.`{tmp_path}/t` RENAME TO u")


def test_a_place_without_a_table_is_no_table(lake, tmp_path):
    with pytest.raises(AnalysisException) as error:
        lake.sql(f"SELECT * FROM lake.`{tmp_path}/nothing`")
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"

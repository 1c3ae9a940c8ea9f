"""The reference itself: Spark's in-memory catalogs answer, and a difference is seen."""

from tests.spark.sql.reference import Outcome, outcome


def test_sparks_own_catalogs_hold_namespaces_tables_and_views(memory, memory_views, memory_partitions):
    for place in (memory, memory_views, memory_partitions):
        place.sql("CREATE NAMESPACE lake.a")
        place.sql("CREATE TABLE lake.a.t (id INT) PARTITIONED BY (id)")
        assert [row[:2] for row in place.sql("SHOW TABLES IN lake.a")] == [("a", "t")]
    memory.sql("INSERT INTO lake.a.t VALUES (1)")
    assert memory.sql("SELECT * FROM lake.a.t") == [(1,)]
    memory_views.sql("CREATE VIEW lake.a.v AS SELECT 1 AS id")
    assert memory_views.sql("SELECT * FROM lake.a.v") == [(1,)]
    memory_partitions.sql("ALTER TABLE lake.a.t ADD PARTITION (id = 1)")
    assert memory_partitions.sql("SHOW PARTITIONS lake.a.t") == [("id=1",)]


def test_an_outcome_shows_what_differs_but_not_the_catalogs_name(lake, memory):
    for place in (lake, memory):
        place.sql("CREATE NAMESPACE lake.a")
        assert outcome(place, "SHOW NAMESPACES IN lake") == Outcome(columns=("namespace",), rows=(("a",),))
        failed_outcome = outcome(place, "SELECT * FROM lake.a.gone")
        assert failed_outcome.condition == "TABLE_OR_VIEW_NOT_FOUND"
        assert dict(failed_outcome.parameters)["relationName"] == "`lake`.`a`.`gone`"
    lake.sql("CREATE NAMESPACE lake.b")
    assert outcome(lake, "SHOW NAMESPACES IN lake") != outcome(memory, "SHOW NAMESPACES IN lake")

"""CHECK conditions and keys: stated, shown, held against every write, and given up."""

import sys

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.sql.functions import udf
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome
from tests.spark.versions import SPARK_4_2

from lakelog.catalog import Catalog, CommitConflict, engine
from lakelog.catalog.core.schema.constraints import CheckConstraint
from lakelog.catalog.errors import CheckViolated

pytestmark = pytest.mark.adapter

VIOLATED = "CHECK_CONSTRAINT_VIOLATION"
# Spark 4.1 says of a key only that it may be relied on.
NORELY = " NORELY" if SPARK_4_2 else ""


def shown(place, table):
    rows = place.sql(f"DESCRIBE EXTENDED lake.{table}")
    names = [row[0] for row in rows]
    if "# Constraints" not in names:
        return []
    return [
        (name, text.replace(f"{place.name}.", "lake."))
        for name, text, _ in rows[names.index("# Constraints") + 1 :]
    ]


def test_constraints_are_stated_and_shown_as_in_sparks_own_catalogs(lake, memory):
    for place in (lake, memory):
        place.sql(
            "CREATE TABLE lake.t (id BIGINT, a INT, b STRING, CONSTRAINT pos CHECK (id > 0) RELY,"
            " CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED RELY, CONSTRAINT u UNIQUE (a, b),"
            " CONSTRAINT fk FOREIGN KEY (a) REFERENCES lake.other (x) NORELY)"
        )
        place.sql("ALTER TABLE lake.t ADD CONSTRAINT long CHECK (length(b) < 10 AND a IS NOT NULL)")
        place.sql("ALTER TABLE lake.t ADD CONSTRAINT fk2 FOREIGN KEY (id, a) REFERENCES other (x, y)")
        place.sql("ALTER TABLE lake.t DROP CONSTRAINT u CASCADE")
        place.sql("CREATE TABLE lake.own (k INT PRIMARY KEY)")
    assert shown(lake, "t") == shown(memory, "t")
    assert [name for name, _ in shown(lake, "t")] == ["pos", "pk", "fk", "long", "fk2"]
    assert shown(lake, "own") == [("own_pk", f"PRIMARY KEY (k) NOT ENFORCED{NORELY}")]
    created = lake.sql("SHOW CREATE TABLE lake.t")[0][0]
    assert created.replace(lake.name, "") == memory.sql("SHOW CREATE TABLE lake.t")[0][0].replace(
        memory.name, ""
    )
    # What it prints makes the same table.
    lake.spark.sql(created.replace(f"{lake.name}.t ", f"{lake.name}.again "))
    assert shown(lake, "again") == shown(another_session(lake), "t")
    constraints = lake.catalog.load_table("t").constraints
    assert [constraint.name for constraint in constraints] == ["pos", "pk", "fk", "long", "fk2"]
    assert constraints[0].rely and constraints[0].sql == "id > 0"


def test_a_check_holds_for_every_write(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING, CHECK (id > 0)) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a'), (NULL, 'a')")
    name = f"{lake.name}.t"
    wrong = lake.spark.sql("SELECT -1L AS id, 'a' AS k")
    other_session = another_session(lake)
    for write in (
        lambda: lake.sql("INSERT INTO lake.t VALUES (0, 'b')"),
        lambda: other_session.sql("INSERT INTO lake.t (k, id) VALUES ('b', 5), ('b', -5)"),
        lambda: lake.sql("INSERT OVERWRITE lake.t SELECT -1L, 'a'"),
        lambda: lake.sql("INSERT OVERWRITE lake.t PARTITION (k = 'a') SELECT -1L"),
        lambda: lake.sql("INSERT INTO lake.t REPLACE WHERE k = 'a' SELECT -1L, 'a'"),
        lambda: wrong.writeTo(name).append(),
        lambda: wrong.writeTo(name).overwritePartitions(),
        lambda: wrong.write.mode("append").saveAsTable(name),
        lambda: wrong.write.mode("overwrite").insertInto(name),
    ):
        with pytest.raises(SparkRuntimeException) as error:
            write()
        assert error.value.getCondition() == VIOLATED
    with pytest.raises(CheckViolated, match=r"CHECK \(id > 0\)"):
        lake.catalog.load_table("t").append(pa.table({"id": [0], "k": ["a"]}))
    lake.catalog.load_table("t").append(pa.table({"id": [2], "k": ["a"]}))
    assert lake.sorted("SELECT id FROM lake.t") == [(1,), (2,), (None,)]


def test_conditions_mean_what_they_mean_in_spark(lake, memory):
    for place in (lake, memory):
        place.sql(
            "CREATE TABLE lake.t (c CHAR(4), s STRUCT<x: INT>, a ARRAY<INT>, m MAP<STRING, INT>, d DATE, n DOUBLE,"
            " e DECIMAL(5, 2), CONSTRAINT s CHECK (s.x > 0),"
            " CONSTRAINT a CHECK (forall(a, i -> i > 0)), CONSTRAINT m CHECK (m['k'] > 0),"
            " CONSTRAINT d CHECK (d <= current_date AND d > DATE'2020-01-01'),"
            " CONSTRAINT n CHECK (n <> double('NaN') OR n IS NULL), CONSTRAINT e CHECK (e IN (1.5, 2.5)))"
        )
        # Spark compares with a CHAR's blanks here, and without them where the table is created with the condition.
        place.sql("ALTER TABLE lake.t ADD CONSTRAINT c CHECK (c = 'ab')")
        place.sql("CREATE TABLE lake.padded (c CHAR(4), CONSTRAINT c CHECK (c = 'ab'))")
        for values in (
            "'ab', named_struct('x', 1), array(1), map('k', 1), DATE'2020-01-02', 1, 1.5",
            "NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        ):
            place.sql(f"INSERT INTO lake.t VALUES ({values})")
    for column, value in [
        ("c", "'abc'"),
        ("s", "named_struct('x', 0)"),
        ("a", "array(1, 0)"),
        ("m", "map('k', 0)"),
        ("d", "DATE'2020-01-01'"),
        ("n", "double('NaN')"),
        ("e", "1.6"),
    ]:
        refused_outcome = outcome(lake, f"INSERT INTO lake.t ({column}) VALUES ({value})")
        assert (
            refused_outcome.condition == VIOLATED
            and dict(refused_outcome.parameters)["constraintName"] == column
        )
        assert refused_outcome == outcome(memory, f"INSERT INTO lake.t ({column}) VALUES ({value})")
    padded_outcome = outcome(lake, "INSERT INTO lake.padded VALUES ('ab')")
    assert padded_outcome == outcome(memory, "INSERT INTO lake.padded VALUES ('ab')")
    assert lake.sql("SELECT count(*) FROM lake.t") == [(2,)]
    found = {constraint.name: constraint for constraint in lake.catalog.load_table("t").constraints}
    schema = lake.catalog.load_table("t").schema
    assert [schema.path_of(id) for id in found["s"].columns] == [("s", "x")]
    assert [schema.path_of(id) for id in found["d"].columns] == [("d",)]


def test_existing_rows_are_held_against_a_new_check(lake, memory):
    for place in (lake, memory):
        place.sql("CREATE TABLE lake.t (id INT, b STRING)")
        place.sql("INSERT INTO lake.t VALUES (1, 'x'), (5, NULL)")
    for statement in (
        "ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id > 1)",
        "ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id + length(b) > 2)",
        "ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id > rand())",
        "ALTER TABLE lake.t ADD CONSTRAINT c CHECK (nope > 0)",
        "ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id)",
        "ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id > 0) NOT ENFORCED",
        "ALTER TABLE lake.t ADD CONSTRAINT c UNIQUE (id) ENFORCED",
        "ALTER TABLE lake.t DROP CONSTRAINT c",
        "ALTER TABLE lake.t DROP CONSTRAINT IF EXISTS c",
        "CREATE TABLE lake.u (a INT PRIMARY KEY, b INT PRIMARY KEY)",
        "CREATE TABLE lake.u (CONSTRAINT c CHECK (a > 0)) AS SELECT 1 AS a",
        "CREATE TABLE lake.u (a INT, CONSTRAINT c CHECK (nope > 0))",
        "CREATE OR REPLACE TABLE lake.u (a INT, CONSTRAINT c CHECK (a > rand()))",
    ):
        assert outcome(lake, statement) == outcome(memory, statement), statement
    assert lake.catalog.load_table("t").version == 2
    for place in (lake, memory):
        place.sql("ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id + length(b) > 1)")
        taken_outcome = outcome(place, "ALTER TABLE lake.t ADD CONSTRAINT C CHECK (id > 0)")
        assert taken_outcome.condition == "CONSTRAINT_ALREADY_EXISTS"
        assert outcome(place, "INSERT INTO lake.t VALUES (0, 'y')").condition == VIOLATED
    assert [entry.operation for entry in lake.catalog.load_table("t").history()][0] == "add constraint"


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("ALTER TABLE lake.t ADD CONSTRAINT k PRIMARY KEY (b)", "MULTIPLE_PRIMARY_KEYS"),
        ("ALTER TABLE lake.t ADD CONSTRAINT k UNIQUE (nope)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("CREATE TABLE lake.u (a INT, UNIQUE (nope))", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (
            "CREATE TABLE lake.u (a INT, CONSTRAINT k UNIQUE (a), CONSTRAINT K CHECK (a > 0))",
            "CONSTRAINT_ALREADY_EXISTS",
        ),
        ("ALTER TABLE lake.t ADD CONSTRAINT k CHECK (lake.t.b > 0)", None),
        ("ALTER TABLE lake.t DROP COLUMN id", None),
        ("ALTER TABLE lake.t DROP COLUMN s.x", None),
        ("ALTER TABLE lake.t RENAME COLUMN s TO other", None),
        ("ALTER TABLE lake.t RENAME COLUMN s.x TO other", None),
        ("ALTER TABLE lake.t ALTER COLUMN s.x TYPE BIGINT", None),
        ("ALTER TABLE lake.t REPLACE COLUMNS (id INT)", None),
    ],
)
def test_what_spark_does_not_look_at_is_refused(lake, statement, condition):
    lake.catalog.create_table("t", pa.schema([("id", pa.int32()), ("b", pa.int32())]))
    lake.sql("ALTER TABLE lake.t ADD COLUMN s STRUCT<x: INT>")
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT pk PRIMARY KEY (id)")
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT c CHECK (s.x > 0)")
    version_before = lake.catalog.load_table("t").version
    with pytest.raises(AnalysisException) as error:
        lake.sql(statement)
    assert error.value.getCondition() == condition
    assert (lake.catalog.load_table("t").version, lake.catalog.list_tables()) == (version_before, [("t",)])


def test_keys_follow_a_rename_and_checks_go_with_a_replace(lake):
    lake.sql(
        "CREATE TABLE lake.t (id INT, a INT, CONSTRAINT pk PRIMARY KEY (id), CONSTRAINT c CHECK (a > 0))"
    )
    lake.sql("ALTER TABLE lake.t RENAME COLUMN id TO key")
    assert shown(lake, "t")[0] == ("pk", f"PRIMARY KEY (key) NOT ENFORCED{NORELY}")
    lake.sql("ALTER TABLE lake.t DROP CONSTRAINT c")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN a TO b")
    lake.sql("REPLACE TABLE lake.t (id INT, CONSTRAINT d CHECK (id < 10))")
    assert outcome(lake, "INSERT INTO lake.t VALUES (10)").condition == VIOLATED
    lake.sql("INSERT INTO lake.t VALUES (-1)")
    lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT 10 AS id")
    assert shown(another_session(lake), "t") == []
    assert [row[0] for row in lake.sql("SELECT id FROM lake.t VERSION AS OF 6")] == [-1]


def test_rows_that_came_while_spark_looked_conflict_with_the_check(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    jvm = lake.spark.sparkContext._jvm
    connector = jvm.org.apache.spark.sql.connector.catalog
    catalog = lake.spark._jsparkSession.sessionState().catalogManager().catalog(lake.name)
    ident = connector.Identifier.of(lake.spark.sparkContext._gateway.new_array(jvm.String, 0), "t")
    looked_at = catalog.loadTable(ident).version()
    lake.catalog.load_table("t").append(pa.table({"id": pa.array([-1], pa.int32())}))

    def add(version):
        check = connector.constraints.Constraint.check("c").predicateSql("id > 0").enforced(True).build()
        changes = lake.spark.sparkContext._gateway.new_array(connector.TableChange, 1)
        changes[0] = connector.TableChange.addConstraint(check, version)
        catalog.alterTable(ident, changes)

    with pytest.raises(Exception, match="rows were added since"):
        add(looked_at)
    lake.catalog.load_table("t").overwrite(pa.table({"id": pa.array([2], pa.int32())}))
    add(catalog.loadTable(ident).version())
    lake.sql("DROP TABLE lake.t")
    lake.sql("CREATE TABLE lake.t AS SELECT -1 AS id")
    # The version of another table says nothing about this one.
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        add(looked_at)
    assert lake.catalog.load_table("t").constraints == ()


def test_a_write_that_began_before_the_check_conflicts_with_it(lake, monkeypatch):
    # The function needs lakelog, which not every Python on the path has.
    monkeypatch.setattr(lake.spark.sparkContext, "pythonExec", sys.executable)
    lake.sql("CREATE TABLE lake.t (id INT)")
    warehouse = lake.warehouse

    def meanwhile(id):
        table = Catalog(warehouse).load_table("t")
        if not table.constraints:
            check = {"kind": "check", "name": "c", "columns": [["id"]], "sql": "id > 0"}
            table.alter([{"change": "add-constraint", "constraint": check}])
        return id

    rows = lake.spark.sql("SELECT -1 AS id").select(udf(meanwhile, "int", useArrow=False)("id").alias("id"))
    with pytest.raises(Exception, match="added a CHECK"):
        rows.writeTo(f"{lake.name}.t").append()
    assert isinstance(lake.catalog.load_table("t").constraints[0], CheckConstraint)
    assert lake.sql("SELECT * FROM lake.t") == []


def test_constraints_are_part_of_a_transaction(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    assert (
        outcome(lake, "ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id < 2)").condition
        == "NEW_CHECK_CONSTRAINT_VIOLATION"
    )
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT c CHECK (id < 3)")
    assert outcome(lake, "INSERT INTO lake.t VALUES (3)").condition == VIOLATED
    assert lake.catalog.load_table("t").constraints == ()
    lake.sql("CALL lake.system.commit_transaction()")
    assert shown(another_session(lake), "t") == [("c", f"CHECK (id < 3) ENFORCED{NORELY}")]
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT d CHECK (id < 4)")
    lake.catalog.load_table("t").append(pa.table({"id": pa.array([0], pa.int32())}))
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT e CHECK (id + id < 9)")
    with pytest.raises(Exception, match="rows were added since|conflict"):
        lake.sql("CALL lake.system.commit_transaction()")
    assert [constraint.name for constraint in lake.catalog.load_table("t").constraints] == ["c"]


def test_python_leaves_rows_to_spark_where_only_spark_knows_the_condition(lake):
    lake.sql("CREATE TABLE lake.t (id INT, CONSTRAINT odd CHECK (id % 2 = 1))")
    with pytest.raises(Exception, match="constraint odd"):
        lake.catalog.load_table("t").append(pa.table({"id": pa.array([1], pa.int32())}))
    table_before = lake.catalog.load_table("t")
    write = engine.begin_write(table_before)
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT more CHECK (id > 0)")
    with pytest.raises(CommitConflict, match="added a CHECK"):
        engine.commit_write(table_before, write, "append", [])
    lake.sql("INSERT INTO lake.t VALUES (1)")
    assert outcome(lake, "INSERT INTO lake.t VALUES (2)").condition == VIOLATED


def test_a_check_is_not_added_through_a_view_to_the_table_below(lake):
    lake.sql("CREATE NAMESPACE lake.n")
    lake.sql("CREATE TABLE lake.n.t AS SELECT -1 AS a, 5 AS b UNION ALL SELECT -2, -900")
    query = f"SELECT b AS a, a AS b FROM {lake.name}.n.t WHERE b > 0"
    lake.sql(f"CREATE VIEW lake.n.v AS {query}")
    lake.sql(f"CREATE TEMPORARY VIEW check_of_view AS {query}")
    try:
        for view in ("lake.n.v", "check_of_view"):
            with pytest.raises(AnalysisException) as error:
                # The rows that the view shows satisfy it; of the table's, one has another b, which is not looked at.
                lake.sql(f"ALTER TABLE {view} ADD CONSTRAINT c CHECK (b > -100)")
            assert error.value.getCondition() == "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"
    finally:
        lake.sql("DROP VIEW check_of_view")
    assert lake.catalog.load_table("n.t").constraints == ()

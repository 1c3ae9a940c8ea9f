"""ALTER TABLE of columns: NOT NULL, defaults, lengths, types, and parts of structs, arrays and maps."""

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from tests.spark.hooks import meanwhile
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome


def columns(place, table):
    return place.sql(f"DESCRIBE lake.{table}")


def test_not_null_is_set_where_no_row_is_null(lake):
    lake.sql("CREATE TABLE lake.t (id INT, s STRUCT<x: INT>, a ARRAY<INT>, m MAP<STRING, INT>, b INT)")
    lake.sql(
        "INSERT INTO lake.t VALUES (1, NULL, NULL, NULL, 1),"
        " (2, named_struct('x', 1), array(1), map('a', 1), NULL)"
    )
    lake.sql("ALTER TABLE lake.t ALTER COLUMN id SET NOT NULL, b COMMENT 'may be NULL'")
    # The statistics of a file say nothing of what is in arrays and maps: these are looked at.
    lake.sql("ALTER TABLE lake.t ALTER COLUMN s.x SET NOT NULL, a.element SET NOT NULL, m.value SET NOT NULL")
    table_before = lake.catalog.load_table("t")
    for column in ("b", "s"):
        refused_outcome = outcome(lake, f"ALTER TABLE lake.t ALTER COLUMN {column} SET NOT NULL")
        assert refused_outcome.condition == "NEW_CHECK_CONSTRAINT_VIOLATION"
        assert dict(refused_outcome.parameters)["expression"] == f"{column} IS NOT NULL"
    assert lake.catalog.load_table("t").version == table_before.version
    schema = table_before.schema
    required_paths = [path for path, field in schema.walk() if not field.nullable]
    assert required_paths == [("id",), ("s", "x"), ("a", "element"), ("m", "key"), ("m", "value")]
    assert schema.find(["b"]).comment == "may be NULL"
    other_session = another_session(lake)
    assert outcome(other_session, "INSERT INTO lake.t (b) VALUES (1)").condition is not None
    assert outcome(other_session, "INSERT INTO lake.t (id, a) VALUES (1, array(NULL))").condition is not None
    with pytest.raises(Exception, match="id is NOT NULL"):
        table_before.append(pa.table({"id": pa.array([None], pa.int32())}))
    lake.sql("ALTER TABLE lake.t ALTER COLUMN id DROP NOT NULL")
    lake.sql("INSERT INTO lake.t (id) VALUES (NULL)")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE id IS NULL") == [(1,)]


NO_VALUE = """
import pyarrow as pa
other.load_table("t").append(pa.table({"a": pa.array([[None]], pa.list_(pa.int32()))}))
"""


def test_no_row_without_a_value_comes_while_all_rows_are_looked_at(make_lake, warm, tmp_path):
    armed_path, warehouse = tmp_path / "armed", str(tmp_path / "warehouse")
    text = meanwhile(["plan"], armed_path, warehouse, NO_VALUE, after=True)
    lake = make_lake(warehouse, python=warm.program(tmp_path, text))
    lake.sql("CREATE TABLE lake.t (a ARRAY<INT>, b ARRAY<INT>)")
    lake.sql("INSERT INTO lake.t VALUES (array(1), array(2))")
    armed_path.touch()
    with pytest.raises(Exception, match="as of version 2, but rows were added since"):
        lake.sql("ALTER TABLE lake.t ALTER COLUMN a.element SET NOT NULL, b.element SET NOT NULL")
    assert not armed_path.exists()
    assert lake.catalog.load_table("t").schema.find(["a", "element"]).nullable
    with pytest.raises(Exception, match="a[.]element IS NOT NULL"):
        lake.sql("ALTER TABLE lake.t ALTER COLUMN b.element SET NOT NULL, a.element SET NOT NULL")


def test_what_else_a_statement_with_not_null_changes_is_checked_by_spark(lake, memory):
    for place in (lake, memory):
        place.sql("CREATE TABLE lake.t (id INT, b INT)")
    mixed_text = "ALTER TABLE lake.t ALTER COLUMN {}, id SET NOT NULL"
    for wrong in ("b TYPE SMALLINT", "id COMMENT 'twice'", "nope COMMENT 'x'"):
        found_outcome = outcome(lake, mixed_text.format(wrong))
        assert (
            found_outcome.condition
            == outcome(memory, f"ALTER TABLE lake.t ALTER COLUMN {wrong}, id TYPE BIGINT").condition
        )
        assert found_outcome.condition is not None
    assert lake.catalog.load_table("t").version == 1


def test_defaults_are_expressions_that_spark_evaluates_for_each_statement(lake, memory):
    for place in (lake, memory):
        place.sql("CREATE TABLE lake.t (a INT, b TIMESTAMP DEFAULT current_timestamp(), w INT DEFAULT 1 + 2)")
    for statement in (
        "CREATE TABLE lake.u (a INT DEFAULT 'x')",
        "CREATE TABLE lake.u (a INT DEFAULT (SELECT 1))",
        "CREATE TABLE lake.u (a DOUBLE DEFAULT rand())",
        "CREATE TABLE lake.u (a INT DEFAULT nope)",
        "CREATE TABLE lake.u (a VARCHAR(3) DEFAULT 'abcd')",
        "ALTER TABLE lake.t ALTER COLUMN a SET DEFAULT 'x'",
        "ALTER TABLE lake.t ALTER COLUMN a SET DEFAULT (SELECT 1)",
        "ALTER TABLE lake.t ADD COLUMN n INT DEFAULT 'x'",
        "ALTER TABLE lake.t ADD COLUMN n VARCHAR(3) DEFAULT 'abcd'",
    ):
        found_outcome = outcome(lake, statement)
        assert found_outcome.condition is not None and found_outcome == outcome(memory, statement), statement
    assert (lake.catalog.list_tables(), lake.catalog.load_table("t").version) == ([("t",)], 1)
    lake.sql("INSERT INTO lake.t (a) VALUES (1)")
    assert lake.sql("SELECT a, b > now() - INTERVAL 1 HOUR AND b <= now(), w FROM lake.t") == [(1, True, 3)]
    lake.sql("ALTER TABLE lake.t ALTER COLUMN b SET DEFAULT TIMESTAMP'2020-01-01 00:00:00', w DROP DEFAULT")
    lake.sql("ALTER TABLE lake.t ADD COLUMN n DATE DEFAULT current_date()")
    lake.sql("INSERT INTO lake.t (a) VALUES (2)")
    rows = lake.sql("SELECT a, year(b) = 2020, w, n IS NOT NULL FROM lake.t ORDER BY a")
    assert rows == [(1, False, 3, True), (2, True, None, True)]
    fields = lake.catalog.load_table("t").schema
    assert fields.find(["b"]).default.current == "TIMESTAMP'2020-01-01 00:00:00'"
    assert fields.find(["n"]).default.current == "current_date()"
    # What a statement evaluates is nothing that Python could.
    with pytest.raises(Exception, match="its default cannot be computed here"):
        lake.catalog.load_table("t").append(pa.table({"a": pa.array([3], pa.int32())}))


def test_lengths_of_texts_hold(lake, memory):
    for place in (lake, memory):
        place.sql("CREATE TABLE lake.t (v VARCHAR(3), c CHAR(4))")
        place.sql("INSERT INTO lake.t VALUES ('abc  ', 'ab')")
        for values in ("'abcd', 'a'", "'a', 'abcde'"):
            assert outcome(place, f"INSERT INTO lake.t VALUES ({values})").condition == "EXCEED_LIMIT_LENGTH"
        place.sql("ALTER TABLE lake.t ALTER COLUMN v TYPE VARCHAR(5)")
        place.sql("INSERT INTO lake.t VALUES ('abcde', NULL)")
    query = "SELECT v, length(v), c, length(c), c = 'ab' FROM lake.t"
    assert (
        lake.sorted(query)
        == memory.sorted(query)
        == [("abc", 3, "ab  ", 4, True), ("abcde", 5, None, None, None)]
    )
    assert outcome(lake, "ALTER TABLE lake.t ALTER COLUMN v TYPE VARCHAR(4)").condition is not None


def test_parts_of_structs_arrays_and_maps_change_and_old_rows_follow(lake, memory):
    steps = [
        "ADD COLUMN s.y.element.q STRING COMMENT 'new' FIRST",
        "ADD COLUMN m.value.w INT AFTER v",
        "ADD COLUMN top INT FIRST",
        "RENAME COLUMN m.value.v TO vv",
        "RENAME COLUMN m.key.k TO kk",
        "ALTER COLUMN m.key.kk TYPE BIGINT, a.element TYPE BIGINT, s.x COMMENT 'deep', id AFTER s",
        "DROP COLUMNS (s.y.element.p, m.value.w)",
        "DROP COLUMN IF EXISTS s.nope",
        "ADD COLUMN s.z ARRAY<STRUCT<p: INT>>",
    ]
    for place in (lake, memory):
        place.sql(
            "CREATE TABLE lake.t (id INT, s STRUCT<x: INT, y: ARRAY<STRUCT<p: INT, r: INT>>>,"
            " m MAP<STRUCT<k: INT>, STRUCT<v: INT>>, a ARRAY<INT>)"
        )
    lake.sql(
        "INSERT INTO lake.t SELECT 1, named_struct('x', 2, 'y', array(named_struct('p', 3, 'r', 4))),"
        " map(named_struct('k', 5), named_struct('v', 6)), array(7)"
    )
    for step in steps:
        for place in (lake, memory):
            place.sql(f"ALTER TABLE lake.t {step}")
    # Spark's in-memory catalog keeps the comments of fields, too.
    assert columns(lake, "t") == columns(memory, "t")
    assert columns(another_session(lake), "t") == columns(memory, "t")
    [row] = lake.frame("SELECT * FROM lake.t").toLocalIterator()
    assert row.asDict(recursive=True) | {"m": None} == {
        "top": None,
        "s": {"x": 2, "y": [{"q": None, "r": 4}], "z": None},
        "id": 1,
        "m": None,
        "a": [7],
    }
    assert lake.sql("SELECT map_keys(m)[0].kk, map_values(m)[0].vv FROM lake.t") == [(5, 6)]
    assert lake.sql("SELECT s.y[0].p, a[0] FROM lake.t VERSION AS OF 2") == [(3, 7)]
    table = lake.catalog.load_table("t")
    assert table.to_arrow()["s"].to_pylist() == [{"x": 2, "y": [{"q": None, "r": 4}], "z": None}]
    assert table.schema.names == ("top", "s", "id", "m", "a")


def test_columns_are_replaced_and_old_values_do_not_come_back(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS a, 'x' AS b")
    lake.sql("ALTER TABLE lake.t REPLACE COLUMNS (b STRING COMMENT 'another', c INT)")
    assert columns(lake, "t") == [("b", "string", "another"), ("c", "int", None)]
    assert lake.sql("SELECT * FROM lake.t") == [(None, None)]
    lake.sql("INSERT INTO lake.t VALUES ('y', 2)")
    assert lake.catalog.load_table("t").to_arrow().to_pydict() == {"b": [None, "y"], "c": [None, 2]}


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ("ADD COLUMN ID INT", "FIELD_ALREADY_EXISTS"),
        ("ADD COLUMN id.x INT", "INVALID_FIELD_NAME"),
        ("ADD COLUMN nope.x INT", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ADD COLUMN k INT AFTER nope", "FIELD_NOT_FOUND"),
        ("RENAME COLUMN id TO S", "FIELD_ALREADY_EXISTS"),
        ("DROP COLUMN nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ALTER COLUMN id TYPE SMALLINT", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("ALTER COLUMN s TYPE STRUCT<x: BIGINT>", "CANNOT_UPDATE_FIELD.STRUCT_TYPE"),
        ("ALTER COLUMN id COMMENT 'a', id COMMENT 'b'", "NOT_SUPPORTED_CHANGE_SAME_COLUMN"),
        # What Spark's own catalogs take, and lose rows or words by.
        ("ALTER COLUMN id TYPE STRING", None),
        ("ADD COLUMN n INT NOT NULL", None),
        ("DROP COLUMN m.key.k", None),
        ("ALTER COLUMN a.element COMMENT 'x'", None),
        ("DROP COLUMNS (id, s, m, a)", None),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_nothing_is_changed(lake, change, condition):
    fields = "id INT, s STRUCT<x: INT>, m MAP<STRUCT<k: INT, l: INT>, INT>, a ARRAY<INT>"
    lake.sql(f"CREATE TABLE lake.t ({fields})")
    with pytest.raises(AnalysisException) as error:
        lake.sql(f"ALTER TABLE lake.t {change}")
    assert error.value.getCondition() == condition
    assert lake.catalog.load_table("t").version == 1


def test_lengths_of_texts_inside_others_change_as_those_outside_do(lake):
    lake.sql(
        "CREATE TABLE lake.t (id INT, s STRUCT<x: VARCHAR(3), c: CHAR(2), y: STRING>, a ARRAY<VARCHAR(3)>,"
        " m MAP<VARCHAR(3), STRUCT<q: VARCHAR(3)>>)"
    )
    lake.sql("INSERT INTO lake.t VALUES (1, named_struct('x', 'a', 'c', 'd', 'y', 'e'), array('abc'), NULL)")
    for change in (
        "s.x TYPE VARCHAR(5), id SET NOT NULL",
        "s.c TYPE VARCHAR(4)",
        "a.element TYPE VARCHAR(5)",
        "m.key TYPE STRING, id COMMENT 'the key'",
        "m.value.q TYPE VARCHAR(3)",
    ):
        lake.sql(f"ALTER TABLE lake.t ALTER COLUMN {change}")
    lake.spark.sql(f"ALTER TABLE IDENTIFIER('{lake.name}.t') ALTER COLUMN m.value.q TYPE STRING")
    schema = lake.catalog.load_table("t").schema
    types = {".".join(path): getattr(field.type, "name", None) for path, field in schema.walk()}
    assert {path: name for path, name in types.items() if name is not None} == {
        "id": "integer",
        "s.x": "varchar(5)",
        "s.c": "varchar(4)",
        "s.y": "string",
        "a.element": "varchar(5)",
        "m.key": "string",
        "m.value.q": "string",
    }
    assert not schema.find(["id"]).nullable
    for wrong in (
        "s.x TYPE VARCHAR(4)",
        "s.x TYPE CHAR(9)",
        "s.y TYPE VARCHAR(9)",
        "a.element TYPE VARCHAR(4)",
    ):
        refused_outcome = outcome(lake, f"ALTER TABLE lake.t ALTER COLUMN {wrong}")
        assert refused_outcome.condition == "NOT_SUPPORTED_CHANGE_COLUMN"
    lake.sql("ALTER TABLE lake.t ALTER COLUMN s.x TYPE STRING, id DROP NOT NULL, a.element TYPE STRING")
    other_session = another_session(lake)
    row = "VALUES (2, named_struct('x', 'abcdef', 'c', '{}', 'y', 'e'), array('abcdef'), NULL)"
    other_session.sql(f"INSERT INTO lake.t {row.format('abcd')}")
    assert other_session.sql("SELECT s.x, a[0] FROM lake.t WHERE id = 2") == [("abcdef", "abcdef")]
    assert outcome(other_session, f"INSERT INTO lake.t {row.format('abcde')}").condition is not None


def test_a_text_inside_others_becomes_not_null_and_longer_in_one_statement(lake):
    lake.sql("CREATE TABLE lake.t (id INT, s STRUCT<x: VARCHAR(3)>)")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN id SET NOT NULL, s.x TYPE STRING")
    schema = lake.catalog.load_table("t").schema
    assert schema.find(["s", "x"]).type.name == "string" and not schema.find(["id"]).nullable

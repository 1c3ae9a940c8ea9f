"""Procedures through Spark: CALL, SHOW and DESCRIBE of the procedures that Python declares."""

import pytest
from pyspark.errors import AnalysisException

pytestmark = pytest.mark.adapter

# A Python side with one more procedure, which returns what it was given.
ECHO = """
from lakelog.log.errors import ConflictError, InvalidInput, Unsupported
from lakelog.spark.procedures import AnswerColumn, OperationParameter, SystemProcedure, all_procedures
KINDS = {"invalid": InvalidInput, "unsupported": Unsupported, "conflict": ConflictError}
def run(call):
    if call["fails"] is not None:
        raise KINDS[call["fails"]]("this is why")
    return [
        (call["text"], call["number"], call["flag"], call["at"], call["share"], call["names"], call["map"]),
        (None, None, None, None, None, None, None),
    ]
def where(call):
    return [(".".join(call.table("table")), ".".join(call.namespace("namespace")))]
all_procedures()["echo"] = SystemProcedure(
    name="echo",
    description="Return what was given.",
    run=run,
    parameters=(
        OperationParameter("text", "STRING", "any text"),
        OperationParameter("number", "BIGINT", "any number", default="7"),
        OperationParameter("flag", "BOOLEAN", "yes or no", default="true"),
        OperationParameter("at", "TIMESTAMP", "when", default="NULL"),
        OperationParameter("share", "DOUBLE", "a part", default="0.5"),
        OperationParameter("names", "ARRAY<STRING>", "some", default="array('x', NULL)"),
        OperationParameter("map", "MAP<STRING, BIGINT>", "more", default="map('k', 1)"),
        OperationParameter("fails", "STRING", "how", default="NULL"),
    ),
    columns=(
        AnswerColumn("text", "STRING", "as it came"), AnswerColumn("number", "BIGINT"), AnswerColumn("flag", "BOOLEAN"),
        AnswerColumn("at", "TIMESTAMP"), AnswerColumn("share", "DOUBLE"), AnswerColumn("names", "ARRAY<STRING>"),
        AnswerColumn("map", "MAP<STRING, BIGINT>"),
    ),
)
all_procedures()["where"] = SystemProcedure(
    name="where",
    description="Return what is named.",
    run=where,
    parameters=(
        OperationParameter("table", "STRING", "a table"),
        OperationParameter("namespace", "STRING", "one", default="''"),
    ),
    columns=(AnswerColumn("table", "STRING"), AnswerColumn("namespace", "STRING")),
)
"""


@pytest.fixture
def echo(make_lake, warm, tmp_path):
    return make_lake(python=warm.program(tmp_path, ECHO))


def test_arguments_of_every_type_go_in_and_come_out_by_position_and_name_with_defaults(echo):
    empty_number = (None,) * 7
    first, second = echo.sql("CALL lake.system.echo('a')")
    assert first == ("a", 7, True, None, 0.5, ["x", None], {"k": 1})
    assert second == empty_number
    ((text, number, flag, at, share, names, more), _) = echo.sql(
        "CALL lake.system.echo(flag => false, text => 'ä', number => 2, at => '2026-01-02 03:04:05.678901', "
        "share => 2, names => array('n'), map => map('a', 1, 'b', NULL))"
    )
    assert (text, number, flag, share, names) == ("ä", 2, False, 2.0, ["n"])
    assert more == {"a": 1, "b": None}
    assert at.isoformat() == "2026-01-02T03:04:05.678901"
    assert echo.sql("CALL lake.system.echo('a', 3)")[0][1] == 3


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("echo()", "REQUIRED_PARAMETER_NOT_FOUND"),
        ("echo(text => 'a', numbr => 1)", "UNRECOGNIZED_PARAMETER_NAME"),
        ("echo('a', text => 'b')", "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.BOTH_POSITIONAL_AND_NAMED"),
        ("echo('a', number => array(1))", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
        ("echo('a', 1, true, NULL, 0.1, NULL, NULL, NULL, 9)", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
    ],
)
def test_wrong_arguments_are_refused_in_sparks_own_words(echo, call, condition):
    with pytest.raises(AnalysisException) as error:
        echo.sql(f"CALL lake.system.{call}")
    assert error.value.getCondition() == condition


def test_a_procedure_is_only_in_the_namespace_system(echo):
    echo.sql("CREATE NAMESPACE lake.a")
    for place in ("lake.system.ecco", "lake.a.echo", "lake.echo", "lake.system.b.echo"):
        with pytest.raises(AnalysisException) as error:
            echo.sql(f"CALL {place}('a')")
        assert error.value.getCondition() == "ROUTINE_NOT_FOUND"
    for place, hint in (("system.ecco", "did you mean .*system.echo"), ("a.echo", "in the namespace system")):
        with pytest.raises(AnalysisException, match=hint):
            echo.sql(f"CALL lake.{place}('a')")
    with pytest.raises(AnalysisException, match="`system`.`ecco`"):
        echo.sql("DESCRIBE PROCEDURE lake.system.ecco")
    assert echo.sql("CALL lake.system.ECHO('a')")[0][0] == "a"


@pytest.mark.parametrize("call", ["'a', number => NULL", "NULL", "'a', flag => CAST(NULL AS BOOLEAN)"])
def test_null_is_refused_where_it_is_not_the_default(echo, call):
    with pytest.raises(AnalysisException, match="argument (text|number|flag) of echo is NULL"):
        echo.sql(f"CALL lake.system.echo({call})")


@pytest.mark.parametrize("kind", ["invalid", "unsupported", "conflict"])
def test_the_words_of_an_error_in_a_procedure_reach_the_user(echo, kind):
    with pytest.raises(Exception, match="this is why"):
        echo.sql(f"CALL lake.system.echo('a', fails => '{kind}')")


def test_procedures_are_shown_and_described(echo):
    rows = echo.sql(f"SHOW PROCEDURES IN {echo.name}.system")
    assert (echo.name, ["system"], "system", "echo") in rows
    described_text = "\n".join(line for (line,) in echo.sql("DESCRIBE PROCEDURE lake.system.echo"))
    assert "Return what was given." in described_text
    assert "number BIGINT DEFAULT 7: any number" in described_text
    echo.sql("CREATE NAMESPACE lake.a")
    assert echo.sql("SHOW PROCEDURES IN lake.a") == []
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        echo.sql("SHOW PROCEDURES IN lake.nowhere")


def test_names_are_taken_as_spark_takes_them_in_statements(echo):
    name = echo.name
    assert echo.sql("CALL lake.system.where('t')") == [("t", "")]
    assert echo.sql("CALL lake.system.where('a.b.t', 'a.b')") == [("a.b.t", "a.b")]
    assert echo.sql(f"CALL lake.system.where('{name}.t', '{name}.a')") == [("t", "a")]
    echo.sql("CREATE NAMESPACE lake.a")
    try:
        echo.sql("USE lake.a")
        assert echo.sql("CALL system.where('t', 'b')") == [("a.t", "b")]
        assert echo.sql("CALL system.where('a.t')") == [("a.t", "")]
    finally:
        echo.sql("USE spark_catalog.default")


@pytest.mark.parametrize("current", ["{lake}", "{lake}.a", "spark_catalog.default"])
def test_a_namespace_is_the_one_that_a_statement_finds_by_that_name(lake, current):
    for number, namespace in enumerate(("a", "a.b", "b", "`x.y`")):
        lake.sql(f"CREATE NAMESPACE lake.{namespace}")
        lake.sql(f"CREATE TABLE lake.{namespace}.t{number} (id INT)")
    try:
        lake.sql(f"USE {current.format(lake=lake.name)}")
        for named_text in ("b", "`b`", "{lake}.b", "`{lake}`.`b`", "a.b", "`a`.b", "{lake}.a.b", "`x.y`"):
            name = named_text.format(lake=lake.name)
            # A statement has to name the catalog where another one is the current one.
            stated_name = name if "{lake}" in named_text + current else f"{lake.name}.{name}"
            [(_, table, _)] = lake.sql(f"SHOW TABLES IN {stated_name}")
            rows = lake.sql(f"CALL {lake.name}.system.vacuum(namespace => '{name}')")
            assert [row[1].rpartition(".")[2] for row in rows if row[0] == "table"] == [f"`{table}`"], name
    finally:
        lake.sql("USE spark_catalog.default")


def test_the_namespace_system_is_lakelogs_own(lake):
    with pytest.raises(AnalysisException, match="choose another name"):
        lake.sql("CREATE NAMESPACE lake.system")
    with pytest.raises(AnalysisException, match="choose another name"):
        lake.sql("CREATE TABLE lake.system.t (id INT)")
    with pytest.raises(AnalysisException, match="choose another name"):
        lake.sql("CREATE TABLE lake.system.t AS SELECT 1 AS id")
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE NAMESPACE lake.a.system")
    lake.sql("CREATE TABLE lake.a.system.t AS SELECT 1 AS id")
    assert lake.sql("SELECT * FROM lake.a.system.t") == [(1,)]
    assert lake.sql(f"SHOW NAMESPACES IN {lake.name}") == [("a",)]

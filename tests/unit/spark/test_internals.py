"""What Spark does not promise to keep is named in `catalog/spark/internals`, and elsewhere as far as listed here."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelog.spark.jar import sources

FOLDER = "internals"
MOST_FILES_IN_A_FOLDER = 30
MOST_FILES_ELSEWHERE = 13

# Spark may change these from one version to the next.
PRIVATE = re.compile(
    r"""org\.apache\.spark\.(
            sql\.(catalyst|classic|errors|execution|hive|internal)
          | internal
          | network
          | paths
          | util\.Utils
        )\b
      | java\.lang\.reflect\b""",
    re.VERBOSE,
)
# Of those, what Spark's interfaces for data sources and for rules cannot be used without.
PROMISED = re.compile(
    r"""org\.apache\.spark\.sql\.catalyst\.(
            InternalRow                         # the rows of a data source
          | analysis\.\w+Exception              # what a catalog has to throw
          | rules\.Rule                         # what an extension adds
          | plans\.\w+ | plans\.logical\.\w+    # what a rule matches: plans,
          | analysis\.(Resolved|Unresolved)\w+  # names in plans,
          | expressions\.(aggregate\.)?\w+      # and expressions
        )""",
    re.VERBOSE,
)
# These are neither plans nor expressions, whatever their package is called.
AMONG_EXPRESSIONS = {
    f"org.apache.spark.sql.catalyst.expressions.{name}"
    for name in (
        "_",
        "GenericInternalRow",
        "JoinedRow",
        "PredicateHelper",
        "SpecificInternalRow",
        "UnsafeProjection",
        "UnsafeRow",
        "V2ExpressionUtils",
    )
}
# Members that are private to Spark's own packages, of which the adapter is one, by names that nothing else has.
MEMBERS = re.compile(
    r"\b(CatalogManager|CatalogV2Implicits|CatalogV2Util|LookupCatalog|SettingInternals\.conf)\b"
    r"|\.(sessionState|sharedState|queryExecution|getDeclared\w+|setAccessible)\b"
)

# By file, what it names all the same. This list may only become shorter: what a new file needs goes into the folder.
ELSEWHERE: dict[str, set[str]] = {
    "functions/LakeFunctions.scala": {"sql.catalyst.FunctionIdentifier"},
    "rows/FactsInStatements.scala": {"sql.execution.datasources.v2.DataSourceV2Relation"},
    "rows/MergeChecks.scala": {"sql.catalyst.util.RowDeltaUtils"},
    "rows/RowTask.scala": {
        "sql.catalyst.expressions.JoinedRow",
        "sql.catalyst.expressions.SpecificInternalRow",
        "sql.catalyst.expressions.UnsafeProjection",
    },
    "rows/SmallSource.scala": {
        "sql.catalyst.expressions.PredicateHelper",
        "sql.execution.datasources.v2.DataSourceV2Relation",
    },
    "statements/NestedLengths.scala": {"sql.catalyst.trees.TreeNodeTag"},
    "statements/ReadFilled.scala": {"sql.execution.datasources.v2.DataSourceV2Relation"},
    "views/EvolvingViews.scala": {
        "sessionState",
        "sql.catalyst.analysis.SchemaEvolution",
        "sql.catalyst.analysis.SchemaTypeEvolution",
        "sql.catalyst.catalog.CatalogTable",
    },
    "wire/JsonValues.scala": {
        "sql.catalyst.util.ArrayBasedMapData",
        "sql.catalyst.util.ArrayData",
        "sql.catalyst.util.GenericArrayData",
        "sql.catalyst.util.MapData",
    },
    "write/IdentityValues.scala": {
        "sql.catalyst.expressions.JoinedRow",
        "sql.catalyst.expressions.SpecificInternalRow",
        "sql.catalyst.expressions.UnsafeProjection",
    },
    "write/LakeDataWriter.scala": {"sql.catalyst.expressions.UnsafeRow"},
    "write/RowsToReplace.scala": {"sql.catalyst.expressions.V2ExpressionUtils"},
    "write/StreamSinks.scala": {
        "sql.catalyst.streaming.WriteToStream",
        "sql.execution.datasources.v2.DataSourceV2Relation",
    },
}


def code(text: str) -> str:
    """Return Scala without its comments and the contents of its texts, except for what is computed in those."""
    text = re.sub(r'"""(.*?)"""', lambda found: _computed_text(found.group(1)), text, flags=re.DOTALL)
    text = re.sub(r'"((?:\\.|[^"\\\n])*)"', lambda found: _computed_text(found.group(1)), text)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*", " ", text)


def _computed_text(content: str) -> str:
    return '"' + " ".join(re.findall(r"\$\{([^}]*)\}", content)) + '"'


def named_texts(text: str) -> Iterator[str]:
    """Return all full names in `text`: what it imports, and what it names in full elsewhere."""
    remaining_code = code(text)
    for statement in re.findall(r"\bimport\s+(\w+(?:\.\w+)*(?:\.\{[^}]*\})?)", remaining_code):
        package, _, several = statement.partition(".{")
        for name in several.rstrip("}").split(",") if several else [""]:
            yield f"{package}.{name.split('=>')[0].strip()}".rstrip(".")
    remaining_code = re.sub(r"\b(import|package)\s+[^\n]*", " ", remaining_code)
    yield from re.findall(r"\b(?:org\.apache\.spark|java\.lang\.reflect)\.[\w.]+", remaining_code)


def internals(text: str) -> set[str]:
    """Return what `text` names that Spark does not promise to keep, without the beginning that all have in common."""
    names = {
        name
        for name in named_texts(text)
        if PRIVATE.match(name) and (name in AMONG_EXPRESSIONS or not PROMISED.fullmatch(name))
    }
    members = {next(filter(None, match.groups())) for match in MEMBERS.finditer(code(text))}
    return {name.removeprefix("org.apache.spark.") for name in names} | members


def scala() -> dict[str, str]:
    folder = sources()
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.scala"))
    }


def test_only_one_folder_and_the_files_listed_here_name_what_spark_does_not_promise():
    found_internals = {
        name: internals(text)
        for name, text in scala().items()
        if Path(name).parts[0] not in (FOLDER, "versions")
    }
    assert {name: symbols for name, symbols in found_internals.items() if symbols} == ELSEWHERE


def test_the_list_only_becomes_shorter():
    assert len(ELSEWHERE) <= MOST_FILES_ELSEWHERE


def test_no_folder_has_more_files_than_a_reader_can_look_over():
    folders = [Path(name).parent for name in scala()]
    assert {str(folder) for folder in folders if folders.count(folder) > MOST_FILES_IN_A_FOLDER} == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import org.apache.spark.sql.execution.SparkPlan", {"sql.execution.SparkPlan"}),
        (
            "import org.apache.spark.sql.catalyst.{FunctionIdentifier, InternalRow}",
            {"sql.catalyst.FunctionIdentifier"},
        ),
        (
            "import org.apache.spark.sql.{Row, classic => own}\nimport org.apache.spark.sql.classic.{Dataset => D}",
            {"sql.classic", "sql.classic.Dataset"},
        ),
        ("import org.apache.spark.sql.catalyst.expressions._", {"sql.catalyst.expressions._"}),
        ("import org.apache.spark.sql.catalyst.util._", {"sql.catalyst.util._"}),
        ("  import org.apache.spark.sql.catalyst.plans.logical._", set()),
        ("val a = org.apache.spark.sql.classic.SparkSession.active", {"sql.classic.SparkSession.active"}),
        ("/** See org.apache.spark.sql.internal.SQLConf. */", set()),
        ("// session.sessionState", set()),
        ('s"a ${session.sessionState} b"', {"sessionState"}),
        ('"session.sessionState"', set()),
        ("import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column}", {"CatalogV2Util"}),
        ("import java.lang.reflect.Method", {"java.lang.reflect.Method"}),
        (
            "import org.apache.spark.sql.catalyst.expressions.{Literal, UnsafeProjection}",
            {"sql.catalyst.expressions.UnsafeProjection"},
        ),
        (
            "import org.apache.spark.sql.catalyst.analysis.{NoSuchTableException, Star}",
            {"sql.catalyst.analysis.Star"},
        ),
    ],
)
def test_what_counts(text, found):
    assert internals(text) == found

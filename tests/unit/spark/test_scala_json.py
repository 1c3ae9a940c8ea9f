"""The adapter builds and takes apart JSON in `catalog/spark/wire` only; what is free-form there is listed here."""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec
import pytest
from tests.unit.spark.test_internals import code, scala

from programs.wire.structs import by_subject, members

FOLDER = "wire"

JSON = re.compile(
    r"\b(J(?:Array|Bool|Decimal|Double|Int|Long|Nothing|Null|Object|String|Value)|JsonMethods|json4s)\b"
)

# By file, what it names all the same. This list may only become shorter.
ELSEWHERE: dict[str, set[str]] = {}

# Members that hold JSON of any form, as the bridge does not look into it. This list may only become shorter.
FREE = {
    # In Spark's form: a schema, a type.
    "AddColumn.type",
    "ChangesFacts.schema",
    "DeclaredTable.schema",
    "Expression.type",
    "FootersRead.schemas",
    "FootersRead.table_schema",
    "MetadataTable.schema",
    "PrepareTable.schema",
    "ReadFooters.schema",
    "SourceFound.columns",
    "StageTable.schema",
    "TableFacts.schema",
    "FutureTable.schema",
    "UpdateColumnType.type",
    "ViewColumn.type",
    # An engine's own.
    "ViewColumn.metadata",
    # Of the types that a procedure declares.
    "BeginCall.arguments",
    "CallProcedure.arguments",
    "CallPrepare.arguments",
    "CallToken.arguments",
    "ProcedureRequest.arguments",
    "CallRows.rows",
    "CallStep.rows",
    # The request that is in the frame.
    "SentRequest.params",
    "FirstRequest.params",
}


def named() -> dict[str, set[str]]:
    matches = {path: set(JSON.findall(code(text))) for path, text in scala().items()}
    return {path: names for path, names in matches.items() if names}


def test_only_one_folder_names_json():
    elsewhere = {path: names for path, names in named().items() if not path.startswith(f"{FOLDER}/")}
    assert elsewhere == ELSEWHERE
    assert any(path.startswith(f"{FOLDER}/") for path in named())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("import org.json4s.JsonAST.JObject", {"json4s", "JObject"}),
        ('val x = JString("a")', {"JString"}),
        ("/** A JObject. */", set()),
        ('"a JObject"', set()),
    ],
)
def test_names_are_found_in_code(line, names):
    assert set(JSON.findall(code(line))) == names


def test_what_is_free_form_is_listed():
    texts = {
        f"{struct.__name__}.{member.name}"
        for structs in by_subject().values()
        for struct in structs
        for member in members(struct)
        if struct.__name__ not in ("StagedTable", "Token") and is_free(member.type)
    }
    assert texts == FREE


def is_free(annotated: Any) -> bool:
    return annotated in (Any, msgspec.Raw) or any(is_free(part) for part in get_args(annotated))


def test_no_struct_takes_members_that_it_does_not_have():
    structs = [struct for structs in by_subject().values() for struct in structs]
    assert len(structs) > 150
    lenient = [struct.__name__ for struct in structs if not struct.__struct_config__.forbid_unknown_fields]
    assert lenient == []

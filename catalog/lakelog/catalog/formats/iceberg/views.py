"""Views in Iceberg's form: metadata with the query as an engine's SQL. Pure.

Rule: a view is shown only if another catalog's engine understands its query. Queries are not parsed. A query
that may use features that only lakelog has is not plain. Source: the specification of Iceberg's views,
version 1.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lakelog.catalog.choices import METADATA_TABLE_NAMES
from lakelog.catalog.core.schema import ViewDefinition, check_exportable, schema_from_spark
from lakelog.catalog.formats.iceberg.metadata_json import encode, table_uuid
from lakelog.catalog.formats.iceberg.schemas import schema_json
from lakelog.log.errors import Unsupported

DIALECT = "spark"
_QUERY_COLUMNS = "spark.query-column-names"
"""The property in which Iceberg's Spark stores the query's own names of the columns."""

_OWN_COLUMNS = {
    "_file", "_pos", "_row_id", "_version", "_change_type", "_commit_version", "_commit_timestamp",
}  # fmt: skip
_PAST = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
_OWN_TABLE = re.compile(rf"(?:{'|'.join(METADATA_TABLE_NAMES)}|(?:branch|tag)_.+)", re.IGNORECASE)

_NAMES_IN_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
"""The setting by which double quotes enclose a name, and not a text."""
_TOKEN = re.compile(
    r"""
    (?P<skipped>\s+ | --[^\r\n]* | /\*(?:(?!/\*).)*?\*/)
    | (?P<text>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*')
    | (?P<either>"(?:[^"\\]|\\.)*")
    | `(?P<quoted>(?:[^`]|``)*)`
    | (?P<word>\w+)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedView:
    """A view's metadata, and the URL that stands for these bytes. No object is there."""

    url: str
    metadata: bytes


def view_document(
    view: ViewDefinition,
    *,
    name: str,
    id: str,
    location: str,
    version: int,
    time_us: int,
    functions: Collection[str],
) -> ExportedView:
    """Return the metadata of a view.

    `version` of its namespace defined it, and `location` is the namespace's place.

    `functions` are the names of the catalog's functions that its query can use without a namespace. Raises
    Unsupported for a query that is not plain, and for columns that Iceberg has no types for.
    """
    check_plain(view, functions)
    schema = schema_from_spark(
        {
            "fields": [
                {
                    "name": column.name,
                    "type": column.type,
                    "nullable": column.nullable,
                    "metadata": {} if column.comment is None else {"comment": column.comment},
                }
                for column in view.columns
            ],
            "type": "struct",
        }
    )
    check_exportable(schema, f"the view {name} is to be shown")
    view_version: dict[str, Any] = {
        "version-id": version,
        "schema-id": 0,
        "timestamp-ms": time_us // 1000,
        "summary": {"engine-name": DIALECT},
        "representations": [{"type": "sql", "sql": view.text, "dialect": DIALECT}],
        "default-namespace": view.namespace,
    }
    if view.catalog is not None:
        view_version["default-catalog"] = view.catalog
    properties = dict(view.properties)
    if view.query_columns:
        properties[_QUERY_COLUMNS] = ",".join(view.query_columns)
    metadata = encode(
        {
            "view-uuid": table_uuid(id),
            "format-version": 1,
            "location": location,
            "current-version-id": version,
            "versions": [view_version],
            "version-log": [{"timestamp-ms": time_us // 1000, "version-id": version}],
            "schemas": [schema_json(schema, 0)],
            "properties": dict(sorted(properties.items())),
        }
    )
    digest = hashlib.sha256(metadata).hexdigest()[:16]
    return ExportedView(url=f"{location}/metadata/{table_uuid(id)}-{digest}.metadata.json", metadata=metadata)


def check_plain(view: ViewDefinition, functions: Collection[str]) -> None:
    """Raise Unsupported if a query uses, or may use, features that only lakelog's catalog has."""
    for dependency in view.dependencies or ():
        if dependency.function is not None:
            raise _not_plain(f"the function {dependency.function[-1]}")
    if any("," in column for column in view.query_columns):
        raise _not_plain("a column with a comma in its name")
    function_names = {name.lower() for name in functions}
    words = list(_words(view.text, view.configs.get(_NAMES_IN_QUOTES, "false").lower() == "true"))
    upper = [word.upper() for word in words]
    for position, (current_word, next_word) in enumerate(pairwise([*upper, ""])):
        word = words[position].lower()
        previous_word = upper[position - 1] if position else ""
        if current_word in _PAST and upper[position + 1 : position + 3] == ["AS", "OF"]:
            raise _not_plain(f"the past ({current_word} AS OF)")
        if (current_word, next_word) == ("CHANGES", "FROM"):
            raise _not_plain("changes (CHANGES FROM)")
        if (current_word, next_word) == ("/", "*"):
            raise _not_plain("a comment in a comment")
        if (current_word, next_word) == ("IDENTIFIER", "("):
            raise _not_plain("a name that is computed (IDENTIFIER)")
        if (current_word, next_word) == ("WITH", "("):
            raise _not_plain("options of a table (WITH …)")
        if "/" in word and word != "/":
            raise _not_plain(f"the place {words[position]}, or a column of that name")
        # If a table has a column of that name, the metadata column has an additional underscore.
        if word.startswith("_") and f"_{word.lstrip('_')}" in _OWN_COLUMNS:
            raise _not_plain(f"the metadata column {words[position]}, or one of that name")
        if next_word == "(" and (previous_word == "." or word in function_names):
            raise _not_plain(f"the function {words[position]}")
        if previous_word == "." and _OWN_TABLE.fullmatch(words[position]):
            raise _not_plain(f"the metadata table, tag or branch {words[position]}, or a column of that name")


def _not_plain(used: str) -> Unsupported:
    return Unsupported(
        f"its query uses {used}, which readers of Iceberg do not have: read the view by lakelog"
    )


def _words(sql: str, has_names_in_quotes: bool) -> Iterator[str]:
    """Yield the words and marks of a query, names without their backticks, but no texts or comments.

    Raises Unsupported as soon as it is not sure which parts are text, so that no text is scanned repeatedly.
    """
    for token in _TOKEN.finditer(sql):
        if token["quoted"] is not None:
            yield token["quoted"].replace("``", "`")
        elif token["either"] and has_names_in_quotes:
            raise _not_plain(f"names in double quotes ({_NAMES_IN_QUOTES})")
        elif token["mark"] and token["mark"] in "$'\"`":
            raise _not_plain(f"the mark {token['mark']} outside of texts and names")
        elif token["word"] or token["mark"]:
            yield token[0]

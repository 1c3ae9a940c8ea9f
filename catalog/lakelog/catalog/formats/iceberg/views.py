"""Views in Iceberg's form: metadata with the query as an engine's SQL. Pure.

Rule: a view is shown only where another catalog's engine understands its query. Queries are not parsed: one that may
use what lakelog alone has is not plain. Source: the specification of Iceberg's views, version 1.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lakelog.catalog.choices import METADATA_TABLES
from lakelog.catalog.core.schema import ViewDefinition, check_exportable, schema_from_spark
from lakelog.catalog.formats.iceberg.metadata_json import encode, table_uuid
from lakelog.catalog.formats.iceberg.schemas import schema_json
from lakelog.log.errors import Unsupported

DIALECT = "spark"
_QUERY_COLUMNS = "spark.query-column-names"
"""The property by which Iceberg's Spark keeps what the query calls the columns."""

_OWN_COLUMNS = {
    "_file", "_pos", "_row_id", "_version", "_change_type", "_commit_version", "_commit_timestamp",
}  # fmt: skip
_PAST = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
_OWN_TABLE = re.compile(rf"(?:{'|'.join(METADATA_TABLES)}|(?:branch|tag)_.+)", re.IGNORECASE)

_NAMES_IN_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
"""The setting by which what is in double quotes is a name, and no text."""
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
    """A view's metadata, and the URL that stands for these bytes; no object is there."""

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
    """Return the metadata of a view that was defined in a version of its namespace, whose place is `location`.

    `functions` are the names of the catalog's functions that its query can use without a namespace. Unsupported for a
    query that is not plain, and for columns that Iceberg has no types for.
    """
    check_plain(view, functions)
    schema = schema_from_spark(
        {
            "fields": [
                {
                    "name": each.name,
                    "type": each.type,
                    "nullable": each.nullable,
                    "metadata": {} if each.comment is None else {"comment": each.comment},
                }
                for each in view.columns
            ],
            "type": "struct",
        }
    )
    check_exportable(schema, f"the view {name} is to be shown")
    shown: dict[str, Any] = {
        "version-id": version,
        "schema-id": 0,
        "timestamp-ms": time_us // 1000,
        "summary": {"engine-name": DIALECT},
        "representations": [{"type": "sql", "sql": view.text, "dialect": DIALECT}],
        "default-namespace": view.namespace,
    }
    if view.catalog is not None:
        shown["default-catalog"] = view.catalog
    properties = dict(view.properties)
    if view.query_columns:
        properties[_QUERY_COLUMNS] = ",".join(view.query_columns)
    metadata = encode(
        {
            "view-uuid": table_uuid(id),
            "format-version": 1,
            "location": location,
            "current-version-id": version,
            "versions": [shown],
            "version-log": [{"timestamp-ms": time_us // 1000, "version-id": version}],
            "schemas": [schema_json(schema, 0)],
            "properties": dict(sorted(properties.items())),
        }
    )
    digest = hashlib.sha256(metadata).hexdigest()[:16]
    return ExportedView(url=f"{location}/metadata/{table_uuid(id)}-{digest}.metadata.json", metadata=metadata)


def check_plain(view: ViewDefinition, functions: Collection[str]) -> None:
    """Raise Unsupported where a query uses, or may use, what only lakelog's catalog has."""
    for used in view.dependencies or ():
        if used.function is not None:
            raise _not_plain(f"the function {used.function[-1]}")
    if any("," in column for column in view.query_columns):
        raise _not_plain("a column with a comma in its name")
    known = {name.lower() for name in functions}
    words = list(_words(view.text, view.configs.get(_NAMES_IN_QUOTES, "false").lower() == "true"))
    upper = [word.upper() for word in words]
    for position, (here, after) in enumerate(pairwise([*upper, ""])):
        word = words[position].lower()
        before = upper[position - 1] if position else ""
        if here in _PAST and upper[position + 1 : position + 3] == ["AS", "OF"]:
            raise _not_plain(f"the past ({here} AS OF)")
        if (here, after) == ("CHANGES", "FROM"):
            raise _not_plain("changes (CHANGES FROM)")
        if (here, after) == ("/", "*"):
            raise _not_plain("a comment in a comment")
        if (here, after) == ("IDENTIFIER", "("):
            raise _not_plain("a name that is computed (IDENTIFIER)")
        if (here, after) == ("WITH", "("):
            raise _not_plain("options of a table (WITH …)")
        if "/" in word and word != "/":
            raise _not_plain(f"the place {words[position]}, or a column of that name")
        # Where a table has a column of that name, the metadata column has one underscore more.
        if word.startswith("_") and f"_{word.lstrip('_')}" in _OWN_COLUMNS:
            raise _not_plain(f"the metadata column {words[position]}, or one of that name")
        if after == "(" and (before == "." or word in known):
            raise _not_plain(f"the function {words[position]}")
        if before == "." and _OWN_TABLE.fullmatch(words[position]):
            raise _not_plain(f"the metadata table, tag or branch {words[position]}, or a column of that name")


def _not_plain(used: str) -> Unsupported:
    return Unsupported(
        f"its query uses {used}, which readers of Iceberg do not have: read the view by lakelog"
    )


def _words(sql: str, has_names_in_quotes: bool) -> Iterator[str]:
    """Yield the words and marks of a query, names without their backticks; neither texts nor comments.

    Unsupported where it is not sure what is text: at once, so that no text is gone through again and again.
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

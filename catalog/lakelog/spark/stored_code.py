"""Which code that is stored in a warehouse may run in a session: the setting `stored-code` of its catalog.

A client that may write to a namespace can store a function there whose class comes from any jar, or a view that calls
one. The user of it, or of a table with such a default or CHECK, runs that code with all of their own rights. So a
session says what it trusts: `none`; `sql`, what Spark itself computes; `all`, classes too.

Rule: what is refused is refused before Spark sees it, with its author as the log has it. It must not know what Spark
does with a definition: SQL is taken apart into tokens here, and never understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakelog.catalog import Table
from lakelog.catalog.core.schema import Check, Default, FunctionDefinition, ViewDefinition
from lakelog.catalog.core.state import SqlToken, sql_tokens
from lakelog.log.errors import InvalidInput

NONE, SQL, ALL = "none", "sql", "all"
SETTINGS = (NONE, SQL, ALL)
SETTING = "stored-code"

_CALLS_OF_METHODS = frozenset({"reflect", "java_method", "try_reflect"})
_CONSTANTS = frozenset(
    {"null", "true", "false", "date", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "x"}
)


class StoredCodeRefused(InvalidInput):
    """What is stored may not run in this session: read who wrote it, and what the setting `stored-code` allows."""

    kind = "stored-code-refused"
    explained = True


def allowed_from(setting: str) -> str:
    """Return the value of the setting. InvalidInput."""
    if setting not in SETTINGS:
        raise InvalidInput(
            f"the catalog's {SETTING} is {setting}, but the code that may run is one of {', '.join(SETTINGS)}: correct "
            f"spark.sql.catalog.<name>.{SETTING}"
        )
    return setting


def problem_of_function(function: FunctionDefinition, allowed: str) -> str | None:
    """Return why a function may not run, in words that follow its name; None where it may."""
    if allowed == ALL:
        return None
    if function.language != "sql":
        return f"is the class {function.body}, which runs any code"
    # One by one: Spark parses each by itself, and a comment at the end of one would hide the next.
    texts = (function.body, function.parameters or "", function.returns or "", *function.properties.values())
    return _of_settings(function) or _of_texts(texts, allowed)


def problem_of_view(view: ViewDefinition, allowed: str) -> str | None:
    """Return why a view may not be used, in words that follow its name; None where it may."""
    return None if allowed == ALL else _of_settings(view) or _of_texts((view.text,), allowed)


def problem_of_table(table: Table, allowed: str) -> tuple[str, str] | None:
    """Return a text of a table that may not run even when it is read, and why; None where there is none."""
    for what, text in () if allowed == ALL else _texts(table):
        if (name := runs_java(text)) is not None:
            return text, f"has {what} with {name}, which runs any code"
    return None


def computed_by_writes(table: Table, allowed: str) -> tuple[str, str] | None:
    """Return a text of a table that a write would run, and why it may not; None where there is none."""
    if allowed != NONE:
        return None
    return next(
        (
            (text, f"has {what}, which is stored code")
            for what, text in _texts(table)
            if not _is_constant(text)
        ),
        None,
    )


def runs_java(text: str) -> str | None:
    """Return what in a text of SQL runs other code than Spark's: a call of any method, or a program; None for nothing.

    A function that is called by a computed name could be any.
    """
    found = [token for token in sql_tokens(text) if token.kind not in ("space", "comment")]
    for number, token in enumerate(found):
        after = found[number + 1].text if number + 1 < len(found) else ""
        name = token.text.strip('`"').lower()
        if after == "(" and name in _CALLS_OF_METHODS:
            return f"a call of {name}"
        if name == "using" and after and found[number + 1].kind in ("string", "dollars"):
            return "a program that it starts"
        if name == "identifier" and after == "(" and _is_called(found[number + 1 :]):
            return "a call of a function by IDENTIFIER"
    return None


def _is_called(found: list[SqlToken]) -> bool:
    """Whether the brackets that these tokens begin with are followed by others."""
    depth = 0
    for number, token in enumerate(found):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return [each.text for each in found[number + 1 : number + 2]] == ["("]
    return False


def _of_texts(texts: Iterable[str], allowed: str) -> str | None:
    if allowed == NONE:
        return "is stored code"
    name = next((name for text in texts if (name := runs_java(text)) is not None), None)
    return None if name is None else f"has {name}, which runs any code"


def _of_settings(definition: FunctionDefinition | ViewDefinition) -> str | None:
    """Return why the settings that a text is analysed with may not be used: one could make Spark run other code, by a
    catalog of any class or by this one with another `stored-code`. Spark itself stores none of these."""
    # Spark takes properties of such names for settings, too.
    named = (key.partition(_SETTING)[2] for key in definition.properties if _SETTING in key)
    foreign = next((key for key in (*definition.configs, *named) if _is_foreign(key)), None)
    return None if foreign is None else f"brings the setting {foreign}, which can run any code"


_SETTING = "sqlConfig."


def _is_foreign(key: str) -> bool:
    return not key.startswith("spark.sql.") or key.startswith("spark.sql.catalog.")


def _texts(table: Table) -> Iterator[tuple[str, str]]:
    for constraint in table.constraints:
        if isinstance(constraint, Check):
            yield f"the CHECK {constraint.name}", constraint.sql
    for path, field in table.schema.walk():
        default = field.default or Default()
        for text in (default.current, default.exists):
            if text is not None:
                yield f"the default of {'.'.join(path)}", text
        if field.generated is not None:
            yield f"the generated column {'.'.join(path)}", field.generated.sql


def _is_constant(text: str) -> bool:
    return all(
        token.kind in ("space", "string", "other_literal") or token.text.lower() in {*_CONSTANTS, "-", "+"}
        for token in sql_tokens(text)
    )


def refused(title: str, problem: str, allowed: str, author: str | None) -> StoredCodeRefused:
    """Return the error of what may not run. `author` is None where the log no longer has it."""
    written = "Its author has expired from the log" if author is None else f"It was written by {author}"
    wanted = ALL if allowed == SQL else f"{SQL} or {ALL}"
    return StoredCodeRefused(
        f"{title} {problem}, and this catalog runs {_RUNS[allowed]} ({SETTING} is {allowed}). {written}. Where "
        f"you trust all who may write there, set spark.sql.catalog.<name>.{SETTING} to {wanted}"
    )


_RUNS = {NONE: "no stored code", SQL: "stored SQL only"}

"""The stored code of a warehouse that may run in a session: the setting `stored-code` of its catalog.

A client that may write to a namespace can store a function there whose class comes from any jar, or a view
that calls it. The user of it, or of a table with such a default or CHECK, runs that code with all of their
own rights. So a session says which code it trusts: `none`, `sql` (code that Spark itself computes), or `all`
(classes too).

Rule: code is refused before Spark sees it, with its author from the log. It must not know how Spark uses a
definition. SQL is split into tokens here, and never understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakelog.catalog import FunctionDefinition, Table, ViewDefinition
from lakelog.catalog.engine import CheckConstraint, SqlToken, sql_tokens
from lakelog.log.errors import InvalidInput

NONE, SQL, ALL = "none", "sql", "all"
SETTINGS = (NONE, SQL, ALL)
SETTING = "stored-code"

_CALLS_OF_METHODS = frozenset({"reflect", "java_method", "try_reflect"})
_CONSTANTS = frozenset(
    {"null", "true", "false", "date", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "x"}
)


class StoredCodeRefused(InvalidInput):
    """Stored code may not run in this session.

    Read who wrote it, and which code the setting `stored-code` allows.
    """

    kind = "stored-code-refused"
    explained = True


def allowed_from(setting: str) -> str:
    """Return the value of the setting. Raises InvalidInput if it has no such value."""
    if setting not in SETTINGS:
        raise InvalidInput(
            f"the catalog's {SETTING} is {setting}, but the code that may run is one of {', '.join(SETTINGS)}: correct "
            f"spark.sql.catalog.<name>.{SETTING}"
        )
    return setting


def problem_of_function(function: FunctionDefinition, allowed: str) -> str | None:
    """Return why a function may not run, in words that follow its name. None if it may."""
    if allowed == ALL:
        return None
    if function.language != "sql":
        return f"is the class {function.body}, which runs any code"
    # Each text is checked on its own, as Spark parses it. A comment at the end of a text would hide the next
    # text.
    texts = (function.body, function.parameters or "", function.returns or "", *function.properties.values())
    return _of_settings(function) or _of_texts(texts, allowed)


def problem_of_view(view: ViewDefinition, allowed: str) -> str | None:
    """Return why a view may not be used, in words that follow its name. None if it may."""
    return None if allowed == ALL else _of_settings(view) or _of_texts((view.text,), allowed)


def problem_of_table(table: Table, allowed: str) -> tuple[str, str] | None:
    """Return a text of a table that may not run even when the table is read, and why.

    None if there is none.
    """
    for text_kind, text in () if allowed == ALL else _texts(table):
        if (name := runs_java(text)) is not None:
            return text, f"has {text_kind} with {name}, which runs any code"
    return None


def computed_by_writes(table: Table, allowed: str) -> tuple[str, str] | None:
    """Return a text of a table that a write would run, and why it may not. None if there is none."""
    if allowed != NONE:
        return None
    return next(
        (
            (text, f"has {text_kind}, which is stored code")
            for text_kind, text in _texts(table)
            if not _is_constant(text)
        ),
        None,
    )


def runs_java(text: str) -> str | None:
    """Return the part of an SQL text that runs code outside of Spark: a call of any method, or a program.

    None if there is none. A function that is called by a computed name could be any function.
    """
    tokens = [token for token in sql_tokens(text) if token.kind not in ("space", "comment")]
    for number, token in enumerate(tokens):
        next_text = tokens[number + 1].text if number + 1 < len(tokens) else ""
        name = token.text.strip('`"').lower()
        if next_text == "(" and name in _CALLS_OF_METHODS:
            return f"a call of {name}"
        if name == "using" and next_text and tokens[number + 1].kind in ("string", "dollars"):
            return "a program that it starts"
        if name == "identifier" and next_text == "(" and _is_called(tokens[number + 1 :]):
            return "a call of a function by IDENTIFIER"
    return None


def _is_called(found: list[SqlToken]) -> bool:
    """Whether other brackets follow the brackets that these tokens begin with."""
    depth = 0
    for number, token in enumerate(found):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return [next_token.text for next_token in found[number + 1 : number + 2]] == ["("]
    return False


def _of_texts(texts: Iterable[str], allowed: str) -> str | None:
    if allowed == NONE:
        return "is stored code"
    name = next((name for text in texts if (name := runs_java(text)) is not None), None)
    return None if name is None else f"has {name}, which runs any code"


def _of_settings(definition: FunctionDefinition | ViewDefinition) -> str | None:
    """Return why the settings that a text is analysed with may not be used.

    A setting could make Spark run other code: by a catalog of any class, or by this catalog with another
    `stored-code`. Spark itself stores no such settings.
    """
    # Spark takes properties of such names for settings, too.
    property_settings = (key.partition(_SETTING)[2] for key in definition.properties if _SETTING in key)
    foreign_setting = next(
        (key for key in (*definition.configs, *property_settings) if _is_foreign(key)), None
    )
    return (
        None if foreign_setting is None else f"brings the setting {foreign_setting}, which can run any code"
    )


_SETTING = "sqlConfig."


def _is_foreign(key: str) -> bool:
    return not key.startswith("spark.sql.") or key.startswith("spark.sql.catalog.")


def _texts(table: Table) -> Iterator[tuple[str, str]]:
    for constraint in table.constraints:
        if isinstance(constraint, CheckConstraint):
            yield f"the CHECK {constraint.name}", constraint.sql
    for path, field in table.schema.walk():
        if field.default is not None and field.default.current is not None:
            yield f"the default of {'.'.join(path)}", field.default.current
        if field.generated is not None:
            yield f"the generated column {'.'.join(path)}", field.generated.sql


def _is_constant(text: str) -> bool:
    return all(
        token.kind in ("space", "string", "other_literal") or token.text.lower() in {*_CONSTANTS, "-", "+"}
        for token in sql_tokens(text)
    )


def refused(title: str, problem: str, allowed: str, author: str | None) -> StoredCodeRefused:
    """Return the error for code that may not run. `author` is None if the log no longer has it."""
    author_sentence = (
        "Its author has expired from the log" if author is None else f"It was written by {author}"
    )
    needed_setting = ALL if allowed == SQL else f"{SQL} or {ALL}"
    return StoredCodeRefused(
        f"{title} {problem}, and this catalog runs {_RUNS[allowed]} ({SETTING} is {allowed}). {author_sentence}. Where "
        f"you trust all who may write there, set spark.sql.catalog.<name>.{SETTING} to {needed_setting}"
    )


_RUNS = {NONE: "no stored code", SQL: "stored SQL only"}

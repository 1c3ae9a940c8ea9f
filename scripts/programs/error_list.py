"""The site's page of errors: every message of lakelog's errors, read from the code. The repository does not keep it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from lakelog.cli.explanations import EXPLANATIONS
from programs.python_errors import ErrorClass, Message, PythonErrors
from programs.scala_errors import scala_messages

TOP = Path(__file__).parents[2]
PYTHON = ("log/lakelog", "catalog/lakelog", "scripts/lakelog")
SCALA = "catalog/spark"

HEAD = """\
# Errors

Every error that lakelog raises on purpose is a `LakelogError`. Its class says what a caller does next. Its `kind` is
stable and made for programs. Its message says what happened, to which object, and the next step. This page is
generated from the code.

`lakelog explain KIND` says what to do about a kind where there is no network. Errors whose message does not say all end
by that command: in the command's output, in Spark, and below the traceback in Python, where the exception's own text
stays as it is.

In a message, `{name}` and `…` stand for what is put in at run time. Not listed are texts that are put together
elsewhere than where the error is made, such as the reason in a commit's conflict; errors of the command line's options;
and assertions, which are bugs.
"""

SPARK_HEAD = """\
## In Spark

Spark's users meet these errors as Spark's own exceptions. A missing table is a `NoSuchTableException`, and a name that
is taken a `TableAlreadyExistsException`. Any other statement that cannot work as it stands is an `AnalysisException`.
What is not supported is an `UnsupportedOperationException`. Conflicts and failures of a store are
`QueryExecutionException`s.

The adapter itself has the messages below, found by a scan of its Scala sources for text in the calls that make an
error. Errors for which Spark has the text, such as `PARSE_SYNTAX_ERROR`, are not among them.
"""


@cache
def page() -> str:
    """Return the page for the code as it is now."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    errors = PythonErrors(TOP, PYTHON)
    messages = errors.messages()
    yield HEAD
    kinds = list(dict.fromkeys(error.kind for error in errors.classes))
    yield "| kind | class | it is a |"
    yield "|---|---|---|"
    for error in errors.classes:
        yield f"| [{error.kind}](#{error.kind}) | `{error.name}` | {f'`{error.base}`' if error.base else ''} |"
    yield ""
    for kind in kinds:
        yield f"## {kind}"
        yield ""
        for error in errors.classes:
            if error.kind == kind:
                yield from _class_lines(error)
        yield EXPLANATIONS[kind].strip()
        yield ""
        yield from _message_lines([message for message in messages if message.kind == kind])
    yield SPARK_HEAD
    for exception, group in groupby(scala_messages(TOP, SCALA), key=lambda message: message.kind):
        yield f"### {exception}"
        yield ""
        yield from _message_lines(list(group))


def _class_lines(error: ErrorClass) -> Iterator[str]:
    yield f"`{error.module}.{error.name}`: {' '.join(error.docstring.split())}"
    yield ""


def _message_lines(messages: Sequence[Message]) -> Iterator[str]:
    for room, group in groupby(messages, key=lambda message: message.room):
        yield f"{room}:"
        yield ""
        yield from (f"- {_code(message.text)}" for message in group)
        yield ""


def _code(text: str) -> str:
    """Return the text as a span of code, even if it contains backticks."""
    if "`" not in text:
        return f"`{text}`"
    return f"`` {text} ``"

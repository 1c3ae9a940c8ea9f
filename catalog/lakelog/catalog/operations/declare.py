"""The form of a declaration: an operation, its parameters, and the columns of its answer.

Rule: a text is written once, and fits a command line, a CALL and a page. So it names no option and says no
NULL. The meaning of an omitted parameter stands in `unset`. It must not know how a command or a procedure is
made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any

DRY_RUN = "dry_run"


class OperationEffect(Enum):
    """The effect of an operation on data. The value is its sentence in the page of reference."""

    READS = "It reads, and changes no data."
    ADDS = "It adds data, and nothing is lost: it acts at once."
    REWRITES = "It rewrites files, and no row changes by that: it acts at once."
    DELETES = "It deletes, or lets vacuum delete: it only reports, unless a call says otherwise."


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """An argument that a call may give by name or position.

    `type` and `default` are in Spark's SQL. Without a default the parameter is required. If the default is
    NULL, `unset` says its meaning, and is the default of the option.

    On the command line a required parameter is an argument, and any other is an option. `option` is its
    spelling if that is not the name. A required parameter with an `option` is an option, too. `metavar` says
    how a value is written: AGE, SIZE, SHARE, N, TABLE, PEM, or any other word for a text. If it is not
    `in_command`, only the procedure has it.
    """

    name: str
    type: str
    comment: str
    default: str | None = None
    unset: str | None = None
    option: str | None = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    in_command: bool = True

    @property
    def nullable(self) -> bool:
        """Whether NULL has a meaning, because it is the default.

        Elsewhere it is refused, so that a `dry_run` that is neither true nor false is not taken for false.
        """
        return self.default == "NULL"

    @property
    def text(self) -> str:
        """Return the text that people read in SQL."""
        return self.comment if self.unset is None else f"{self.comment}; NULL: {self.unset}"


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of the answer.

    The value is the member `member` (by default, `name`) of the catalog's result.
    """

    name: str
    type: str
    comment: str = ""
    member: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOperation:
    """An operation, for the procedure `name`, and for the command `command` (by default, `name` with
    hyphens).

    `summary` is one sentence. `details` are paragraphs that the command's help shows after it.
    """

    name: str
    summary: str
    effect: OperationEffect
    parameters: tuple[OperationParameter, ...] = ()
    columns: tuple[AnswerColumn, ...] = ()
    details: str = ""
    command: str = ""

    @property
    def command_name(self) -> str:
        return self.command or self.name.replace("_", "-")

    @property
    def has_scope(self) -> bool:
        """Whether it is about a table, a namespace, or all of the warehouse."""
        return SCOPE[0] in self.parameters and SCOPE[1] in self.parameters

    def rows(self, found: Iterable[Any]) -> list[Sequence[Any]]:
        """Return a row of the answer for each result of the catalog."""
        members = [attrgetter(column.member or column.name) for column in self.columns]
        return [[member(result) for member in members] for result in found]


def optional(name: str, type: str, comment: str, unset: str | None = None, **more: Any) -> OperationParameter:
    """Declare a parameter that is NULL by default."""
    return OperationParameter(name, type, comment, "NULL", unset, **more)


def text(name: str, comment: str, unset: str | None = None, metavar: str | None = None) -> OperationParameter:
    """Declare a text that is NULL by default."""
    return optional(name, "STRING", comment, unset, metavar=metavar)


def size(name: str, comment: str, unset: str) -> OperationParameter:
    """Declare a number of bytes that is NULL by default: 500MB or 20GB on a command line."""
    return optional(name, "BIGINT", comment, unset, metavar="SIZE")


def flag(name: str, comment: str, **more: Any) -> OperationParameter:
    """Declare a parameter that is false by default."""
    return OperationParameter(name, "BOOLEAN", comment, "false", **more)


def age(name: str, comment: str, unset: str, **more: Any) -> OperationParameter:
    """Declare a span of time: 90s, 30m, 12h, 7d or 2w on a command line."""
    return optional(name, "INTERVAL DAY TO SECOND", comment, unset, metavar="AGE", **more)


TABLE = OperationParameter("table", "STRING", "the table", metavar="TABLE")
SCOPE = (
    text("table", "one table", "all of the namespace"),
    text("namespace", "all of a namespace", "the table, or the whole catalog"),
)
"""A call gives at most one of these. On the command line they are the same argument."""

WHERE = text("where", "only files that may have rows that match", "all", "CONDITION")
REPORTS_FIRST = OperationParameter(DRY_RUN, "BOOLEAN", "only report what would be done", "true")
ACTS_AT_ONCE = OperationParameter(DRY_RUN, "BOOLEAN", "only report what would be done", "false")
"""The two forms of the choice between a report and the deed."""

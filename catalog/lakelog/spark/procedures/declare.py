"""Procedures: a declaration that Spark shows and checks calls against, and the Python that it runs.

Types are Spark's, in SQL's spelling: STRING, INT, BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, INTERVAL DAY TO SECOND,
ARRAY<…> and MAP<STRING, …> of these. On the Python side a time is a number of microseconds since 1970 (UTC),
as everywhere in lakelog, and an interval is a `timedelta`. Only an argument whose default is NULL may be
None. An operation that is a command too is declared in `lakelog.catalog.operations`, and `procedure_of` makes
a procedure from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from lakelog.catalog.operations.declare import DRY_RUN, AnswerColumn, DeclaredOperation, OperationParameter
from lakelog.log.errors import InvalidInput
from lakelog.spark.requests.jobs import AnyJob, AnyResult
from lakelog.spark.requests.procedures import DeclaredColumn, DeclaredParameter, DeclaredProcedure

if TYPE_CHECKING:
    # At run time the first request that needs them imports these, because they take longer than the start.
    from lakelog.catalog import Catalog, Table, Transaction
    from lakelog.catalog.engine import CommitOfTable, Token
    from lakelog.catalog.names import Identifier
    from lakelog.spark.going_calls import CallJobs
    from lakelog.spark.open_transactions import OpenTransactions

__all__ = ["ProcedureCall", "AnswerColumn", "OperationParameter", "SystemProcedure", "Rows", "procedure_of"]

R = TypeVar("R", bound=AnyResult)

Rows: TypeAlias = Iterable[Sequence[Any]]

_IS_DRY_RUN = AnswerColumn(
    DRY_RUN, "BOOLEAN", "true: nothing was changed, this is what would be done with dry_run => false"
)


@dataclass(frozen=True, slots=True)
class ProcedureCall:
    """A CALL.

    `arguments` has a value for every parameter. `catalog` is the session's catalog, or its transaction if it
    has any. Its changes are distinguished by the statement's text and application. `token` makes the change
    happen once, however often the same call is retried. Pass it on to the method that changes something.
    `transaction` is the id of the session's transaction. `result` is the result of the job that the procedure
    has prepared. `jobs` runs other jobs, if the procedure `asks`. `newest_commits` returns the commits to
    tables of the session's last change.
    """

    catalog: Catalog | Transaction
    catalog_name: str
    current_namespace: Identifier
    arguments: Mapping[str, Any]
    open_transactions: OpenTransactions
    token: Token | None = None
    transaction: str | None = None
    result: AnyResult | None = None
    jobs: CallJobs | None = None
    newest_commits: Callable[[], Sequence[CommitOfTable]] = tuple

    def asked(self) -> CallJobs:
        """Return the runner of Spark's jobs, for a procedure that asks for jobs."""
        assert self.jobs is not None, "only procedures that ask for jobs are given them"
        return self.jobs

    def came_of(self, kind: type[R]) -> R:
        """Return the result of the job that the procedure has prepared. It has to be of that kind."""
        assert isinstance(self.result, kind), f"the job's result is {self.result!r}"
        return self.result

    def __getitem__(self, parameter: str) -> Any:
        return self.arguments[parameter]

    def keywords(self, *but: str) -> dict[str, Any]:
        """Return the arguments by name, without some of them.

        A method of the catalog takes them under the same names.
        """
        return {name: value for name, value in self.arguments.items() if name not in but}

    def table(self, parameter: str) -> Identifier:
        """Return the table that an argument names, as in a statement.

        A single part is a name in the current namespace.
        """
        from lakelog.catalog.names import identifier, table_identifier

        if self.arguments[parameter] is None:
            raise InvalidInput(f"the argument {parameter} is NULL: give a name")
        parts = identifier(self.arguments[parameter])
        if len(parts) > 1 and self._is_catalog(parts[0]):
            parts = parts[1:]
        elif len(parts) == 1:
            parts = (*self.current_namespace, *parts)
        return table_identifier(parts)

    def loaded(self, parameter: str) -> Table:
        """Return the table that an argument names, on the tag or branch of its last part, as in a statement."""
        from lakelog.spark.handles import load_named

        return load_named(self.catalog, self.table(parameter))

    def namespace(self, parameter: str) -> Identifier:
        """Return the namespace that an argument names, as in a statement: from the root, whatever the current
        namespace is.

        The root itself has the catalog's name, or is an empty text or NULL.
        """
        from lakelog.catalog.names import identifier

        parts = identifier(self.arguments[parameter] or "")
        return parts[1:] if parts and self._is_catalog(parts[0]) else parts

    def _is_catalog(self, part: str) -> bool:
        # Spark takes only the name of its own catalog in any case.
        return part == self.catalog_name or part.lower() == self.catalog_name == "spark_catalog"


@dataclass(frozen=True, slots=True)
class SystemProcedure:
    """A procedure in the namespace `system`.

    `run` returns the rows of the result, in the order of `columns`.

    `changes` returns the name that the procedure changes first, for the token of its retries. A procedure
    that changes nothing, or that may simply be run again, has none. `session` marks the three procedures that
    open and end the session's transaction. They return its id first. If it is not `in_transaction`, the
    procedure is refused in an open transaction. If Spark has to work on data first, `prepare` returns the job
    for it (see `ProcedureJobs.scala`). `run` then finds the job's result in the call. If its work is
    `in_parts`, it is prepared again after each job, with its result, until there is nothing to do. `run` then
    finds the result of the last job. If it `asks`, Spark runs jobs while the procedure runs, as often as it
    likes. It begins again if the Python process ends, so it goes on from its commits. If it changes `rows` of
    a table, it is refused in a session whose writes go to a branch, unless it names a branch.
    """

    name: str
    description: str
    run: Callable[[ProcedureCall], Rows]
    parameters: tuple[OperationParameter, ...] = ()
    columns: tuple[AnswerColumn, ...] = ()
    changes: Callable[[ProcedureCall], Identifier] | None = None
    session: Literal["begins", "commits", "rolls-back"] | None = None
    in_transaction: bool = True
    prepare: Callable[[ProcedureCall], AnyJob | None] | None = None
    in_parts: bool = False
    asks: bool = False
    rows: bool = False

    @property
    def may_report(self) -> bool:
        """Whether a call chooses between a report and the deed.

        If so, the answer says which of the two it is.
        """
        return any(parameter.name == DRY_RUN for parameter in self.parameters)

    def answer(self, call: ProcedureCall) -> Rows:
        """Return the rows of the result, as it is declared."""
        rows = self.run(call)
        return [(*row, call[DRY_RUN]) for row in rows] if self.may_report else rows

    def declaration(self) -> DeclaredProcedure:
        """Return all facts that Spark needs."""
        return DeclaredProcedure(
            name=self.name,
            description=self.description,
            parameters=tuple(
                DeclaredParameter(name=p.name, type=p.type, default=p.default, comment=p.text)
                for p in self.parameters
            ),
            columns=tuple(
                DeclaredColumn(name=c.name, type=c.type, comment=c.comment)
                for c in (*self.columns, *((_IS_DRY_RUN,) if self.may_report else ()))
            ),
            changes=self.changes is not None,
            session=self.session,
            in_transaction=self.in_transaction,
            job=self.prepare is not None,
            asks=self.asks,
            rows=self.rows,
        )


def procedure_of(
    operation: DeclaredOperation, run: Callable[[ProcedureCall], Rows], **more: Any
) -> SystemProcedure:
    """Return the procedure of an operation that is a command, too. `more` are facts for Spark alone."""
    return SystemProcedure(
        name=operation.name,
        description=operation.summary,
        run=run,
        parameters=operation.parameters,
        columns=operation.columns,
        **more,
    )

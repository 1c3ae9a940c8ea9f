"""What a procedure is: a declaration that Spark shows and checks calls against, and the Python that it runs.

Types are Spark's, in SQL's spelling: STRING, INT, BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, INTERVAL DAY TO SECOND, ARRAY<…>
and MAP<STRING, …> of these. On the Python side a time is a number of microseconds since 1970 (UTC), as everywhere in
lakelog, and an interval one of microseconds. Only an argument whose default is NULL may be None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from lakelog.log.errors import InvalidInput
from lakelog.spark.requests.jobs import AnyJob, AnyResult
from lakelog.spark.requests.procedures import DeclaredColumn, DeclaredParameter, DeclaredProcedure

if TYPE_CHECKING:
    # At run time these are imported by the first request that needs them: they take longer than the start.
    from lakelog.catalog import Catalog, Transaction
    from lakelog.catalog.core.logs import Token
    from lakelog.catalog.names import Identifier
    from lakelog.catalog.newest_commits import CommitOfTable
    from lakelog.catalog.table import Table
    from lakelog.spark.going_calls import Jobs
    from lakelog.spark.open_transactions import OpenTransactions

R = TypeVar("R", bound=AnyResult)

Rows: TypeAlias = Iterable[Sequence[Any]]

DRY_RUN = "dry_run"


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a call may give by name or position. `default` is SQL; without one the parameter is required.

    NULL means something where it is the default, and is refused elsewhere: a `dry_run` that is neither true nor false
    must not be taken for false.
    """

    name: str
    type: str
    comment: str
    default: str | None = None

    @property
    def nullable(self) -> bool:
        return self.default == "NULL"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the result."""

    name: str
    type: str
    comment: str = ""


_ONLY_REPORTED = Column(
    DRY_RUN, "BOOLEAN", "true: nothing was changed, this is what would be done with dry_run => false"
)


@dataclass(frozen=True, slots=True)
class Call:
    """One CALL. `arguments` has a value for every parameter.

    `catalog` is the session's catalog, or its transaction where one is open; its changes are
    distinguished by the statement's text and application. `token` makes the change happen once, however often the
    same call is retried: pass it on to the method that changes something. `transaction` is the id of the session's.
    `result` is what came of the job that the procedure has prepared; `jobs` runs others, of one that `asks`.
    `newest_commits` returns what the session's last change has committed to tables.
    """

    catalog: Catalog | Transaction
    catalog_name: str
    current_namespace: Identifier
    arguments: Mapping[str, Any]
    open_transactions: OpenTransactions
    token: Token | None = None
    transaction: str | None = None
    result: AnyResult | None = None
    jobs: Jobs | None = None
    newest_commits: Callable[[], Sequence[CommitOfTable]] = tuple

    def asked(self) -> Jobs:
        """Return what runs jobs in Spark, of a procedure that asks for them."""
        assert self.jobs is not None, "only procedures that ask for jobs are given them"
        return self.jobs

    def came_of(self, kind: type[R]) -> R:
        """Return the result of the job, which is of that kind, as its procedure has prepared it."""
        assert isinstance(self.result, kind), f"the job's result is {self.result!r}"
        return self.result

    def __getitem__(self, parameter: str) -> Any:
        return self.arguments[parameter]

    def table(self, parameter: str) -> Identifier:
        """Return the table that an argument names, as Spark takes a table's name in a statement: one part by itself is
        of the current namespace."""
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
        """Return the table that an argument names, on the tag or branch that its last part says, as in a statement."""
        from lakelog.spark.handles import load_named

        return load_named(self.catalog, self.table(parameter))

    def namespace(self, parameter: str) -> Identifier:
        """Return the namespace that an argument names, as Spark takes a namespace's name in a statement: from the root,
        whatever the current one is. The root itself has the catalog's name; or it is an empty text, or NULL."""
        from lakelog.catalog.names import identifier

        parts = identifier(self.arguments[parameter] or "")
        return parts[1:] if parts and self._is_catalog(parts[0]) else parts

    def _is_catalog(self, part: str) -> bool:
        # Spark takes only the name of its own catalog in any case.
        return part == self.catalog_name or part.lower() == self.catalog_name == "spark_catalog"


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure in the namespace `system`. `run` returns the rows of the result, in the order of `columns`.

    `changes` returns what the procedure changes first, for the token with which it may be retried; one that
    changes nothing, or that may simply be run again, has none. `session` marks the three procedures that open and end
    the session's transaction: they return its id first. One that is not `in_transaction` is refused while one is open.

    Where Spark has to work on data first, `prepare` returns the job for it (see `ProcedureJobs.scala`); `run` then
    finds the job's result in the call. One whose work is `in_parts` is prepared again after each job, with its result,
    until there is nothing to do; `run` then finds the result of the last one. One that
    `asks` has Spark run jobs while it runs itself, as often as it likes; it begins again where the Python process ends,
    so it goes on with what was committed. One that changes `rows` of a table is refused in a session whose writes go to
    a branch, unless it names a branch.
    """

    name: str
    description: str
    run: Callable[[Call], Rows]
    parameters: tuple[Parameter, ...] = ()
    columns: tuple[Column, ...] = ()
    changes: Callable[[Call], Identifier] | None = None
    session: Literal["begins", "commits", "rolls-back"] | None = None
    in_transaction: bool = True
    prepare: Callable[[Call], AnyJob | None] | None = None
    in_parts: bool = False
    asks: bool = False
    rows: bool = False

    @property
    def only_reports(self) -> bool:
        """Whether it changes nothing by default: then its answer says which of the two it has done."""
        return any(each.name == DRY_RUN and each.default == "true" for each in self.parameters)

    def answer(self, call: Call) -> Rows:
        """Return the rows of the result, as it is declared."""
        rows = self.run(call)
        return [(*row, call[DRY_RUN]) for row in rows] if self.only_reports else rows

    def declaration(self) -> DeclaredProcedure:
        """Return all that Spark needs to know."""
        return DeclaredProcedure(
            name=self.name,
            description=self.description,
            parameters=tuple(
                DeclaredParameter(name=p.name, type=p.type, default=p.default, comment=p.comment)
                for p in self.parameters
            ),
            columns=tuple(
                DeclaredColumn(name=c.name, type=c.type, comment=c.comment)
                for c in (*self.columns, *((_ONLY_REPORTED,) if self.only_reports else ()))
            ),
            changes=self.changes is not None,
            session=self.session,
            in_transaction=self.in_transaction,
            job=self.prepare is not None,
            asks=self.asks,
            rows=self.rows,
        )

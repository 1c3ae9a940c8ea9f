"""Procedures, and the transactions that some of them begin and end."""

from __future__ import annotations

from typing import Any

from lakelog.catalog import Token
from lakelog.spark.requests.base import (
    Answer,
    CatalogRequest,
    FreeJson,
    Message,
    Path,
    Request,
    UserStatement,
)
from lakelog.spark.requests.jobs import AnyJob, AnyResult


class ListProcedures(CatalogRequest, frozen=True, tag="procedures"):
    """Return the declarations of all procedures."""


class DeclaredParameter(Message, frozen=True, kw_only=True):
    """`type` and `default` are in Spark's SQL."""

    name: str
    type: str
    default: str | None
    comment: str


class DeclaredColumn(Message, frozen=True, kw_only=True):
    """A column of the result."""

    name: str
    type: str
    comment: str


class DeclaredProcedure(Message, frozen=True, kw_only=True):
    """The declaration of a procedure.

    With `changes`, it may be retried by a token only. With `job`, Spark has to work on data first. With
    `asks`, it asks Spark for jobs while it runs, and may be run again after any stop. With `rows`, it changes
    rows that readers of a table see. `session` is its effect on the session's transaction: `begins`,
    `commits`, `rolls-back` or nothing.
    """

    name: str
    description: str
    parameters: tuple[DeclaredParameter, ...]
    columns: tuple[DeclaredColumn, ...]
    changes: bool
    session: str | None
    in_transaction: bool
    job: bool
    asks: bool = False
    rows: bool = False


class ProcedureList(Answer, frozen=True, kw_only=True):
    procedures: tuple[DeclaredProcedure, ...]


class ProcedureRequest(CatalogRequest, frozen=True, kw_only=True):
    """A request about a call of a procedure. The adapter has checked and cast its arguments."""

    procedure: str
    arguments: FreeJson
    catalog_name: str
    current_namespace: Path


class CallToken(ProcedureRequest, frozen=True, tag="call_token"):
    """Return the token of the next call, if the call needs a token."""


class TokenOfCall(Answer, frozen=True, kw_only=True):
    token: Token | None


class CallPrepare(ProcedureRequest, frozen=True, kw_only=True, tag="call_prepare"):
    """Return the job that Spark has to run before the call. `result` is the result of the job before it."""

    result: AnyResult | None = None


class NextJob(Answer, frozen=True, kw_only=True):
    """The next job, or None if nothing is left to do.

    With `again`, the adapter asks for another job after it.
    """

    job: AnyJob | None
    again: bool = False


class CommitMade(Message, frozen=True, kw_only=True):
    """A commit that a request has made, in the log at that place."""

    location: str
    version: int
    commit_id: str


class CallProcedure(ProcedureRequest, frozen=True, kw_only=True, tag="call"):
    """Run a procedure.

    `result` is the result of its job. `commits` are the session's last commits, if the procedure is about
    these.
    """

    token: Token | None
    result: AnyResult | None = None
    query: UserStatement | None = None
    commits: tuple[CommitMade, ...] = ()


class BeginCall(ProcedureRequest, frozen=True, kw_only=True, tag="begin_call"):
    """Run a procedure that asks for jobs, up to the first job."""

    query: UserStatement | None = None


class GoOnCall(CatalogRequest, frozen=True, kw_only=True, tag="go_on_call"):
    """Go on with a call, by the `result` of its job, or the reason why it `failed`."""

    going: str
    result: AnyResult | None = None
    failed: str | None = None
    cancelled: bool = False
    query: UserStatement | None = None


class CallFiles(CatalogRequest, frozen=True, kw_only=True, tag="call_files"):
    """Return the files of a call's job, as an Arrow stream."""

    going: str


class CallStep(Answer, frozen=True, kw_only=True):
    """The job that the call `going` waits for, or the rows of its result at the end."""

    going: str | None = None
    job: AnyJob | None = None
    rows: tuple[tuple[Any, ...], ...] | None = None


class CallRows(Answer, frozen=True, kw_only=True):
    """The rows of the result, each with a value for every column."""

    rows: tuple[tuple[Any, ...], ...]


class TransactionToken(Request, frozen=True, kw_only=True, tag="transaction_token"):
    """Return the token for the commit of a transaction, before the commit is requested."""

    transaction: str


class AbandonTransaction(Request, frozen=True, kw_only=True, tag="abandon_transaction"):
    """Roll back the transaction of a session that is gone."""

    transaction: str

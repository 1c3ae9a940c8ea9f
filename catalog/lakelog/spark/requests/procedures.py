"""Procedures, and the transactions that some of them begin and end."""

from __future__ import annotations

from typing import Any

from lakelog.catalog.core.logs import Token
from lakelog.spark.requests.base import Answer, FreeJson, InCatalog, Message, Path, Request, Statement
from lakelog.spark.requests.jobs import AnyJob, AnyResult


class ListProcedures(InCatalog, frozen=True, tag="procedures"):
    """How all procedures are declared."""


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
    """`changes`: it may be retried by a token only; `job`: Spark has to work on data first; `asks`: it asks Spark for
    jobs while it runs, and may be run again wherever it was stopped; `rows`: it changes rows that readers of a table
    see.

    `session` says what it does with the session's transaction: `begins`, `commits`, `rolls-back` or nothing.
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


class Procedures(Answer, frozen=True, kw_only=True):
    procedures: tuple[DeclaredProcedure, ...]


class OfProcedure(InCatalog, frozen=True, kw_only=True):
    """About a call of a procedure, whose arguments the adapter has checked and cast."""

    procedure: str
    arguments: FreeJson
    catalog_name: str
    current_namespace: Path


class CallToken(OfProcedure, frozen=True, tag="call_token"):
    """The token of a call that is about to be made, if it needs one."""


class TokenOfCall(Answer, frozen=True, kw_only=True):
    token: Token | None


class CallPrepare(OfProcedure, frozen=True, kw_only=True, tag="call_prepare"):
    """The job that Spark has to run before the call; `result` is what came of the one before."""

    result: AnyResult | None = None


class Job(Answer, frozen=True, kw_only=True):
    """`again`: there may be another one after this, so it is asked for once more. None: nothing is left to be done."""

    job: AnyJob | None
    again: bool = False


class CommitMade(Message, frozen=True, kw_only=True):
    """A commit that a request has made, in the log at that place."""

    location: str
    version: int
    commit_id: str


class Call(OfProcedure, frozen=True, kw_only=True, tag="call"):
    """Run a procedure; `result` is what came of its job, and `commits` are what the session has committed last, where
    the procedure is about that."""

    token: Token | None
    result: AnyResult | None = None
    query: Statement | None = None
    commits: tuple[CommitMade, ...] = ()


class BeginCall(OfProcedure, frozen=True, kw_only=True, tag="begin_call"):
    """Run a procedure that asks for jobs, up to the first one."""

    query: Statement | None = None


class GoOnCall(InCatalog, frozen=True, kw_only=True, tag="go_on_call"):
    """Go on with a call by what came of its job: its `result`, or why it `failed`."""

    going: str
    result: AnyResult | None = None
    failed: str | None = None
    cancelled: bool = False
    query: Statement | None = None


class CallFiles(InCatalog, frozen=True, kw_only=True, tag="call_files"):
    """The files that the job of a call is about, as an Arrow stream."""

    going: str


class Step(Answer, frozen=True, kw_only=True):
    """The job for which the call `going` waits; or the rows of its result, at the end."""

    going: str | None = None
    job: AnyJob | None = None
    rows: tuple[tuple[Any, ...], ...] | None = None


class Rows(Answer, frozen=True, kw_only=True):
    """The rows of the result, each with a value for every column."""

    rows: tuple[tuple[Any, ...], ...]


class TransactionToken(Request, frozen=True, kw_only=True, tag="transaction_token"):
    """The token for the commit of a transaction, before the commit is requested."""

    transaction: str


class AbandonTransaction(Request, frozen=True, kw_only=True, tag="abandon_transaction"):
    """Roll back the transaction of a session that is gone."""

    transaction: str

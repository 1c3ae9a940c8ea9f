"""Procedures (see `lakelog.spark.procedures`), and the transactions that some of them begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakelog.catalog.core.logs import Token
from lakelog.log import NotedCommit
from lakelog.log.errors import InvalidInput, NotFound
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.going_calls import JobFailed
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.procedures import Call, Procedure, all_procedures
from lakelog.spark.requests import procedures as ask
from lakelog.spark.requests.base import Done
from lakelog.spark.requests.jobs import AnyResult


def list_procedures(at: OpenCatalog, asked: ask.ListProcedures) -> ask.Procedures:
    return ask.Procedures(procedures=tuple(each.declaration() for each in all_procedures().values()))


def make_token(at: OpenCatalog, asked: ask.CallToken) -> ask.TokenOfCall:
    procedure = _procedure(asked)
    if procedure.changes is None:
        return ask.TokenOfCall(token=None)
    call = _call(at, procedure, asked)
    return ask.TokenOfCall(token=call.catalog.token(procedure.changes(call)))


def prepare(at: OpenCatalog, asked: ask.CallPrepare) -> ask.Job:
    procedure = _procedure(asked)
    assert procedure.prepare is not None, "only procedures with a job are prepared"
    job = procedure.prepare(_call(at, procedure, asked, result=asked.result))
    return ask.Job(job=job, again=procedure.in_parts and job is not None)


def run(at: OpenCatalog, asked: ask.Call) -> ask.Rows:
    procedure = _procedure(asked)
    rows = procedure.answer(_call(at, procedure, asked, asked.token, asked.result, asked.commits))
    return ask.Rows(rows=tuple(tuple(row) for row in rows))


def begin(at: OpenCatalog, asked: ask.BeginCall) -> ask.Step:
    procedure = _procedure(asked)
    assert procedure.asks, "only procedures that ask for jobs go on"
    call = _call(at, procedure, asked)
    return _step(*at.going_calls.begin(lambda jobs: procedure.answer(replace(call, jobs=jobs))))


def go_on(at: OpenCatalog, asked: ask.GoOnCall) -> ask.Step:
    if asked.failed is not None:
        came: AnyResult | JobFailed = JobFailed(asked.failed, cancelled=asked.cancelled)
    else:
        assert asked.result is not None, "a job has a result, or it has failed"
        came = asked.result
    return _step(*at.going_calls.go_on(asked.going, came))


def files(at: OpenCatalog, asked: ask.CallFiles) -> tuple[Done, Beside]:
    found = at.going_calls.get(asked.going).files
    assert found is not None, "the job has files"
    return Done(), files_in_arrow(found)


def _step(going: str | None, asked: Any) -> ask.Step:
    if going is None:
        return ask.Step(rows=tuple(tuple(row) for row in asked))
    return ask.Step(going=going, job=asked)


def transaction_token(at: OpenCatalog, asked: ask.TransactionToken) -> Token:
    return at.open_transactions.get(asked.transaction).transaction.commit_token()


def abandon_transaction(at: OpenCatalog, asked: ask.AbandonTransaction) -> Done:
    at.open_transactions.abandon(asked.transaction)
    return Done()


def _procedure(asked: ask.OfProcedure) -> Procedure:
    procedure = all_procedures().get(asked.procedure)
    if procedure is None:
        raise NotFound(f"there is no procedure {asked.procedure}")
    return procedure


def _call(
    at: OpenCatalog,
    procedure: Procedure,
    asked: ask.OfProcedure,
    token: Token | None = None,
    result: AnyResult | None = None,
    commits: Sequence[ask.CommitMade] = (),
) -> Call:
    """Return a call of a procedure."""
    for parameter in procedure.parameters:
        if not parameter.nullable and asked.arguments.get(parameter.name) is None:
            instead = "give a value" if parameter.default is None else "give a value, or leave it out"
            raise InvalidInput(f"the argument {parameter.name} of {procedure.name} is NULL: {instead}")
    return Call(
        catalog=at.of(asked.transaction) if procedure.session is None else at.outside,
        catalog_name=asked.catalog_name,
        current_namespace=asked.current_namespace,
        arguments=asked.arguments,
        open_transactions=at.open_transactions,
        token=token,
        transaction=asked.transaction,
        result=result,
        newest_commits=lambda: at.outside.newest_commits(
            [NotedCommit(each.location, each.version, each.commit_id) for each in commits]
        ),
    )

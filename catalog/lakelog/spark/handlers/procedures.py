"""Procedures (see `lakelog.spark.procedures`), and the transactions that some of them begin and end."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakelog.catalog import Token, engine
from lakelog.log import NotedCommit
from lakelog.log.errors import InvalidInput, NotFound
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.going_calls import JobFailed
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.procedures import ProcedureCall, SystemProcedure, all_procedures
from lakelog.spark.requests import procedures as ask
from lakelog.spark.requests.base import EmptyAnswer
from lakelog.spark.requests.jobs import AnyResult


def list_procedures(at: ServedCatalog, asked: ask.ListProcedures) -> ask.ProcedureList:
    return ask.ProcedureList(
        procedures=tuple(procedure.declaration() for procedure in all_procedures().values())
    )


def make_token(at: ServedCatalog, asked: ask.CallToken) -> ask.TokenOfCall:
    procedure = _procedure(asked)
    if procedure.changes is None:
        return ask.TokenOfCall(token=None)
    call = _call(at, procedure, asked)
    return ask.TokenOfCall(token=call.catalog.token(procedure.changes(call)))


def prepare(at: ServedCatalog, asked: ask.CallPrepare) -> ask.NextJob:
    procedure = _procedure(asked)
    assert procedure.prepare is not None, "only procedures with a job are prepared"
    job = procedure.prepare(_call(at, procedure, asked, result=asked.result))
    return ask.NextJob(job=job, again=procedure.in_parts and job is not None)


def run(at: ServedCatalog, asked: ask.CallProcedure) -> ask.CallRows:
    procedure = _procedure(asked)
    rows = procedure.answer(_call(at, procedure, asked, asked.token, asked.result, asked.commits))
    return ask.CallRows(rows=tuple(tuple(row) for row in rows))


def begin(at: ServedCatalog, asked: ask.BeginCall) -> ask.CallStep:
    procedure = _procedure(asked)
    assert procedure.asks, "only procedures that ask for jobs go on"
    call = _call(at, procedure, asked)
    return _step(*at.going_calls.begin(lambda jobs: procedure.answer(replace(call, jobs=jobs))))


def go_on(at: ServedCatalog, asked: ask.GoOnCall) -> ask.CallStep:
    if asked.failed is not None:
        result: AnyResult | JobFailed = JobFailed(asked.failed, cancelled=asked.cancelled)
    else:
        assert asked.result is not None, "a job has a result, or it has failed"
        result = asked.result
    return _step(*at.going_calls.go_on(asked.going, result))


def files(at: ServedCatalog, asked: ask.CallFiles) -> tuple[EmptyAnswer, Beside]:
    job_files = at.going_calls.get(asked.going).files
    assert job_files is not None, "the job has files"
    return EmptyAnswer(), files_in_arrow(job_files)


def _step(going: str | None, asked: Any) -> ask.CallStep:
    if going is None:
        return ask.CallStep(rows=tuple(tuple(row) for row in asked))
    return ask.CallStep(going=going, job=asked)


def transaction_token(at: ServedCatalog, asked: ask.TransactionToken) -> Token:
    return engine.commit_token(at.open_transactions.get(asked.transaction).transaction)


def abandon_transaction(at: ServedCatalog, asked: ask.AbandonTransaction) -> EmptyAnswer:
    at.open_transactions.abandon(asked.transaction)
    return EmptyAnswer()


def _procedure(asked: ask.ProcedureRequest) -> SystemProcedure:
    procedure = all_procedures().get(asked.procedure)
    if procedure is None:
        raise NotFound(f"there is no procedure {asked.procedure}")
    return procedure


def _call(
    at: ServedCatalog,
    procedure: SystemProcedure,
    asked: ask.ProcedureRequest,
    token: Token | None = None,
    result: AnyResult | None = None,
    commits: Sequence[ask.CommitMade] = (),
) -> ProcedureCall:
    """Return a call of a procedure."""
    arguments = dict(asked.arguments)
    for parameter in procedure.parameters:
        value = arguments.get(parameter.name)
        if value is not None and parameter.type.startswith("INTERVAL"):
            arguments[parameter.name] = dt.timedelta(microseconds=value)
        if not parameter.nullable and value is None:
            advice = "give a value" if parameter.default is None else "give a value, or leave it out"
            raise InvalidInput(f"the argument {parameter.name} of {procedure.name} is NULL: {advice}")
    return ProcedureCall(
        catalog=at.of(asked.transaction) if procedure.session is None else at.outside,
        catalog_name=asked.catalog_name,
        current_namespace=asked.current_namespace,
        arguments=arguments,
        open_transactions=at.open_transactions,
        token=token,
        transaction=asked.transaction,
        result=result,
        newest_commits=lambda: engine.newest_commits(
            at.outside, [NotedCommit(commit.location, commit.version, commit.commit_id) for commit in commits]
        ),
    )

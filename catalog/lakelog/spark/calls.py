"""The bridge's requests about procedures and transactions (see `lakelog.spark.procedures`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lakelog.log.errors import InvalidInput, NotFound
from lakelog.spark.catalogs import Catalogs
from lakelog.spark.procedures import Call, Procedure, all_procedures

Params = Mapping[str, Any]


def declarations() -> Params:
    return {"procedures": [procedure.declaration() for procedure in all_procedures().values()]}


def token(catalogs: Catalogs, params: Params) -> Params:
    """Answer the token of a call that is about to be made, as `{"token": …}`; null for one that changes nothing."""
    procedure = _procedure(params)
    made = None
    if procedure.changes is not None:
        call = _call(catalogs, procedure, params)
        made = msgspec.to_builtins(call.catalog.token(procedure.changes(call)))
    return {"token": made}


def run(catalogs: Catalogs, params: Params) -> Params:
    """Run a procedure; answer the rows of its result. The adapter has checked and cast the arguments."""
    procedure = _procedure(params)
    return {"rows": [list(row) for row in procedure.run(_call(catalogs, procedure, params))]}


def prepare(catalogs: Catalogs, params: Params) -> Params:
    """Answer the job that Spark has to run before the procedure is run."""
    procedure = _procedure(params)
    assert procedure.prepare is not None, "only procedures with a job are prepared"
    return {"job": procedure.prepare(_call(catalogs, procedure, params))}


def _procedure(params: Params) -> Procedure:
    procedure = all_procedures().get(params["procedure"])
    if procedure is None:
        raise NotFound(f"there is no procedure {params['procedure']}")
    return procedure


def _call(catalogs: Catalogs, procedure: Procedure, params: Params) -> Call:
    from lakelog.catalog.logs import Token

    for parameter in procedure.parameters:
        if not parameter.nullable and params["arguments"].get(parameter.name) is None:
            instead = "give a value" if parameter.default is None else "give a value, or leave it out"
            raise InvalidInput(f"the argument {parameter.name} of {procedure.name} is NULL: {instead}")
    given = params.get("token")
    return Call(
        catalog=catalogs.of(params) if procedure.session is None else catalogs.outside,
        catalog_name=params["catalog_name"],
        current_namespace=tuple(params["current_namespace"]),
        arguments=params["arguments"],
        open_transactions=catalogs.open_transactions,
        token=None if given is None else msgspec.convert(given, Token),
        transaction=params.get("transaction"),
        result=params.get("result"),
    )


def transaction_token(catalogs: Catalogs, params: Params) -> Params:
    """Answer the token of the commit that is about to be asked for."""
    opened = catalogs.open_transactions.get(params["transaction"])
    made: Params = msgspec.to_builtins(opened.transaction.commit_token())
    return made


def abandon_transaction(catalogs: Catalogs, params: Params) -> Params:
    """Roll back the transaction of a session that is gone."""
    opened = catalogs.open_transactions.find(params["transaction"])
    if opened is not None:
        catalogs.open_transactions.remove(opened.id)
        if opened.transaction.is_open:
            opened.transaction.rollback()
    return {}

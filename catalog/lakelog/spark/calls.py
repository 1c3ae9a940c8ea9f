"""The bridge's requests about procedures and transactions (see `lakelog.spark.procedures`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lakelog.log.errors import NotFound
from lakelog.spark.catalogs import Catalogs
from lakelog.spark.procedures import Call, all_procedures

Params = Mapping[str, Any]


def declarations() -> Params:
    return {"procedures": [procedure.declaration() for procedure in all_procedures().values()]}


def run(catalogs: Catalogs, params: Params) -> Params:
    """Run a procedure; answer the rows of its result. The adapter has checked and cast the arguments."""
    from lakelog.catalog.commits import Token

    procedure = all_procedures().get(params["procedure"])
    if procedure is None:
        raise NotFound(f"there is no procedure {params['procedure']}")
    ends = procedure.session is not None
    call = Call(
        catalog=catalogs.outside if ends else catalogs.of(params),
        catalog_name=params["catalog_name"],
        current_namespace=tuple(params["current_namespace"]),
        arguments=params["arguments"],
        open_transactions=catalogs.open_transactions,
        token=msgspec.convert(params["token"], Token),
        transaction=params.get("transaction"),
    )
    return {"rows": [list(row) for row in procedure.run(call)]}


def transaction_token(catalogs: Catalogs, params: Params) -> Params:
    """Answer the token of the commit that is about to be asked for."""
    from lakelog.catalog.outcome import token_of

    opened = catalogs.open_transactions.get(params["transaction"])
    made: Params = msgspec.to_builtins(token_of(opened.transaction))
    return made


def abandon_transaction(catalogs: Catalogs, params: Params) -> Params:
    """Roll back the transaction of a session that is gone."""
    opened = catalogs.open_transactions.find(params["transaction"])
    if opened is not None:
        catalogs.open_transactions.remove(opened.id)
        if opened.transaction.is_open:
            opened.transaction.rollback()
    return {}

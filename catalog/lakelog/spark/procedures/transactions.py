"""The transaction of a session: begin, commit, roll back. The adapter sends all of the session's requests into it."""

from __future__ import annotations

from lakelog.catalog import engine
from lakelog.log.errors import StorageError
from lakelog.spark.open_transactions import NotCommitted, lost
from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)

_TRANSACTION = AnswerColumn("transaction", "STRING", "its id, which is the id of its commits too")


def _begin(call: ProcedureCall) -> Rows:
    return [(call.open_transactions.add(call.catalog.begin(call["isolation"])).id,)]


def _commit(call: ProcedureCall) -> Rows:
    """Commit, or find out the outcome of a commit that was requested of a dead process."""
    assert call.transaction is not None and call.token is not None
    open_transaction = call.open_transactions.find(call.transaction)
    if open_transaction is None:
        if not engine.was_committed(call.catalog, call.token):
            raise lost(call.transaction)
        return [(call.transaction,)]
    try:
        open_transaction.transaction.commit()
    except StorageError as error:
        raise NotCommitted(f"{error.message}. Nothing was committed", location=error.location) from error
    finally:
        # Only a commit with an unknown outcome can be retried.
        if not open_transaction.transaction.is_open:
            call.open_transactions.remove(open_transaction.id)
    return [(open_transaction.id,)]


def _roll_back(call: ProcedureCall) -> Rows:
    assert call.transaction is not None
    open_transaction = call.open_transactions.find(call.transaction)
    if open_transaction is not None:
        call.open_transactions.remove(open_transaction.id)
        if open_transaction.transaction.is_open:
            open_transaction.transaction.rollback()
    return [(call.transaction,)]


PROCEDURES = (
    SystemProcedure(
        name="begin_transaction",
        description="Begin a transaction: all statements of this session until its end happen together or not at all.",
        run=_begin,
        parameters=(
            OperationParameter(
                "isolation", "STRING", "snapshot or serializable; NULL: what each table says", default="NULL"
            ),
        ),
        columns=(_TRANSACTION,),
        session="begins",
    ),
    SystemProcedure(
        name="commit_transaction",
        description="Make all changes of this session's transaction visible at one moment, or none of them.",
        run=_commit,
        columns=(_TRANSACTION,),
        session="commits",
    ),
    SystemProcedure(
        name="rollback_transaction",
        description="Discard all changes of this session's transaction.",
        run=_roll_back,
        columns=(_TRANSACTION,),
        session="rolls-back",
    ),
)

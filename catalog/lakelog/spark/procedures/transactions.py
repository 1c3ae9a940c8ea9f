"""The transaction of a session: begin, commit, roll back. The adapter sends all of the session's requests into it."""

from __future__ import annotations

from lakelog.log.errors import StorageError
from lakelog.spark.open_transactions import NotCommitted, lost
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows

_TRANSACTION = Column("transaction", "STRING", "its id, which is the id of its commits too")


def _begin(call: Call) -> Rows:
    return [(call.open_transactions.add(call.catalog.begin(call["isolation"])).id,)]


def _commit(call: Call) -> Rows:
    """Commit, or find out what became of a commit that was requested of a process that died."""
    assert call.transaction is not None and call.token is not None
    opened = call.open_transactions.find(call.transaction)
    if opened is None:
        if not call.catalog.was_committed(call.token):
            raise lost(call.transaction)
        return [(call.transaction,)]
    try:
        opened.transaction.commit()
    except StorageError as error:
        raise NotCommitted(f"{error.message}. Nothing was committed", location=error.location) from error
    finally:
        # After a commit whose outcome is not known, and only then, it can be retried.
        if not opened.transaction.is_open:
            call.open_transactions.remove(opened.id)
    return [(opened.id,)]


def _roll_back(call: Call) -> Rows:
    assert call.transaction is not None
    opened = call.open_transactions.find(call.transaction)
    if opened is not None:
        call.open_transactions.remove(opened.id)
        if opened.transaction.is_open:
            opened.transaction.rollback()
    return [(call.transaction,)]


PROCEDURES = (
    Procedure(
        name="begin_transaction",
        description="Begin a transaction: all statements of this session until its end happen together or not at all.",
        run=_begin,
        parameters=(
            Parameter(
                "isolation", "STRING", "snapshot or serializable; NULL: what each table says", default="NULL"
            ),
        ),
        columns=(_TRANSACTION,),
        session="begins",
    ),
    Procedure(
        name="commit_transaction",
        description="Make all changes of this session's transaction visible at one moment, or none of them.",
        run=_commit,
        columns=(_TRANSACTION,),
        session="commits",
    ),
    Procedure(
        name="rollback_transaction",
        description="Discard all changes of this session's transaction.",
        run=_roll_back,
        columns=(_TRANSACTION,),
        session="rolls-back",
    ),
)

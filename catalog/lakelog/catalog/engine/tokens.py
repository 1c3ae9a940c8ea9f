"""Tokens, by which a repeated request makes its change once, and the outcomes of changes."""

from __future__ import annotations

from typing import Any

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import Token, TransactionLog, new_token
from lakelog.catalog.core.logs import has_happened as in_any_log
from lakelog.catalog.core.logs import was_committed as in_its_logs
from lakelog.catalog.engine.operations import of_catalog
from lakelog.catalog.names import Location, spelled
from lakelog.catalog.transaction import Transaction
from lakelog.log import WriteRef


@of_catalog
def token_at(catalog: CatalogNames, location: Location) -> Token:
    """Return a token for one change of the table at `location` (see `Catalog.token`)."""
    tracked = catalog._logs.table(catalog._logs.location(spelled(location)))
    if tracked.known is None:
        catalog.table_at(location)
    return new_token(catalog._logs, [tracked])


def token_of_write(catalog: CatalogNames, location: Location, write: WriteRef) -> Token:
    """Return the token of a write to the table at `location` whose commit was requested without a token."""
    return Token(commit_id=write.id, bases={catalog._logs.location(spelled(location)): write.version})


@of_catalog
def commit_token(transaction: Transaction) -> Token:
    """Return the token of the commit, for `was_committed`.

    Keep it outside of this process before the commit.
    """
    overlay = transaction._overlay
    every: list[TransactionLog[Any]] = [*overlay.namespaces, *overlay.tables]
    logs = [log for log in every if log.steps and log.creation is None]
    bases = {log.location: log.start.version for log in logs if log.start is not None}
    return Token(commit_id=transaction.commit_id, bases=bases)


@of_catalog
def was_committed(catalog: CatalogNames, token: Token) -> bool:
    """Return whether a transaction happened, by its `commit_token`, after its process has ended.

    Makes about 2 GETs. Settles an undecided transaction first. If it is in a single log, False means that its
    PUT has not arrived yet.
    """
    return in_its_logs(catalog._logs, token)


@of_catalog
def has_happened(catalog: CatalogNames, token: Token) -> bool:
    """Return whether the single change of `token` happened, in any of its logs.

    Makes a few GETs for each log.
    """
    return in_any_log(catalog._logs, token)

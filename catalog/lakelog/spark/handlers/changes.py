"""Changes of a table: which there are, and in which files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog import Table
from lakelog.catalog.core.schema import schema_to_spark
from lakelog.log.errors import NotFound
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.facts import of_table
from lakelog.spark.frames import Beside
from lakelog.spark.handlers.tables import named
from lakelog.spark.handles import on_named
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import changes as ask
from lakelog.spark.requests.base import Done

if TYPE_CHECKING:
    from lakelog.catalog.looking.changelog import Asked, Changelog


def load(at: OpenCatalog, asked: ask.LoadChanges) -> ask.ChangesFacts:
    """Answer the facts of a table as changes of it are read, and which versions' changes these are.

    Unless they end at a version, the answer does not narrow down what the changes include: when Spark loads them
    again for the same plan, there may be more, and a restarted stream has to have the same plan.
    """
    from lakelog.catalog.looking.changelog import Asked, asked_versions, changes_schema

    table = named(at, asked)
    if asked.on is not None:
        table = on_named(table, asked.on.name, asked.on.kind)
    wanted = _wanted(asked)
    first, last = asked_versions(table, wanted or Asked(start_version=1))
    # In a transaction, without what that has changed: this is a version, and is remembered as one.
    newest = table.at(version=table.version)
    end = newest.at(version=last) if 1 <= last < newest.version else newest
    may_carry = may_update = may_repeat = True
    if wanted is not None and wanted.end_version is not None:
        try:
            log = _log(at, asked.transaction, newest, first, last)
            may_carry, may_update, may_repeat = log.may_carry, log.may_update, log.may_repeat
        except NotFound:
            # A stream may have read them before they expired; any other reader gets an error when it reads them.
            pass
    step = at.step(asked.transaction)
    at.handles.remember(end, asked.transaction, past=True, step=step)
    facts = of_table(end, past=True, step=step)
    schema = schema_to_spark(changes_schema(end.schema), internal=True)
    as_changes = {
        **msgspec.structs.asdict(facts),
        "schema": schema,
        "partitioning": (),
        "sort_order": (),
        "clustering": (),
        "constraints": (),
        "estimates": (),
    }
    return ask.ChangesFacts(
        **as_changes,
        first=first,
        last=last,
        end=_end(wanted, last),
        may_carry=may_carry,
        may_update=may_update,
        may_repeat=may_repeat,
    )


def plan(at: OpenCatalog, asked: ask.PlanChanges) -> tuple[Done, Beside]:
    log = _log(at, asked.transaction, at.loaded(asked), asked.first, asked.last)
    return Done(), files_in_arrow(log.plan(asked.predicate))


def _log(at: OpenCatalog, transaction: str | None, table: Table, first: int, last: int) -> Changelog:
    """Return changes, which are requested once for analysis and once to be read."""
    from lakelog.catalog.looking.changelog import Changelog

    key = (transaction, table.location, table.id, table.ref_id, first, last)
    return at.changes.get(key, lambda: Changelog.of(table, first, last))


def _end(wanted: Asked | None, last: int) -> ask.ChangesEnd:
    """Return where a stream of such changes ends, as its requests say it."""
    if wanted is None:
        return ask.ChangesEnd()
    return ask.ChangesEnd(last=None if wanted.end_version is None else last, last_us=wanted.last_us)


def _wanted(asked: ask.LoadChanges) -> Asked | None:
    """Return which changes are requested, None for all that there are."""
    from lakelog.catalog.looking.changelog import Asked

    if not asked.start_latest and (
        asked.start_version is asked.end_version is asked.start_us is asked.end_us is None
    ):
        return None
    return Asked(
        start_version=asked.start_version,
        start_latest=asked.start_latest,
        end_version=asked.end_version,
        start_us=asked.start_us,
        end_us=asked.end_us,
        with_start=asked.with_start,
        with_end=asked.with_end,
    )

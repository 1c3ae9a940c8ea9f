"""Changes of a table: their versions, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog import Table
from lakelog.catalog.engine import schema_to_spark
from lakelog.log.errors import NotFound
from lakelog.spark.arrow_streams import files_in_arrow
from lakelog.spark.facts import of_table
from lakelog.spark.frames import Beside
from lakelog.spark.handlers.tables import named
from lakelog.spark.handles import on_named
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import changes as ask
from lakelog.spark.requests.base import EmptyAnswer

if TYPE_CHECKING:
    from lakelog.catalog.looking.changelog import Changelog, ChangeRange


def load(at: ServedCatalog, asked: ask.LoadChanges) -> ask.ChangesFacts:
    """Return the facts of a table for reading its changes, and the versions of the changes.

    Unless they end at a version, the answer does not limit the kinds of changes. If Spark loads them again
    for the same plan, there may be more, and a restarted stream has to have the same plan.
    """
    from lakelog.catalog.looking.changelog import ChangeRange, asked_versions, changes_schema

    table = named(at, asked)
    if asked.on is not None:
        table = on_named(table, asked.on.name, asked.on.kind)
    requested_range = _wanted(asked)
    first, last = asked_versions(table, requested_range or ChangeRange(start_version=1))
    # In a transaction, this is without the transaction's changes. It is a version, and is remembered as a
    # version.
    newest = table.at(version=table.version)
    end = newest.at(version=last) if 1 <= last < newest.version else newest
    may_carry = may_update = may_repeat = True
    if requested_range is not None and requested_range.end_version is not None:
        try:
            log = _log(at, asked.transaction, newest, first, last)
            may_carry, may_update, may_repeat = log.may_carry, log.may_update, log.may_repeat
        except NotFound:
            # A stream may have read them before they expired. Any other reader gets an error when it reads
            # them.
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
        end=_end(requested_range, last),
        may_carry=may_carry,
        may_update=may_update,
        may_repeat=may_repeat,
    )


def plan(at: ServedCatalog, asked: ask.PlanChanges) -> tuple[EmptyAnswer, Beside]:
    log = _log(at, asked.transaction, at.loaded(asked), asked.first, asked.last)
    return EmptyAnswer(), files_in_arrow(log.plan(asked.predicate))


def _log(at: ServedCatalog, transaction: str | None, table: Table, first: int, last: int) -> Changelog:
    """Return changes. Spark requests them once for analysis and once to read them."""
    from lakelog.catalog.looking.changelog import Changelog

    key = (transaction, table.location, table.id, table.table_head.ref_id, first, last)
    return at.changes.get(key, lambda: Changelog.of(table, first, last))


def _end(wanted: ChangeRange | None, last: int) -> ask.ChangesEnd:
    """Return the end of a stream of such changes, in the form of its requests."""
    if wanted is None:
        return ask.ChangesEnd()
    return ask.ChangesEnd(last=None if wanted.end_version is None else last, last_us=wanted.last_us)


def _wanted(asked: ask.LoadChanges) -> ChangeRange | None:
    """Return the requested range of changes, or None for all changes."""
    from lakelog.catalog.looking.changelog import ChangeRange

    if not asked.start_latest and (
        asked.start_version is asked.end_version is asked.start_us is asked.end_us is None
    ):
        return None
    return ChangeRange(
        start_version=asked.start_version,
        start_latest=asked.start_latest,
        end_version=asked.end_version,
        start_us=asked.start_us,
        end_us=asked.end_us,
        with_start=asked.with_start,
        with_end=asked.with_end,
    )

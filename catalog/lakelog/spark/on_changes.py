"""What the adapter can ask about changes of a table: which there are, and in which files.

Changes that were loaded are named like a table that was loaded, at the last of their versions, and by `first` and
`last`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lakelog.log.errors import NotFound
from lakelog.spark.asking import Answer, Params, in_arrow
from lakelog.spark.catalogs import Catalogs
from lakelog.spark.handles import PLANNED_COLUMNS, Handles
from lakelog.spark.on_refs import on_named

if TYPE_CHECKING:
    from lakelog.catalog.changelog import Asked, Changelog
    from lakelog.catalog.table import Table

LIMIT = 8


class OnChanges:
    _catalogs: Catalogs
    _handles: Handles
    _known: Mapping[tuple[Any, ...], Changelog] = MappingProxyType({})

    def on_load_changes(self, params: Params) -> Params:
        """Answer the facts of a table as changes of it are read, and which versions' changes these are.

        Unless they end at a version, nothing is said of what the changes have among them: when Spark asks again, under
        the plan that it has made, there may be more, and a stream that is started again has to have the same plan.
        """
        from lakelog.catalog.changelog import Asked, asked_versions, changes_schema
        from lakelog.catalog.schema import schema_to_spark
        from lakelog.spark.facts import of_table

        table = self._table(params)
        asked = _asked(params)
        first, last = asked_versions(table, asked or Asked(start_version=1))
        # In a transaction, without what that has changed: this is a version, and is remembered as one.
        newest = table.at(version=table.version)
        end = newest.at(version=last) if 1 <= last < newest.version else newest
        told = {"may_carry": True, "may_update": True, "may_repeat": True}
        if asked is not None and asked.end_version is not None:
            try:
                log = self._log(params, newest, first, last)
                told = {name: getattr(log, name) for name in told}
            except NotFound:
                # A stream may have read them before they were let go of; who has not is told when they are read.
                pass
        step = self._catalogs.step(params)
        self._handles.remember(params, end, past=True, step=step)
        return {
            **of_table(end, past=True),
            "step": step,
            "schema": schema_to_spark(changes_schema(end.schema), internal=True),
            "partitioning": [],
            "sort_order": [],
            "clustering": [],
            "constraints": [],
            "estimates": [],
            "first": first,
            "last": last,
            "end": _end(asked, last),
            **told,
        }

    def on_plan_changes(self, params: Params) -> Answer:
        """Answer the files of changes that were loaded, as `plan` does."""
        table = self._handles.loaded(params)
        planned = self._log(params, table, params["first"], params["last"]).plan(params["predicate"])
        planned = planned.select([name for name in PLANNED_COLUMNS if name in planned.column_names])
        return in_arrow(planned.schema, planned.to_batches())

    def _log(self, params: Params, table: Table, first: int, last: int) -> Changelog:
        """Return changes, which are asked about once to be analysed and once to be read."""
        from lakelog.catalog.changelog import Changelog

        key = (params.get("transaction"), table.location, table.id, table.ref_id, first, last)
        # A cache that two threads fill at once is one all the same.
        known = dict(self._known)
        log = known.pop(key, None) or Changelog.of(table, first, last)
        self._known = dict([*list(known.items())[-LIMIT:], (key, log)])
        return log

    def _table(self, params: Params) -> Table:
        catalog = self._catalogs.of(params)
        if "identifier" in params:
            table = catalog.load_table(params["identifier"])
        else:
            table = catalog.table_at(params["location"])
        return on_named(table, params["on"]) if "on" in params else table


def _end(asked: Asked | None, last: int) -> Params:
    """Return where a stream of such changes ends, as its requests tell it."""
    if asked is None:
        return {}
    return {"last": None if asked.end_version is None else last, "last_us": asked.last_us}


def _asked(params: Params) -> Asked | None:
    """Return which changes are asked for, None for all that there are."""
    from lakelog.catalog.changelog import Asked

    names = ("start_version", "start_latest", "end_version", "start_us", "end_us")
    given = {name: params[name] for name in names if params.get(name) is not None}
    if not given:
        return None
    return Asked(
        **given,
        with_start=params["with_start"],
        with_end=params["with_end"],
    )

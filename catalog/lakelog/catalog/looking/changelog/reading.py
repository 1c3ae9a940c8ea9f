"""Reading changes of a table into Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.logs import PickledHead, UnchangingValue, watched
from lakelog.catalog.core.parquet import ID_FIELDS, read_files, with_row_ids
from lakelog.catalog.core.schema import Predicate, Schema
from lakelog.catalog.core.tools import ArrowRows, HtmlTable, as_html, limited
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.looking.changelog.changelog import Changelog
from lakelog.catalog.looking.changelog.file_diffs import FileDiff
from lakelog.catalog.looking.changelog.net_changes import as_updates, net, without_copies
from lakelog.catalog.names import check_list
from lakelog.log.errors import InvalidInput


@explaining
class Changes(ArrowRows, UnchangingValue):
    """Changes that are ready to be read.

    No data file is requested before its rows are needed. Each change is a row with the table's columns, the
    row's `_row_id` and `_row_version`, and three more columns: `_change_type`, `_commit_version` and
    `_commit_timestamp`. `_change_type` is `insert` or `delete`; with `updates` also `update_preimage` and
    `update_postimage`, the two halves of an update. Changes of a version come after the changes of all
    earlier versions.
    """

    def __init__(
        self,
        log: Changelog,
        columns: Sequence[str] | None,
        *,
        net: bool,
        updates: bool,
    ) -> None:
        check_list(columns, "columns")
        if columns is not None and not columns:
            raise InvalidInput("changes need at least one column: name one, or leave the columns out")
        schema = log.schema
        self._log = log
        self._net = net
        self._updates = updates
        self._columns = None if columns is None else [_name(name, log) for name in columns]
        self._all = tuple(field.name for field in schema.fields)
        schema_names = {name.lower() for name in self._all}
        for field in ID_FIELDS:
            if field.name in schema_names:
                raise InvalidInput(
                    f"the table's column {field.name} has the name of a column of its changes: rename it to read them"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        head = PickledHead.of(self._log.newest, "changes")
        versions = self._log.first, self._log.last
        return _unpickled, (head, *versions, self._columns, self._net, self._updates)

    def __repr__(self) -> str:
        versions = f"versions {self._log.first} to {self._log.last}"
        return f"<Changes of {self._log.newest.name}, {versions}: to_arrow() and to_pandas() read them>"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook. Makes no request."""
        facts = {
            "versions": f"{self._log.first:,} to {self._log.last:,}",
            "net": self._net or None,
            "updates": self._updates or None,
            "shown": "the columns; to_arrow() and to_pandas() read the rows",
        }
        columns = [(field.name, field.type) for field in self.arrow_schema]
        table = HtmlTable(("column", "type in Arrow"), columns)
        return as_html(f"Changes of {self._log.newest.name}", facts, [table])

    @property
    def schema(self) -> pa.Schema:
        return self.arrow_schema

    @property
    def arrow_schema(self) -> pa.Schema:
        schema, _ = self._read([])
        return self._chosen(schema)

    @property
    def _row_schema(self) -> Schema:
        """The columns that conditions may name. Names that are added to a table's come last."""
        return with_row_ids(self._log.schema)

    def _prepared(self) -> Changes:
        return self

    def _narrowed(
        self, columns: Sequence[str] | None, conditions: Sequence[Predicate], limit: int | None
    ) -> pa.RecordBatchReader:
        """Return a part of the changes, for a library that filters them itself (see `tools.narrowed`)."""
        reader = self.to_reader()
        if columns is None and limit is None:
            return reader
        names = list(reader.schema.names if columns is None else columns)
        chosen = pa.schema([reader.schema.field(name) for name in names])
        batches = (batch.select(names) for batch in reader)
        return pa.RecordBatchReader.from_batches(chosen, limited(batches, limit))

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the changes as a reader of record batches.

        Holds at most a version's changes, or all if `net`.
        """
        schema, _ = self._read([])
        columns_schema = self._chosen(schema)
        watch = watched(self._log.newest.logs, "read_changes", self._log.newest.name)
        return pa.RecordBatchReader.from_batches(columns_schema, watch.each(self._batches(schema)))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if self._net and self._log.may_repeat:
            whole = pa.concat_tables([schema.empty_table(), *self._by_version(schema, updates=False)])
            yield from self._selected(net(whole, updates=self._updates))
            return
        for changes in self._by_version(schema, updates=self._updates):
            yield from self._selected(changes)

    def _by_version(self, schema: pa.Schema, *, updates: bool) -> Iterator[pa.Table]:
        """Yield the changes in parts. A version that may change a row twice is in the same part."""
        for run in _runs(self._log.diffs):
            _, batches = self._read(run)
            if not run[0].may_update:
                for batch in batches:
                    yield pa.Table.from_batches([batch], schema)
                continue
            changes = pa.Table.from_batches(batches, schema)
            if run[0].may_carry:
                changes = without_copies(changes)
            yield as_updates(changes) if updates else changes

    def _read(self, run: Sequence[FileDiff]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        tracked = self._log.newest.tracked
        return read_files(
            tracked.store,
            tracked.prefix,
            self._log.plan(versions={diff.version for diff in run}),
            self._log.schema,
            (),
            open_url=tracked.log.replay.open_url,
            row_ids=True,
        )

    def _selected(self, changes: pa.Table) -> Iterator[pa.RecordBatch]:
        selection = changes if self._columns is None else changes.select(self._columns)
        yield from selection.to_batches()

    def _chosen(self, schema: pa.Schema) -> pa.Schema:
        return schema if self._columns is None else pa.schema([schema.field(name) for name in self._columns])


def _name(name: str, log: Changelog) -> str:
    id_names = {field.name.lower(): field.name for field in ID_FIELDS}
    return id_names.get(name.lower()) or log.schema.find((name,)).name


def _runs(diffs: Sequence[FileDiff]) -> Iterator[list[FileDiff]]:
    """Yield each version that may change a row twice on its own, and the versions between them together."""
    run: list[FileDiff] = []
    for diff in diffs:
        if diff.may_update:
            if run:
                yield run
            run = []
            yield [diff]
        else:
            run.append(diff)
    if run:
        yield run


def _unpickled(
    head: PickledHead, first: int, last: int, columns: Sequence[str] | None, net: bool, updates: bool
) -> Changes:
    return Changes(Changelog(head.head(), first, last), columns, net=net, updates=updates)

"""Random changes of the lines of a table by two clients, held against dicts of rows; then all of the past."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from dataclasses import dataclass, field
from unittest.mock import patch

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.integration.catalog.rows_changed import deletes_of
from tests.property.examples import examples

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.errors import NoSuchRef
from lakelog.log import LogOptions
from lakelog.log.checks.findings import Severity
from lakelog.log.errors import InvalidInput

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
NAMES = ("a", "b", "c")
MAIN = "main"


@dataclass(frozen=True)
class Contents:
    """Rows, and the changes that led to them: they show whether a line has all that another one has."""

    rows: frozenset[int] = frozenset()
    changes: frozenset[int] = frozenset()
    is_tag: bool = False


@dataclass
class Version:
    lines: dict[str, Contents] = field(default_factory=lambda: {MAIN: Contents()})
    ids: dict[str, int] = field(default_factory=dict)  # distinguishes branches of one name


def ids_of(table: Table) -> frozenset[int]:
    rows = table.to_arrow()["id"].to_pylist()
    assert len(set(rows)) == len(rows), "a row is there twice"
    return frozenset(rows)


class RefsModel(RuleBasedStateMachine):
    @initialize(every=st.sampled_from([1, 3, 100]))
    def start(self, every: int) -> None:
        warehouse = f"memory://{uuid.uuid4().hex}"
        options = LogOptions(snapshot_every_versions=every)
        self.clients = [Catalog(warehouse, log_options=options) for _ in range(2)]
        self.clients[0].create_table("t", SCHEMA)
        self.numbers = itertools.count()
        self.now = Version()
        self.past: dict[int, Version] = {1: Version()}
        self.expired = 1
        self.row_ids: dict[int, tuple[int, int]] = {}

    def table(self, client: int, ref: str = MAIN) -> Table:
        return self.clients[client].load_table("t", ref=ref)

    def committed(self, table: Table, lines: dict[str, Contents], ids: dict[str, int] | None = None) -> None:
        self.now = Version(lines, self.now.ids if ids is None else ids)
        self.past[table.version] = self.now

    def changed(self, table: Table, name: str, rows: frozenset[int]) -> None:
        line = self.now.lines[name]
        if self.past.get(table.version) is self.now:
            assert rows == line.rows
            return
        changes = line.changes | {next(self.numbers)}
        self.committed(table, {**self.now.lines, name: Contents(rows, changes)})

    def a_line(self, data: st.DataObject) -> str:
        lines = sorted(name for name, line in self.now.lines.items() if not line.is_tag)
        return data.draw(st.sampled_from(lines))

    def arrow(self, ids: frozenset[int]) -> pa.Table:
        return pa.table({"id": sorted(ids), "name": ["x"] * len(ids)}, schema=SCHEMA)

    @rule(client=st.integers(0, 1), data=st.data(), count=st.integers(1, 3))
    def append(self, client: int, data: st.DataObject, count: int) -> None:
        name = self.a_line(data)
        new = frozenset(next(self.numbers) for _ in range(count))
        table = self.table(client, name).append(self.arrow(new))
        self.changed(table, name, self.now.lines[name].rows | new)

    @rule(client=st.integers(0, 1), data=st.data(), by_filter=st.booleans(), apart=st.booleans())
    def delete(self, client: int, data: st.DataObject, by_filter: bool, apart: bool) -> None:
        name = self.a_line(data)
        rows = self.now.lines[name].rows
        if not rows:
            return
        some_numbers = sorted(data.draw(st.sets(st.sampled_from(sorted(rows)), min_size=1)))
        table = self.table(client, name)
        if by_filter:
            table = table.delete(col("id").is_in(some_numbers))
        else:
            with patch.object(deletion_vectors, "INLINE_MAX_BYTES", 0 if apart else 512):
                table = engine.commit_rows(
                    table, engine.begin_write(table), "delete", deletes=deletes_of(table, some_numbers)
                )
        self.changed(table, name, rows - frozenset(some_numbers))

    @rule(client=st.integers(0, 1), data=st.data())
    def overwrite(self, client: int, data: st.DataObject) -> None:
        name, new = self.a_line(data), frozenset([next(self.numbers)])
        self.changed(self.table(client, name).overwrite(self.arrow(new)), name, new)

    @rule(
        client=st.integers(0, 1),
        data=st.data(),
        to=st.sampled_from(NAMES),
        kind=st.sampled_from(["tag", "branch"]),
    )
    def make(self, client: int, data: st.DataObject, to: str, kind: str) -> None:
        """Make a tag or branch from any line, now or in the past."""
        name = data.draw(st.sampled_from(sorted(self.now.lines)))
        known_line, line = self.now.lines.get(to), self.now.lines[name]
        if known_line is not None and known_line.is_tag != (kind == "tag"):
            return
        version = None
        if not line.is_tag and data.draw(st.booleans()):
            version = data.draw(st.sampled_from(self.versions_of(name)))
            past_line = self.past[version].lines[name]
            # Where it is the same all the same, it has what came in between, and was undone.
            line = past_line if past_line.rows != line.rows else line
        table = self.table(client, name)
        make = table.create_tag if kind == "tag" else table.create_branch
        new_table = make(to, version, replace=True)
        lines = {**self.now.lines, to: Contents(line.rows, line.changes, kind == "tag")}
        self.committed(new_table, lines, {**self.now.ids, to: next(self.numbers)})

    def versions_of(self, name: str) -> list[int]:
        return [
            version
            for version, past in sorted(self.past.items())
            if version >= self.expired and name in past.lines and past.ids.get(name) == self.now.ids.get(name)
        ]

    @precondition(lambda self: len(self.now.lines) > 1)
    @rule(client=st.integers(0, 1), data=st.data())
    def drop(self, client: int, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(set(self.now.lines) - {MAIN})))
        table = self.table(client)
        table = table.drop_tag(name) if self.now.lines[name].is_tag else table.drop_branch(name)
        self.committed(
            table, {other_text: line for other_text, line in self.now.lines.items() if other_text != name}
        )

    @rule(client=st.integers(0, 1), data=st.data())
    def fast_forward(self, client: int, data: st.DataObject) -> None:
        name, to = self.a_line(data), self.a_line(data)
        line, other_line = self.now.lines[name], self.now.lines[to]
        number_before = max(self.past)
        try:
            table = self.table(client).fast_forward(name, to)
        except InvalidInput:
            assert name != to
            return
        if table.version == number_before:
            assert other_line.changes <= line.changes
            return
        assert line.changes <= other_line.changes
        self.committed(table, {**self.now.lines, name: other_line})

    @rule(client=st.integers(0, 1))
    def nothing_is_lost_that_was_only_appended_to_a_branch(self, client: int) -> None:
        """A new branch of main, changed, and main unchanged: main can become that."""
        name = "d"
        branch = self.table(client).create_branch(name, replace=True).at(ref=name)
        branch.append(self.arrow(new := frozenset([next(self.numbers)])))
        table = self.table(1 - client).fast_forward(MAIN, name)
        assert ids_of(table) == self.now.lines[MAIN].rows | new
        # The versions in between are not looked at again.
        changes = self.now.lines[MAIN].changes | {next(self.numbers)}
        line = Contents(self.now.lines[MAIN].rows | new, changes)
        lines, ids = {**self.now.lines, name: line, MAIN: line}, {**self.now.ids, name: next(self.numbers)}
        self.committed(table, lines, ids)

    @rule(client=st.integers(0, 1), data=st.data())
    def go_back(self, client: int, data: st.DataObject) -> None:
        name = self.a_line(data)
        version = data.draw(st.sampled_from(self.versions_of(name)))
        table = self.table(client, name).set_current_version(version)
        self.changed(table, name, self.past[version].lines[name].rows)

    @rule(client=st.integers(0, 1), data=st.data(), meanwhile=st.sampled_from(["nothing", "append"]))
    def transaction(self, client: int, data: st.DataObject, meanwhile: str) -> None:
        """Append to one line, and delete from another one, while another client appends to a third."""
        a_line, other_a_line, third = (self.a_line(data) for _ in range(3))
        new = frozenset([next(self.numbers)])
        tx = self.clients[client].begin()
        tx.load_table("t", ref=a_line).append(self.arrow(new))
        table = tx.load_table("t", ref=other_a_line)
        rows = self.now.lines[other_a_line].rows | (new if a_line == other_a_line else frozenset())
        removed_numbers = (
            sorted(data.draw(st.sets(st.sampled_from(sorted(rows)), max_size=3))) if rows else []
        )
        if removed_numbers:
            engine.commit_rows(
                table, engine.begin_write(table), "delete", deletes=deletes_of(table, removed_numbers)
            )
        if meanwhile == "append":
            theirs = frozenset([next(self.numbers)])
            self.changed(
                self.table(1 - client, third).append(self.arrow(theirs)),
                third,
                self.now.lines[third].rows | theirs,
            )
        tx.commit()
        lines = dict(self.now.lines)
        for name, become in (
            (a_line, lambda rows: rows | new),
            (other_a_line, lambda rows: rows - frozenset(removed_numbers)),
        ):
            if name == a_line or removed_numbers:
                lines[name] = Contents(become(lines[name].rows), lines[name].changes | {next(self.numbers)})
        self.committed(self.table(client), lines)

    @rule(client=st.integers(0, 1), joins=st.booleans())
    def transaction_that_makes_a_branch(self, client: int, joins: bool) -> None:
        """Make a branch of main, add to both or to the branch alone, and then maybe join them."""
        name, new, more = "d", frozenset([next(self.numbers)]), frozenset([next(self.numbers)])
        main = self.now.lines[MAIN]
        with self.clients[client].transaction() as tx:
            tx.load_table("t").create_branch(name, replace=True)
            tx.load_table("t", ref=name).append(self.arrow(new))
            if joins:
                tx.load_table("t").fast_forward(MAIN, name)
            else:
                tx.load_table("t").append(self.arrow(more))
        line = Contents(main.rows | new, main.changes | {next(self.numbers)})
        other_line = line if joins else Contents(main.rows | more, main.changes | {next(self.numbers)})
        lines = {**self.now.lines, name: line, MAIN: other_line}
        self.committed(self.table(client), lines, {**self.now.ids, name: next(self.numbers)})

    @rule(client=st.integers(0, 1))
    def clean_up(self, client: int) -> None:
        self.clients[client].expire("t", retain_last=1, dry_run=False)
        self.clients[client].vacuum("t", older_than=dt.timedelta(0), dry_run=False)
        newest = max(self.past)
        head = self.table(client).version
        self.expired = newest
        for version in range(newest + 1, head + 1):
            self.past[version] = self.now

    @invariant()
    def all_clients_see_what_the_model_has(self) -> None:
        for client in (0, 1) if hasattr(self, "clients") else ():
            table = self.table(client)
            assert set(table.refs) == set(self.now.lines) - {MAIN}
            for name, line in self.now.lines.items():
                seen_table = table.at(ref=name)
                assert ids_of(seen_table) == line.rows
                assert seen_table.row_count == len(line.rows)
                self.check_row_ids(seen_table)

    def check_row_ids(self, table: Table) -> None:
        found_columns = table.scan(row_ids=True).to_arrow().to_pydict()
        columns = (found_columns[name] for name in ("id", "_row_id", "_row_version"))
        for id, row_id, version in zip(*columns, strict=True):
            assert version is not None and version <= table.version
            # Nothing changes a row here, wherever it comes to be.
            assert self.row_ids.setdefault(id, (row_id, version)) == (row_id, version)
        assert len({row_id for row_id, _ in self.row_ids.values()}) == len(self.row_ids)

    def teardown(self) -> None:
        if not hasattr(self, "clients"):
            return
        fresh = Catalog(self.clients[0].warehouse)
        table = fresh.load_table("t")
        for version, past in self.past.items():
            if version < self.expired:
                continue
            for name, line in past.lines.items():
                assert ids_of(table.at(version=version, ref=name)) == line.rows
            for name in {*NAMES} - set(past.lines):
                try:
                    table.at(version=version, ref=name)
                except NoSuchRef:
                    continue
                raise AssertionError(f"{name} is there in version {version}")
        findings = fresh.fsck(deep=True, all_versions=True).of(Severity.DAMAGE)
        assert not findings, findings


RefsModel.TestCase.settings = settings(
    max_examples=examples(12, full=120), stateful_step_count=25, deadline=None
)
TestRefsModel = RefsModel.TestCase

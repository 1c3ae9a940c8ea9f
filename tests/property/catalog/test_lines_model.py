"""Branches and tags made of whatever there is or was: a fast-forward loses nothing, and is done if nothing is lost.

Only what commits say is looked at: there are no data files here, which makes many histories quick.
"""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.format.catalog.rows_v1 import SCHEMA, data_file
from tests.property.examples import examples

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.log import LogOptions
from lakelog.log.errors import InvalidInput

MAIN = "main"
NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Line:
    """A tag or branch, or main: its files, and all changes that led to them.

    `id` is None for a tag. `of` is the id of the line that it was made of or of the past of, None if that was gone.
    """

    id: int | None
    files: frozenset[str] = frozenset()
    changes: frozenset[int] = frozenset()
    of: int | None = None
    is_new: bool = False

    @property
    def kind(self) -> str:
        return "tag" if self.id is None else "branch"


def paths(table: Table, files: FileSet) -> frozenset[str]:
    return frozenset(files.table(table.table_head.tracked.log.read_blobs)["path"].to_pylist())


class LinesModel(RuleBasedStateMachine):
    @initialize(every=st.sampled_from([1, 4, 100]))
    def start(self, every: int) -> None:
        warehouse = f"memory://{uuid.uuid4().hex}"
        self.clients = [
            Catalog(warehouse, log_options=LogOptions(snapshot_every_versions=every)) for _ in (0, 1)
        ]
        engine.commit_stage(
            self.clients[0], engine.stage(self.clients[0], "create", "t", schema_from_spark(SCHEMA))
        )
        self.numbers = itertools.count(1)
        self.lines = {MAIN: Line(0)}
        self.past = {1: self.lines}
        self.append(MAIN, 0)

    def table(self, client: int = 0, ref: str = MAIN) -> Table:
        return self.clients[client].load_table("t", ref=ref)

    def committed(self, table: Table, **lines: Line | None) -> None:
        current_lines = {**self.lines, **lines}
        self.lines = {name: line for name, line in current_lines.items() if line is not None}
        self.past[table.version] = self.lines

    def branches(self) -> list[str]:
        return sorted(name for name, line in self.lines.items() if line.id is not None)

    def append(self, name: str, client: int) -> None:
        table, number = self.table(client, name), next(self.numbers)
        write = engine.begin_write(table)
        file = data_file(write, number, 100 * number, 10)
        line = self.lines[name]
        changed_line = Line(line.id, line.files | {file.path}, line.changes | {number}, line.of)
        self.committed(engine.commit_write(table, write, "append", [file]), **{name: changed_line})

    @rule(data=st.data(), client=st.integers(0, 1))
    def change(self, data: st.DataObject, client: int) -> None:
        self.append(data.draw(st.sampled_from(self.branches())), client)

    @rule(data=st.data(), client=st.integers(0, 1))
    def empty(self, data: st.DataObject, client: int) -> None:
        name = data.draw(st.sampled_from(self.branches()))
        line = self.lines[name]
        if line.files:
            changed_line = Line(line.id, frozenset(), line.changes | {next(self.numbers)}, line.of)
            self.committed(self.table(client, name).truncate(), **{name: changed_line})

    @rule(
        data=st.data(),
        client=st.integers(0, 1),
        to=st.sampled_from(NAMES),
        kind=st.sampled_from(["tag", "branch", "branch"]),
    )
    def make(self, data: st.DataObject, client: int, to: str, kind: str) -> None:
        """Make a tag or branch of any line or tag that there is, or ever was."""
        if to in self.lines and self.lines[to].kind != kind:
            return
        version = max(self.past)
        if data.draw(st.booleans()):
            version = data.draw(st.sampled_from(sorted(self.past)))
        name = data.draw(st.sampled_from(sorted(self.past[version])))
        self.made(self.table(client).at(version=version, ref=name), self.past[version][name], to, kind)

    def made(self, of: Table, then: Line, to: str, kind: str) -> None:
        origin = then.of if then.id is None else then.id
        by_id = {line.id: line for line in self.lines.values() if line.id is not None}
        is_known = origin in by_id
        own_line = by_id[origin] if is_known else self.lines[MAIN]
        # Where it is the same all the same, it has what came in between, and was undone.
        source = own_line if own_line.files == then.files else then
        line = Line(
            next(self.numbers) if kind == "branch" else None,
            source.files,
            source.changes,
            own_line.id if is_known or source is own_line else None,
            is_new=True,
        )
        make = of.create_tag if kind == "tag" else of.create_branch
        self.committed(make(to, replace=True), **{to: line})

    @rule(data=st.data(), drops=st.booleans())
    def made_of_a_tag(self, data: st.DataObject, drops: bool) -> None:
        """Change a branch, make another one of a tag of it, and give the new one what some line has."""
        for other_name in ("tagged", "new"):
            if other_name in self.lines:
                self.drop_it(other_name)
        name = data.draw(st.sampled_from(self.branches()))
        self.append(name, 0)
        self.made(self.table(0, name), self.lines[name], "tagged", "tag")
        if drops and name != MAIN:
            self.drop_it(name)
        self.append(MAIN, 1)
        self.made(self.table(0, "tagged"), self.lines["tagged"], "new", "branch")
        self.joined("new", data.draw(st.sampled_from(self.branches())), 1)

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        names = sorted(set(self.lines) - {MAIN})
        if names:
            self.drop_it(data.draw(st.sampled_from(names)))

    def drop_it(self, name: str) -> None:
        table = self.table()
        is_tag = self.lines[name].id is None
        self.committed(table.drop_tag(name) if is_tag else table.drop_branch(name), **{name: None})

    @rule(data=st.data(), client=st.integers(0, 1))
    def fast_forward(self, data: st.DataObject, client: int) -> None:
        branches = self.branches()
        self.joined(data.draw(st.sampled_from(branches)), data.draw(st.sampled_from(branches)), client)

    def joined(self, name: str, to: str, client: int) -> None:
        line, other_line = self.lines[name], self.lines[to]
        version_before = self.table(client).version
        try:
            table = self.table(client).fast_forward(name, to)
        except InvalidInput as error:
            assert name in str(error) and to in str(error)
            assert not line.is_new or line.of != other_line.id, f"{name} is as it was made of {to}: {error}"
            assert name != to
            return
        if table.version == version_before:
            assert other_line.changes <= line.changes, (
                f"{name} has not all that {to} has, and that was not done"
            )
            return
        assert line.changes <= other_line.changes, f"{name} became {to}, and lost something"
        self.committed(
            table, **{name: replace(line, files=other_line.files, changes=other_line.changes, is_new=False)}
        )

    @invariant()
    def all_is_as_the_model_has_it(self) -> None:
        for client in (0, 1) if hasattr(self, "clients") else ():
            table = self.table(client)
            found_paths = {
                name: paths(table, table.table_head.view.state.on(name).files) for name in (MAIN, *table.refs)
            }
            assert found_paths == {name: line.files for name, line in self.lines.items()}


LinesModel.TestCase.settings = settings(
    max_examples=examples(20, full=200), stateful_step_count=20, deadline=None
)
TestLinesModel = LinesModel.TestCase

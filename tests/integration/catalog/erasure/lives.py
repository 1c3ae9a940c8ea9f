"""Random lives of a table whose every row has texts and a number of its own, and what must become of each row.

What is read after every step says which rows have ever had the value that they are forgotten by, whatever the column
was called: those are to go with all of their copies, from their tables and from clones of these. Rows that never had
it stay. `python -m tests.integration.catalog.erasure.lives FIRST LAST` lives many.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from tests.integration.catalog.clock import at_once
from tests.integration.catalog.erasure.searching import Value, found_in
from tests.integration.catalog.maintenance.test_vacuum_crashes import Death, DyingStore

from lakelog.catalog import Catalog, StreamBatch, Table, engine
from lakelog.catalog.core.files import ColumnEstimates, TableEstimates, manifest_bounds
from lakelog.catalog.core.logs import TableHead, places, writing_as
from lakelog.catalog.core.parquet import read_files
from lakelog.catalog.core.state import BRANCH, RELATION
from lakelog.catalog.errors import NoSuchColumn
from lakelog.log import LogOptions, MemoryStore, open_store, wait_for_background
from lakelog.log.errors import LakelogError

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("who", pa.string()),
        ("note", pa.string()),
        ("flag", pa.string()),
        ("region", pa.string()),
    ]
)
BASE = 7_345_678_901_200_000
"""Keys are numbers that no object has by chance."""
MARK = "ZQXJ-erase"
WHERE = f"flag = '{MARK}'"
STEPS = 22
NAMED = ("clones need its files", "is kept for a dropped clone", "no name leads", "was called")
NOW, DAY = dt.timedelta(0), dt.timedelta(days=1)


def sentinel(key: int) -> str:
    return f"zq{key - BASE:05}w"


def client(warehouse: str) -> Catalog:
    # No client waits: an undecided transaction is of a dead one.
    options = LogOptions(
        in_background=at_once, snapshot_every_versions=4, proposals=True, sleep_s=lambda seconds: None
    )
    return Catalog(warehouse, writer={"engine": "test"}, log_options=options)


class Life:
    """A catalog in which a table `a.t` lives. By the table's id, `matched` has the ids of rows that are to go, and
    `marked` those that had the mark by any name; `ever` are the keys of all that ever had it. What an overwrite has
    written again is another row."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.warehouse = f"memory://{uuid.uuid4().hex}"
        self.catalog = client(self.warehouse)
        self.catalog.create_namespace("a")
        self.catalog.create_namespace("b")
        mode = self.draw.choice(["copy-on-write", "merge-on-read", "merge-on-read"])
        self.properties = {f"lakelog.write.{operation}.mode": mode for operation in ("delete", "update")}
        self.properties |= self.draw.choice([{}, {"lakelog.bloom-filter.columns": "who,k"}])
        self.properties |= self.draw.choice([{}, {"lakelog.iceberg": "on"}])
        self.partitioned = self.draw.choice([[], [], ["region"], ["flag"]])
        self.number = BASE
        self.names = ["a.t"]
        self.marked: dict[str, set[int]] = defaultdict(set)
        self.ids: dict[str, str] = {}
        self.ever: set[int] = set()
        self.done: list[str] = []
        self.renames = False
        self._create()
        self.look()

    def _create(self) -> None:
        table = self.catalog.create_table(
            "a.t", SCHEMA, properties=self.properties, partition_by=self.partitioned
        )
        table.append(self.rows(3, marked=self.draw.random() < 0.5))

    def new(self) -> int:
        self.number += 1
        return self.number

    def rows(self, count: int = 2, marked: bool = False) -> pa.Table:
        found = []
        for place in range(count):
            key = self.new()
            flag = MARK if marked and not place else None
            found.append((key, sentinel(key), f"{sentinel(key)}-{self.draw.randint(0, 99)}", flag, "EU"))
        return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], SCHEMA)

    def given(self, count: int = 2, marked: bool = False) -> pa.Table:
        """Rows for the columns that the line has now."""
        rows, names = self.rows(count, marked), self.table.arrow_schema.names
        return rows.select([name for name in rows.column_names if name in names])

    @property
    def table(self) -> Table:
        return self.catalog.load_table("a.t")

    @property
    def line(self) -> Table:
        branches = [name for name, ref in self.table.refs.items() if ref.kind == BRANCH]
        name = self.draw.choice([None, *branches])
        return self.table if name is None else self.catalog.load_table("a.t", ref=name)

    @property
    def any_table(self) -> Table:
        return self.catalog.load_table(self.draw.choice(self.names))

    def some(self) -> str:
        """A condition for some of the rows."""
        return f"k > {self.draw.randint(BASE, self.number)}"

    def one(self) -> str:
        return f"k = {self.draw.randint(BASE + 1, self.number)}"

    # What is done

    def step(self) -> None:
        name = self.draw.choice(list(STEPS_OF))
        dies = self.draw.random() < 0.12
        self.done.append(f"{name}{' (dies)' if dies else ''}")
        try:
            if dies:
                with dying(self.draw.randint(0, 6)):
                    self.catalog = client(self.warehouse)
                    STEPS_OF[name](self)
            else:
                STEPS_OF[name](self)
        except LakelogError as error:
            self.done[-1] += f": {type(error).__name__}"  # it cannot be done now
        except Death:
            pass
        if dies:
            wait_for_background()
            self.catalog = client(self.warehouse)
        self.look()

    def look(self) -> None:
        """Note which rows there are, and which have the mark in a column of any name."""
        for name in list(self.names):
            if not self.catalog.table_exists(name):
                if name == "a.t":
                    self.done.append("create again")
                    self._create()
                else:
                    self.names.remove(name)
                    continue
            table = self.catalog.load_table(name)
            self.ids[name] = table.id
            for ref in (None, *table.refs):
                line = table if ref is None else self.catalog.load_table(name, ref=ref)
                self.ever |= {row["k"] for row in line.to_arrow().to_pylist() if MARK in row.values()}

    def alter(self, *changes: dict[str, Any]) -> None:
        table = self.any_table
        self.renames = self.renames or any(
            each_change["change"] == "rename-column" for each_change in changes
        )
        for change in changes:
            table = table.alter([change])

    def clone(self) -> None:
        name, source = f"a.c{self.new() - BASE}", self.draw.choice(self.names)
        self.names.append(name)
        self.catalog.clone(source, name)

    def drop_clone(self) -> None:
        if len(self.names) > 1:
            self.catalog.drop_table(self.names.pop(self.draw.randrange(1, len(self.names))))

    def drop_and_create(self) -> None:
        self.catalog.drop_table("a.t")
        self._create()

    def rename_and_drop(self) -> None:
        name = f"{self.draw.choice(['a', 'b'])}.r{self.new() - BASE}"
        self.catalog.rename_table("a.t", name)
        self.catalog.drop_table(name)
        self._create()

    def drop_and_restore(self) -> None:
        name = self.draw.choice(self.names)
        self.catalog.drop_table(name)
        self.catalog.undrop_table(name)

    def quoting(self) -> None:
        with writing_as({"statement": f"DELETE FROM t WHERE {WHERE}"}):
            self.line.append(self.given())

    def stream(self) -> None:
        number = self.new()
        self.table.append(self.given(marked=True), batch=StreamBatch(stream="s", number=number))

    def together(self) -> None:
        with self.catalog.transaction() as transaction:
            transaction.load_table("a.t").append(self.given(marked=True))
            transaction.load_table("a.t").delete(self.one())

    def upsert(self) -> None:
        line = self.line
        rows = line.to_arrow().slice(0, 2)
        line.upsert(rows, ["k"])

    def merge(self) -> None:
        line = self.line
        rows = line.to_arrow().slice(1, 2)
        line.merge(rows, ["k"]).when_matched_update({"note": "source.who || '-m'"}).execute()

    def overwrite_by_itself(self) -> None:
        line = self.line
        line.overwrite(line.to_arrow())

    def statistics(self) -> None:
        table = self.any_table
        rows = table.to_arrow()
        if not rows.num_rows:
            return
        columns = {}
        for field in table.schema.fields:
            values = [row for row in rows[field.name].to_pylist() if row is not None]
            if field.name == "k" and values:
                columns[field.id] = ColumnEstimates(
                    type="long", distinct=len(values), min=min(values), max=max(values)
                )
        engine.commit_statistics(
            table, TableEstimates(version=table.version, rows=rows.num_rows, size_bytes=9, columns=columns)
        )

    # What must be, once it is forgotten

    def named(self, key: str) -> str:
        """Return a key with the name of its table in place of the folder."""
        for name in self.names:
            key = key.replace(self.catalog.load_table(name).table_head.tracked.location, f"<{name}>")
        return key

    def family(self) -> set[str]:
        """Return the ids of the table, of those that had its name, and of the clones of these."""
        texts, new = set[str](), []
        for name in ("a", "b"):
            space = self.catalog._tree.find_namespace((name,))
            assert space is not None
            new += [(log.entry.id, log.entry.location) for log in space.view.state.dropped_logs()]
        new.append((self.table.id, self.table.table_head.tracked.location))
        while new:
            id, location = new.pop()
            if id in texts:
                continue
            texts.add(id)
            state = self.catalog._tree.logs.table(location).at_its_place().state
            new += [(clone, promise.location) for clone, promise in state.clones.items()]
        tables = [*map(self.catalog.load_table, self.names), *self.dropped_tables()]
        former = {
            table.id
            for table in tables
            if any(ancestor.id in texts for ancestor in table.table_head.state.ancestors)
        }
        return texts | former

    def to_go(self, id: str) -> set[int]:
        """Keys of the rows of a table that are to go: which had the mark there, or in a table that it comes from."""
        if id not in self.reached:
            return set()
        found_rows = self.matched[id]
        for table in self.tables:
            for ancestor in table.table_head.state.ancestors if table.id == id else ():
                found_rows = found_rows | {row for row in self.to_go(ancestor.id) if row < ancestor.until}
        return found_rows

    def find_matched(self) -> None:
        """Note the rows that match at a version that can be read, by a name that a column has there or later."""
        self.matched: dict[str, set[int]] = defaultdict(set)
        self.tables = [*map(self.catalog.load_table, self.names), *self.dropped_tables()]
        for table in self.tables:
            named_later: set[int] = set()
            for version in reversed(self.versions(table)):
                fields = {field.name: field.id for field in version.schema.fields}
                named_later |= {fields["flag"]} if "flag" in fields else set()
                for ref in (None, *version.refs):
                    line = version if ref is None else Table(version.table_head.on(ref))
                    own = {field.name: field.id for field in line.schema.fields}
                    current_texts = {text for text, id in own.items() if id in named_later or text == "flag"}
                    for row in rows_of(line):
                        if any(row[text] == MARK for text in current_texts):
                            self.matched[table.id].add(row["_row_id"])
                        if MARK in row.values():
                            self.marked[table.id].add(row["_row_id"])

    def dropped_tables(self) -> list[Table]:
        tree, found = self.catalog._tree, []
        for name in ("a", "b"):
            space = tree.find_namespace((name,))
            assert space is not None
            for log in space.view.state.dropped_logs():
                tracked_table = tree.logs.table(log.entry.location)
                view = tracked_table.at_its_place()
                if not view.purged:
                    found.append(Table(TableHead(tree.logs, tracked_table, view, log.entry.id)))
        return found

    def unclear(self) -> list[str]:
        """Return the folders of tables in which rows may have the mark by names that no version that can be read has
        for it, or that no erasure of the table is about; also of those that keep files for such a table."""
        places = {self.table.table_head.tracked.location: self.table.id}
        for space in ("a", "b"):
            state = self.catalog._tree.find_namespace((space,)).view.state
            places |= {log.entry.location: log.entry.id for log in state.dropped_logs()}
            places |= {entry.location: entry.id for _, entry in state.logs(RELATION)}
        clones = {table.id: set(table.table_head.state.clones) for table in self.tables}
        ids = {
            id
            for id in places.values()
            if id not in self.reached
            or self.marked[id] - self.matched[id]
            and (id in self.ids.values() or self.renames)
        }
        ids |= {id for id, kept_for in clones.items() if kept_for & ids}
        return [location for location, id in places.items() if id in ids]

    def others(self) -> dict[tuple[str, str | None], list[tuple[Any, ...]]]:
        """Return the rows that are to stay, of each table and branch."""
        found: dict[tuple[str, str | None], list[tuple[Any, ...]]] = {}
        for name in self.names:
            table = self.catalog.load_table(name)
            removed_numbers = self.to_go(table.id)
            for ref in (None, *(text for text, of in table.refs.items() if of.kind == BRANCH)):
                line = table if ref is None else self.catalog.load_table(name, ref=ref)
                # Nothing is held of rows that had the mark at a version of which an expiry that died has left a part.
                unclear = {row["_row_id"] for row in rows_of(line) if row["k"] in self.ever}
                unclear |= self.marked[table.id]
                kept_rows = [row for row in rows_of(line) if row["_row_id"] not in removed_numbers | unclear]
                found[name, ref] = sorted(tuple(map(str, list(row.values())[:-1])) for row in kept_rows)
        return found

    def versions(self, table: Table) -> list[Table]:
        first = max(table.table_head.state.expired, 1)
        return [Table(table.table_head.at_version(number)) for number in range(first, table.version + 1)]

    def forget(self) -> None:
        """Forget, and check all that is left. AssertionError says what is wrong."""
        wait_for_background()
        self.catalog = client(self.warehouse)
        self.reached = self.family()
        self.find_matched()
        if "flag" not in self.table.schema.names and self.draw.random() < 0.5:
            self.table.alter([{"change": "add-column", "name": ["flag"], "type": "string"}])
        before = self.others()
        visible: set[int] = set()
        had = self.to_go(self.table.id)
        ever = [(row["k"], row["_row_id"]) for table in self.versions(self.table) for row in rows_of(table)]
        keys = {key for key, _ in ever} - {key for key, id in ever if id not in had}
        unclear = self.unclear()
        report = None
        if self.draw.random() < 0.3:
            try:
                with dying(self.draw.randint(0, 60)):
                    client(self.warehouse).forget("a.t", WHERE, dry_run=False)
            except (Death, NoSuchColumn):
                wait_for_background()
        try:
            report = client(self.warehouse).forget("a.t", WHERE, dry_run=False)
        except NoSuchColumn:
            names = {name for version in self.versions(self.table) for name in version.schema.names}
            assert "flag" not in names
            return
        wait_for_background()
        self.catalog = client(self.warehouse)
        # A dropped table whose other rows a clone still has is named, what a creation has left that died, and what the
        # table's name led to before a rename.
        assert all(any(word in text for word in NAMED) for text in report.left), report.left
        assert self.others() == before, "other rows have changed"
        for name in self.names:
            had = self.to_go(self.catalog.load_table(name).id)
            for version in self.versions(self.catalog.load_table(name)):
                for ref in (None, *version.refs):
                    rows = rows_of(version if ref is None else Table(version.table_head.on(ref)))
                    visible |= {row["k"] for row in rows}
                    left = {row["k"] for row in rows if row["_row_id"] in had}
                    assert not left, f"version {version.version} of {name}, {ref}, still has {left}"
        if not report.left:
            removed_visible = sorted(keys - visible)
            values: list[Value] = ["ZQXJ", *map(sentinel, removed_visible), *removed_visible]
            found = found_in(MemoryStore.named(self.warehouse), values)
            found = {
                key: which_texts for key, which_texts in found.items() if not key.startswith(tuple(unclear))
            }
            assert not found, (
                report.is_needed,
                {self.named(key): which_texts for key, which_texts in found.items()},
                self.done,
            )
        # Who dies may not have written a hint. An erasure that finds nothing in a log leaves to the next writer what a
        # transaction has left there.
        damage = [finding for finding in self.catalog.fsck().found if finding.severity.name != "NOTE"]
        damage = [
            finding for finding in damage if finding.kind not in ("hint-missing", "transaction-undecided")
        ]
        assert not damage, damage
        with suppress(NoSuchColumn):  # it was another name then, at a version that has expired by now
            again = self.catalog.forget("a.t", WHERE)
            assert report.left or not again.is_needed, again


def rows_of(line: Table) -> list[dict[str, Any]]:
    """Return the rows of a line, with their ids as the last column."""
    head = line.table_head
    _, batches = read_files(
        head.tracked.store,
        head.tracked.prefix,
        head.plan(None),
        head.schema,
        head.metadata.specs,
        open_url=head.tracked.log.replay.open_url,
        row_ids=True,
    )
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [{name: value for name, value in row.items() if name != "_row_version"} for row in rows]


@contextmanager
def dying(after: int) -> Any:
    """All stores that are opened die after so many writes."""
    with patch.object(places, "open_store", lambda url, options: DyingStore(open_store(url, options), after)):
        yield


def _vacuum(catalog: Catalog) -> None:
    catalog.vacuum(older_than=NOW, dropped_older_than=DAY, dry_run=False, trust_clock=True)


def _expire(life: Life) -> None:
    life.catalog.expire(life.draw.choice(life.names), retain_last=2, dry_run=False)


STEPS_OF: dict[str, Callable[[Life], object]] = {
    "append": lambda life: life.line.append(life.given()),
    "append marked": lambda life: life.line.append(life.given(marked=True)),
    "mark": lambda life: life.line.update({"flag": f"'{MARK}'"}, life.one()),
    "mark one of a clone": lambda life: life.any_table.update({"flag": f"'{MARK}'"}, life.one()),
    "unmark": lambda life: life.line.update({"flag": "NULL"}, life.some()),
    "update": lambda life: life.line.update({"note": f"who || '-u{life.new() - BASE}'"}, life.some()),
    "update one": lambda life: life.any_table.update({"note": f"who || '-o{life.new() - BASE}'"}, life.one()),
    "move": lambda life: life.line.update({"region": "'US'"}, life.some()),
    "delete": lambda life: life.line.delete(life.one()),
    "delete some": lambda life: life.line.delete(f"k < {life.draw.randint(BASE, life.number)}"),
    "delete marked": lambda life: life.line.delete(WHERE),
    "overwrite": lambda life: life.line.overwrite(life.given(), life.some()),
    "upsert": Life.upsert,
    "merge": Life.merge,
    "overwrite by itself": Life.overwrite_by_itself,
    "rename flag": lambda life: life.alter(
        {"change": "rename-column", "name": ["flag"], "new_name": f"flag{life.new() - BASE}"}
    ),
    "drop flag": lambda life: life.alter({"change": "delete-column", "name": ["flag"]}),
    "drop note": lambda life: life.alter({"change": "delete-column", "name": ["note"]}),
    "add flag": lambda life: life.alter({"change": "add-column", "name": ["flag"], "type": "string"}),
    "add note": lambda life: life.alter({"change": "add-column", "name": ["note"], "type": "string"}),
    "swap": lambda life: life.alter(
        {"change": "rename-column", "name": ["flag"], "new_name": "other"},
        {"change": "rename-column", "name": ["note"], "new_name": "flag"},
        {"change": "rename-column", "name": ["other"], "new_name": "note"},
    ),
    "compact": lambda life: life.any_table.compact(deleted_ratio=0.01),
    "compact line": lambda life: life.line.compact(),
    "tag": lambda life: life.table.create_tag(f"t{life.new() - BASE}"),
    "branch": lambda life: life.table.create_branch(f"b{life.new() - BASE}"),
    "rollback": lambda life: life.table.rollback_to_version(max(1, life.table.version - 2)),
    "cluster": lambda life: life.table.alter(
        [{"change": "set-clustering", "columns": [["who"], ["k"]]}]
    ).cluster(),
    "cut": lambda life: life.catalog.save_cut(f"cut{life.new()}"),
    "expire": _expire,
    "vacuum": lambda life: _vacuum(life.catalog),
    "materialize": lambda life: life.any_table.materialize(),
    "export": lambda life: life.any_table.export_iceberg(),
    "statistics": Life.statistics,
    "clone": Life.clone,
    "clone again": Life.clone,
    "drop clone": Life.drop_clone,
    "drop and create": Life.drop_and_create,
    "rename and drop": Life.rename_and_drop,
    "drop and restore": Life.drop_and_restore,
    "quoting": Life.quoting,
    "stream": Life.stream,
    "together": Life.together,
}


def live(seed: int) -> Life:
    """Live one life, up to the end of its erasure."""
    life = Life(seed)
    with patch.object(manifest_bounds, "BOUNDED_FROM", 1):
        for _ in range(STEPS):
            life.step()
        life.forget()
    return life


def main(first: int, last: int) -> None:
    failed_number = 0
    for seed in range(first, last + 1):
        try:
            live(seed)
        except Exception as error:
            failed_number += 1
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
            if first == last:
                traceback.print_exc()
    print(f"{last - first + 1 - failed_number} of {last - first + 1} lives were forgotten clean")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

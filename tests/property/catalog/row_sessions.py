"""Up to seven sessions that change rows of one table at once, as an engine does, held against their commits' order.

A statement is prepared on the version that its session has loaded, and committed when others have gone on: as an
engine does, or by `Table.merge`, `update` and `delete`. Whatever is acknowledged must be what the same statement
makes of the rows at that moment, ids and versions of the rows included.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
from tests.integration.catalog.rows_changed import positions

from lakelog.catalog import Catalog, CommitConflict, Table, col, engine
from lakelog.catalog.core.files.data_file import file_path
from lakelog.catalog.core.parquet.reading import read_files
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.core.schema.predicate import Column, Predicate, literal
from lakelog.catalog.core.writes import RewrittenFiles
from lakelog.catalog.engine import DataFile
from lakelog.log import WriteRef

SCHEMA = pa.schema({"k": pa.int64(), "g": pa.int64(), "v": pa.int64()})
SESSIONS = 7
STATEMENTS = 12
KEYS, GROUPS = 14, 3

Values = tuple[int, int]
"""Of a key: its group and value."""
Rows = dict[int, Values]
Test = Callable[[int, Values], bool]
Effect = dict[int, tuple[Values | None, Values | None]]
"""Of each key that a statement changes: its values before and after."""


@dataclass(frozen=True)
class Condition:
    """What a row has to satisfy, what an engine sends of it, which may hold for more rows, and what Python says of it,
    which holds for the same ones; None if it has no form there."""

    test: Test
    sent: Predicate | None
    said: Predicate | None


@dataclass(frozen=True)
class Statement:
    """`of` makes the rows after the statement of those before it; the keys it inserts may have been there before.

    `python` does the same from Python, if that can be said there."""

    operation: str
    condition: Condition
    of: Callable[[Rows], Rows]
    depends: bool = False
    python: Callable[[Table], Table] | None = None


@dataclass(frozen=True)
class Prepared:
    statement: Statement
    table: Table
    commit: Callable[[], Table]
    paths: frozenset[str]
    effect: Effect


@dataclass
class World:
    seed: int
    isolation: str
    mode: str
    from_python: bool = False
    """Whether Python makes the statements, as far as it can, in place of an engine."""
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.catalog = Catalog(f"memory://{uuid.uuid4().hex}")
        modes = {f"lakelog.write.{operation}.mode": self.mode for operation in ("delete", "update", "merge")}
        properties = {"lakelog.isolation": self.isolation, **modes}
        self.table = self.catalog.create_table("t", SCHEMA, properties=properties)
        self.rows: Rows = {}
        keys = list(range(0, KEYS, 1))
        self.rng.shuffle(keys)
        keys = keys[: KEYS - 4]
        size = self.rng.choice((3, 5, len(keys)))
        for first in range(0, len(keys), size):
            self.append({key: (self.rng.randrange(GROUPS), 0) for key in keys[first : first + size]})
        self.first = self.newest.version
        self.ids = self.seen_ids()
        self.past = {self.first: (dict(self.rows), self.ids)}

    @property
    def newest(self) -> Table:
        return self.catalog.load_table("t")

    def append(self, rows: Rows) -> None:
        self.newest.append(as_arrow(rows))
        self.rows |= rows

    def seen_ids(self) -> dict[int, tuple[int, int]]:
        columns = self.newest.scan(row_ids=True).to_arrow().to_pydict()
        return dict(
            zip(columns["k"], zip(columns["_row_id"], columns["_row_version"], strict=True), strict=True)
        )

    # A run

    def run(self) -> None:
        remaining_statements, appended_number = STATEMENTS, 100
        waiting: list[Prepared] = []
        compactions: list[Callable[[], None]] = []
        while remaining_statements or waiting or compactions:
            if compactions and self.rng.random() < 0.2:
                compactions.pop(self.rng.randrange(len(compactions)))()
            chance = self.rng.random()
            if remaining_statements and len(waiting) < SESSIONS and chance < 0.6:
                prepare = self.prepare(random_statement(self.rng, self.isolation))
                waiting += [prepare] if prepare is not None else []
                remaining_statements -= 1
            elif waiting and chance < 0.86:
                self.commit(waiting.pop(self.rng.randrange(len(waiting))))
            elif chance < 0.9:
                self.compact()
            elif chance < 0.95:
                compactions.append(self.prepare_compaction())
            elif chance < 0.96:
                self.go_back()
            elif self.isolation == "serializable":
                self.append({appended_number: (self.rng.randrange(GROUPS), 0)})
                self.ids = self.seen_ids()
                appended_number += 1
        table = self.newest
        # What a conflict or an emptied copy has left over waits for vacuum.
        assert {finding.kind for finding in self.catalog.fsck(deep=True).found} <= {"data-file-unused"}
        self.check_changes(table)

    def compact(self) -> None:
        ids_before = self.seen_ids()
        self.newest.compact(deleted_ratio=self.rng.choice((0.0, 0.5)))
        assert self.seen_ids() == ids_before
        self.counts["compactions"] += 1

    def prepare_compaction(self) -> Callable[[], None]:
        """Rewrite some files in groups, as an engine does; return how that is committed when others have gone on."""
        table = self.newest
        live = placed(table)
        paths = self.rng.sample(sorted(live), self.rng.randint(1, len(live)) if live else 0)
        cut = self.rng.randint(0, len(paths))
        write, groups = engine.begin_write(table), []
        for number, removed_paths in enumerate((paths[:cut], paths[cut:])):
            rows = [row for path in removed_paths for row in live[path].values()]
            if self.rng.random() < 0.5:
                self.rng.shuffle(rows)
            if rows:
                files = [renamed_file(table, write, file, number) for file in write_rows(table, write, rows)]
                groups.append(RewrittenFiles(removed_paths, files))

        def commit() -> None:
            if not groups:
                return
            ids_before = self.seen_ids()
            current_table, lost_numbers = engine.commit_compaction(table, write, groups)
            assert self.seen_ids() == ids_before, (
                f"seed {self.seed}: a compaction of {table.version} changed rows"
            )
            live = set(current_table.plan()["path"].to_pylist())
            for at, group in enumerate(groups):
                assert at in lost_numbers or live.isdisjoint(group.removed)
                self.counts["groups lost" if at in lost_numbers else "groups"] += 1

        return commit

    def go_back(self) -> None:
        version = self.rng.choice(sorted(self.past))
        self.newest.set_current_version(version)
        self.rows, self.ids = dict(self.past[version][0]), self.past[version][1]
        assert rows_of(self.newest) == self.rows
        self.counts["ways back"] += 1

    def commit(self, prepared: Prepared) -> None:
        current_table = self.newest
        since = current_table.version - prepared.table.version
        expected = prepared.statement.of(dict(self.rows))
        operation = prepared.statement.operation
        try:
            table = prepared.commit()
        except CommitConflict:
            assert since, "a statement conflicts with nothing"
            self.counts[f"conflict: {operation}"] += 1
            self.counts["needless conflicts"] += effect(self.rows, expected) == prepared.effect
            return
        is_changed = table.version > current_table.version
        if since and is_changed:
            self.counts[f"over others: {operation}"] += 1
            shared_paths = prepared.paths - set(current_table.plan()["path"].to_pylist())
            self.counts["over rewritten files"] += bool(shared_paths)
        rows = rows_of(table)
        assert rows == expected, (
            f"seed {self.seed}: {operation} of version {prepared.table.version} makes {rows} at {table.version}, "
            f"and {expected} in the order of commits"
        )
        self.check_ids(expected, table.version)
        self.rows = expected
        self.past[table.version] = (dict(expected), self.ids)

    def check_ids(self, expected: Rows, version: int) -> None:
        """Hold ids and versions against what the statement has done to each row."""
        ids = self.seen_ids()
        assert len({id for id, _ in ids.values()}) == len(ids), "a row id is there twice"
        newest = max(
            (id for _, known_pairs in self.past.values() for id, _ in known_pairs.values()), default=-1
        )
        for key, values in expected.items():
            id, of = ids[key]
            if key not in self.rows:
                assert of == version and id > newest, f"the new row {key} has another row's id"
            else:
                assert id == self.ids[key][0], f"the row {key} has got another id"
                if values == self.rows[key]:
                    # An update may write what was there.
                    assert of in (version, self.ids[key][1])
                else:
                    assert of == version, f"the changed row {key} has an old version"
        self.ids = ids

    def check_changes(self, table: Table) -> None:
        """What the changes since the first version say makes the last one of it."""
        start: Counter[tuple[int, int, int]] = Counter(
            tuples(self.catalog.load_table("t", version=self.first))
        )
        for row in table.changes(self.first + 1).to_arrow().to_pylist():
            sign = -1 if row["_change_type"] in ("delete", "update_preimage") else 1
            start[(row["k"], row["g"], row["v"])] += sign
        assert +start == Counter(tuples(table)) and not -start, (
            f"seed {self.seed}: changes of rows are others"
        )

    # As an engine

    def prepare(self, statement: Statement) -> Prepared | None:
        """Return None for a statement that changes nothing: it makes no commit, and happened when it was prepared."""
        table = self.newest
        files = placed(table)
        pairs_before = {row[0]: (row[1], row[2]) for rows in files.values() for row in rows.values()}
        pairs_after = statement.of(dict(pairs_before))
        operation = statement.operation
        if self.from_python and statement.python is not None:
            return self.prepare_in_python(statement, table, files, effect(pairs_before, pairs_after))
        mode = self.mode if operation == "delete" or self.rng.random() < 0.8 else "merge-on-read"
        hit = {
            path: {at: row for at, row in rows.items() if pairs_after.get(row[0]) != (row[1], row[2])}
            for path, rows in files.items()
        }
        hit = {path: rows for path, rows in hit.items() if rows}
        write = engine.begin_write(table)
        written: list[tuple[int, int, int, int | None, int | None]] = []
        removed_hit: list[str] = []
        if mode == "copy-on-write":
            removed_hit = sorted(hit)
            if self.rng.random() < 0.3 and len(files) > len(removed_hit):
                removed_hit.append(self.rng.choice(sorted(files.keys() - set(removed_hit))))
            kept_rows = [
                row for path in removed_hit for at, row in files[path].items() if at not in hit.get(path, ())
            ]
            written += kept_rows
        changed_rows = [row for rows in hit.values() for row in rows.values() if row[0] in pairs_after]
        written += [(row[0], *pairs_after[row[0]], row[3], None) for row in changed_rows]
        written += [
            (key, *values, None, None) for key, values in pairs_after.items() if key not in pairs_before
        ]
        data = write_rows(table, write, written)
        deletes = (
            [] if removed_hit or mode == "copy-on-write" else [positions(p, rows) for p, rows in hit.items()]
        )

        if not (data or removed_hit or deletes):
            return None

        def commit() -> Table:
            return engine.commit_rows(table, 
                write, operation, data, removed=removed_hit, deletes=deletes,
                condition=statement.condition.sent, reads_others=False,
            )  # fmt: skip

        return Prepared(statement, table, commit, frozenset(hit), effect(pairs_before, pairs_after))

    def prepare_in_python(
        self, statement: Statement, table: Table, files: Mapping[str, Mapping[int, Placed]], effect: Effect
    ) -> Prepared | None:
        run = statement.python
        assert run is not None
        self.counts[f"from Python: {statement.operation}"] += 1
        paths = {path for path, rows in files.items() if any(row[0] in effect for row in rows.values())}
        return Prepared(statement, table, lambda: run(table), frozenset(paths), effect) if effect else None


def effect(before: Rows, after: Rows) -> Effect:
    keys = before.keys() | after.keys()
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


# Statements


def random_condition(rng: random.Random) -> Condition:
    column = rng.choice("kkgv")
    kind = rng.randrange(5)
    at = {"k": 0, "g": 1, "v": 2}[column]

    def value(key: int, row: Values) -> int:
        return (key, *row)[at]

    def plain(test: Test, predicate: Predicate) -> Condition:
        return Condition(test, predicate, predicate)

    limit = {"k": KEYS, "g": GROUPS, "v": 3}[column]
    if kind == 0:
        low = rng.randrange(limit)
        high = low + rng.randrange(1, 4)
        return plain(lambda k, r: low <= value(k, r) < high, (col(column) >= low) & (col(column) < high))
    if kind == 1:
        few = rng.sample(range(limit), min(limit, rng.randint(1, 3)))
        return plain(lambda k, r: value(k, r) in few, col(column).is_in(few))
    if kind == 2:
        remaining_number = rng.randrange(3)
        # An engine's function is not evaluated.
        mod = Predicate("=", (Predicate("%", (Column((column,)), literal(3))), literal(remaining_number)))
        sent_predicate = rng.choice([mod, None])
        return Condition(lambda k, r: value(k, r) % 3 == remaining_number, sent_predicate, None)
    if kind == 3:
        first_random_condition, other_random_condition = random_condition(rng), random_condition(rng)
        sent_predicate = rng.choice(
            [first_random_condition.sent, _both(first_random_condition.sent, other_random_condition.sent)]
        )
        return Condition(
            lambda k, r: first_random_condition.test(k, r) and other_random_condition.test(k, r),
            sent_predicate,
            _both(first_random_condition.said, other_random_condition.said),
        )
    one_key = rng.randrange(limit)
    return plain(lambda k, r: value(k, r) == one_key, col(column) == one_key)


def _both(one: Predicate | None, other: Predicate | None) -> Predicate | None:
    return None if one is None or other is None else one & other


def random_statement(rng: random.Random, isolation: str) -> Statement:
    kind = rng.choice(("update", "update", "delete", "merge", "merge"))
    if kind == "merge":
        return random_merge(rng, isolation)
    condition = random_condition(rng)
    predicate = condition.said
    if kind == "delete":
        return Statement(
            kind,
            condition,
            lambda rows: {k: r for k, r in rows.items() if not condition.test(k, r)},
            python=None if predicate is None else lambda table: table.delete(predicate),
        )
    group, more = rng.choice((None, rng.randrange(GROUPS))), rng.randint(1, 2)

    def updated_rows(rows: Rows) -> Rows:
        new = {
            k: (r[0] if group is None else group, r[1] + more)
            for k, r in rows.items()
            if condition.test(k, r)
        }
        return {**rows, **new}

    values = {"v": f"v + {more}", **({} if group is None else {"g": group})}
    return Statement(
        kind,
        condition,
        updated_rows,
        python=None if predicate is None else lambda table: table.update(values, predicate),
    )


def random_merge(rng: random.Random, isolation: str) -> Statement:
    source = {key: rng.randrange(GROUPS) for key in rng.sample(range(KEYS), rng.randint(1, 4))}
    inserts = rng.random() < 0.7
    # Under snapshot isolation, rows that a statement has only looked at may change.
    only = rng.choice((None, rng.randrange(GROUPS))) if isolation == "serializable" else None
    deletes = rng.random() < 0.2
    group = rng.random() < 0.5

    def merged_rows(rows: Rows) -> Rows:
        new = dict(rows)
        for key, value in source.items():
            if key in rows:
                if only is None or rows[key][0] == only:
                    if deletes:
                        del new[key]
                    else:
                        new[key] = (value if group else rows[key][0], rows[key][1] + 1)
            elif inserts:
                new[key] = (value, 1)
        return new

    sent_predicate = col("k").is_in(sorted(source))
    if len(source) > 3:
        sent_predicate = (col("k") >= min(source)) & (col("k") <= max(source))

    def by_python(table: Table) -> Table:
        rows = pa.table({"k": list(source), "g": list(source.values())}, schema=pa.schema(list(SCHEMA)[:2]))
        merge = table.merge(rows, on="k")
        predicate = None if only is None else f"target.g = {only}"
        values = {"v": "target.v + 1", **({"g": "source.g"} if group else {})}
        merge = (
            merge.when_matched_delete(predicate) if deletes else merge.when_matched_update(values, predicate)
        )
        if inserts:
            merge = merge.when_not_matched_insert({"k": "source.k", "g": "source.g", "v": 1})
        return merge.execute()

    return Statement(
        "merge", Condition(lambda k, r: k in source, sent_predicate, None), merged_rows, python=by_python
    )


# Rows

Placed = tuple[int, int, int, int | None, int | None]


def placed(table: Table) -> dict[str, dict[int, Placed]]:
    """Return the live rows of each file, by their positions, with their ids and versions."""
    found: dict[str, dict[int, Placed]] = {}
    plan, head = table.plan(), table.table_head
    entries = head.entries(plan["path"].to_pylist())
    for index, path in enumerate(plan["path"].to_pylist()):
        schema, batches = read_files(
            head.tracked.store,
            head.tracked.prefix,
            plan.slice(index, 1),
            table.schema,
            table.metadata.specs,
            row_ids=True,
        )
        rows = pa.Table.from_batches(list(batches), schema=schema).to_pydict()
        deleted_vector = vector_of(table, entries[path])
        live = [at for at in range(entries[path].physical_rows) if at not in deleted_vector]
        found[path] = dict(zip(live, zip(*rows.values(), strict=True), strict=True))
    return found


def vector_of(table: Table, file: DataFile) -> Any:
    from lakelog.catalog.core.logs import read_vector

    return read_vector(
        table.table_head.tracked.store, table.table_head.tracked.prefix, file.deletes, file.physical_rows
    )


def write_rows(table: Table, write: WriteRef, rows: list[Any]) -> list[DataFile]:
    schema = pa.schema([*SCHEMA, ("_row_id", pa.int64()), ("_row_version", pa.int64())])
    if not rows:
        return []
    data = pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)
    metadata, log = table.metadata, table.table_head.tracked
    return write_files(
        log.store, log.prefix, write, data.to_reader(), metadata.schema, metadata.spec, metadata.sort_order,
        properties={}, row_ids=True,
    )  # fmt: skip


def renamed_file(table: Table, write: WriteRef, file: DataFile, number: int) -> DataFile:
    """Return a file under a name of its own: each call of `write_rows` begins to count its files anew."""
    store, prefix, path = (
        table.table_head.tracked.store,
        table.table_head.tracked.prefix,
        file_path(write, f"g{number}"),
    )
    store.put(f"{prefix}/{path}", store.get(f"{prefix}/{file.path}"))
    return msgspec.structs.replace(file, path=path)


def as_arrow(rows: Mapping[int, Values]) -> pa.Table:
    return pa.table(
        {"k": list(rows), "g": [g for g, _ in rows.values()], "v": [v for _, v in rows.values()]},
        schema=SCHEMA,
    )


def tuples(table: Table) -> list[tuple[int, int, int]]:
    columns = table.to_arrow().to_pydict()
    return list(zip(columns["k"], columns["g"], columns["v"], strict=True))


def rows_of(table: Table) -> Rows:
    found = tuples(table)
    assert len({key for key, _, _ in found}) == len(found), f"a row is there twice: {sorted(found)}"
    return {key: (group, value) for key, group, value in found}

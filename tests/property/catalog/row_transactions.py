"""Transactions of several statements about two tables, beside statements of others and compactions of their files.

A transaction begins, makes its statements one after the other, each on what it sees by then, and commits when others
have gone on. What it reads is its own cut with its own changes, whatever others do. What is acknowledged must be what
the same statements make of the rows at that moment. If others have only moved rows, it must be acknowledged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.property.catalog import row_sessions
from tests.property.catalog.row_sessions import (
    GROUPS,
    Rows,
    Statement,
    as_arrow,
    random_condition,
    random_statement,
    rows_of,
)

from lakelog.catalog import CommitConflict, Table, Transaction, engine

TABLES = ("t", "u")
CHANGING = ("delete", "update", "merge")
MODES = ("copy-on-write", "merge-on-read")
TRANSACTIONS = 7
AT_ONCE = 3
OTHERS = 6


@dataclass
class Open:
    """A transaction under way: what it sees of each table, and what it has done to each, in its order."""

    transaction: Transaction
    seen: dict[str, Rows]
    done: list[tuple[str, Callable[[Rows], Rows]]] = field(default_factory=list)
    appended: set[int] = field(default_factory=set)
    later: set[int] = field(default_factory=set)
    """Keys that others have appended since it began: under snapshot isolation, they come after it."""
    is_disturbed: bool = False
    """Whether others have changed rows of a table that it changes since it began."""


class World(row_sessions.World):
    """`others`: whether there is anything else than transactions and compactions."""

    def __init__(self, seed: int, isolation: str, *, others: bool) -> None:
        super().__init__(seed, isolation, MODES[0], from_python=True)
        self.others = others
        self.catalog.create_table("u", row_sessions.SCHEMA, properties={"lakelog.isolation": isolation})
        for name in TABLES:
            modes = {f"lakelog.write.{text}.mode": self.rng.choice(MODES) for text in CHANGING}
            self.catalog.load_table(name).alter(
                [{"change": "set-property", "key": key, "value": mode} for key, mode in modes.items()]
            )
        self.model: dict[str, Rows] = {"t": dict(self.rows), "u": {}}
        for first in range(0, 6, 3):
            rows = {200 + key: (self.rng.randrange(GROUPS), 0) for key in range(first, first + 3)}
            self.catalog.load_table("u").append(as_arrow(rows))
            self.model["u"] |= rows
        self.open: list[Open] = []
        self.keys = 300
        self.firsts = {name: self.catalog.load_table(name).version for name in TABLES}
        self.starts = {name: dict(rows) for name, rows in self.model.items()}

    def run(self) -> None:
        remaining_transactions, other_numbers = TRANSACTIONS, OTHERS if self.others else 0
        while remaining_transactions or self.open:
            chance = self.rng.random()
            if remaining_transactions and len(self.open) < AT_ONCE and chance < 0.2:
                self.open.append(self.begin())
                remaining_transactions -= 1
            elif self.open and chance < 0.5:
                self.step(self.rng.choice(self.open))
            elif self.open and chance < 0.6:
                self.end(self.open.pop(self.rng.randrange(len(self.open))))
            elif chance < 0.8:
                self.move_rows(self.rng.choice(TABLES))
            elif other_numbers:
                other_numbers -= 1
                self.other(self.rng.choice(TABLES))
        for name in TABLES:
            self.check_changes_of(name)
        # Hints are written in the background.
        kinds = {finding.kind for finding in self.catalog.fsck(deep=True).found}
        assert kinds <= {"data-file-unused", "hint-missing"}

    def move_rows(self, name: str) -> None:
        table = self.catalog.load_table(name)
        ids_before = ids_of(table)
        if self.rng.random() < 0.3:
            groups = self.rng.choice((0.0, 0.5))
            table.compact(deleted_ratio=groups)
        else:
            self.move_some(table)
        assert ids_of(self.catalog.load_table(name)) == ids_before, (
            f"seed {self.seed}: a compaction changed rows"
        )
        self.counts["compactions"] += 1

    def move_some(self, table: Table) -> None:
        """Rewrite any files in any order, as clustering does."""
        live = row_sessions.placed(table)
        # Names of files differ from run to run.
        known_texts = sorted(live, key=lambda path: min(live[path].values(), default=(0,)))
        paths = self.rng.sample(known_texts, self.rng.randint(1, len(live)) if live else 0)
        rows = [row for path in paths for row in live[path].values()]
        self.rng.shuffle(rows)
        if rows:
            write = engine.begin_write(table)
            engine.commit_rows(
                table, write, "compact", row_sessions.write_rows(table, write, rows), removed=paths
            )

    def other(self, name: str) -> None:
        """One statement of another client: that is a change of rows, or nothing."""
        table, rows = self.catalog.load_table(name), self.model[name]
        statement = random_statement(self.rng, self.isolation)
        if statement.python is None:
            return
        statement.python(table)
        pairs_after = statement.of(dict(rows))
        assert rows_of(self.catalog.load_table(name)) == pairs_after
        if pairs_after != rows:
            self.changed(name)
        self.model[name] = pairs_after
        self.counts["others"] += 1

    def changed(self, name: str) -> None:
        for each in self.open:
            each.is_disturbed = True

    # Transactions

    def begin(self) -> Open:
        transaction = self.catalog.begin(self.rng.choice((None, self.isolation)))
        # Of a table, a transaction sees the version that was the newest when it first loaded it.
        seen_rows = {name: rows_of(transaction.load_table(name)) for name in TABLES}
        assert seen_rows == self.model
        return Open(transaction, seen_rows)

    def step(self, open: Open) -> None:
        name = self.rng.choice(TABLES)
        statement = self.statement(open.seen[name])
        if statement is None:
            return
        label, run, of = statement
        table = open.transaction.load_table(name)
        if self.rng.random() < 0.3:
            assert rows_of(table) == open.seen[name], f"seed {self.seed}: a transaction sees others' changes"
        run(table)
        numbers_before = set(open.seen[name])
        open.seen[name] = of(dict(open.seen[name]))
        rows = rows_of(open.transaction.load_table(name))
        assert rows == open.seen[name], f"seed {self.seed}: {label} makes {rows}, not {open.seen[name]}"
        open.done.append((name, of))
        if label == "append":
            open.appended |= open.seen[name].keys() - numbers_before
        self.counts[f"step: {label}"] += 1

    def statement(self, rows: Rows) -> tuple[str, Callable[[Table], object], Callable[[Rows], Rows]] | None:
        chance = self.rng.random()
        if chance < 0.65:
            statement: Statement = random_statement(self.rng, self.isolation)
            by_python = statement.python
            return None if by_python is None else (statement.operation, by_python, statement.of)
        new = {self.keys + at: (self.rng.randrange(GROUPS), 0) for at in range(self.rng.randint(1, 3))}
        if chance < 0.8:
            self.keys += len(new)
            return "append", lambda table: table.append(as_arrow(new)), lambda rows: {**rows, **new}
        if chance < 0.85:
            self.keys += len(new)
            return "overwrite all", lambda table: table.overwrite(as_arrow(new)), lambda rows: dict(new)
        if chance < 0.88:
            return "truncate", lambda table: table.truncate(), lambda rows: {}
        condition = random_condition(self.rng)
        predicate = condition.said
        if predicate is None:
            return None
        # New rows need not match.
        self.keys += len(new)
        return (
            "overwrite",
            lambda table: table.overwrite(as_arrow(new), predicate),
            lambda rows: {**{k: r for k, r in rows.items() if not condition.test(k, r)}, **new},
        )

    def end(self, open: Open) -> None:
        later = open.later if self.isolation == "snapshot" else set()
        expected = {name: without(rows, later) for name, rows in self.model.items()}
        for name, of in open.done:
            expected[name] = of(expected[name])
        for name, rows in self.model.items():
            expected[name] |= {key: values for key, values in rows.items() if key in later}
        versions = self.versions()
        try:
            open.transaction.commit()
        except CommitConflict:
            assert open.is_disturbed, f"seed {self.seed}: a transaction failed over moved rows alone"
            self.counts["conflicts"] += 1
            return
        self.counts["committed"] += 1
        if self.versions() == versions:
            # It has only read: then it happened when it began.
            expected = self.model
        self.counts["committed over others"] += open.is_disturbed
        for name in TABLES:
            found_rows = rows_of(self.catalog.load_table(name))
            assert found_rows == expected[name], (
                f"seed {self.seed}: a transaction of {len(open.done)} steps makes {found_rows} of {name}, and "
                f"{expected[name]} in the order of commits"
            )
            ids = ids_of(self.catalog.load_table(name))
            assert len({id for id, _ in ids.values()}) == len(ids), "a row id is there twice"
        if expected != self.model:
            for name in TABLES:
                self.changed(name)
        for each in self.open:
            each.later |= open.appended
        self.model = expected

    def versions(self) -> list[int]:
        return [self.catalog.load_table(name).version for name in TABLES]

    def check_changes_of(self, name: str) -> None:
        """What the changes since the first version say makes the last one of it."""
        remaining_keys = Counter((key, *values) for key, values in self.starts[name].items())
        table = self.catalog.load_table(name)
        for row in (
            table.changes(self.firsts[name] + 1).to_arrow().to_pylist()
            if table.version > self.firsts[name]
            else ()
        ):
            sign = -1 if row["_change_type"] in ("delete", "update_preimage") else 1
            remaining_keys[(row["k"], row["g"], row["v"])] += sign
        keys = Counter((key, *values) for key, values in rows_of(table).items())
        assert +remaining_keys == keys and not -remaining_keys, (
            f"seed {self.seed}: changes of rows of {name} are others"
        )


def without(rows: Rows, keys: set[int]) -> Rows:
    return {key: values for key, values in rows.items() if key not in keys}


def ids_of(table: Table) -> dict[int, tuple[int, int]]:
    columns = table.scan(row_ids=True).to_arrow().to_pydict()
    return dict(zip(columns["k"], zip(columns["_row_id"], columns["_row_version"], strict=True), strict=True))

"""A table that a hand-written client and lakelog change in turn, at random, beside a plain model.

After each step lakelog has the rows of the model on every tag and branch, and other readers find the same.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.commits.handwriting import HandWriter, part, ref_set
from tests.integration.iceberg.commits.test_forged_commits import is_clean
from tests.integration.iceberg.readers import by_duckdb, by_pyiceberg

MAIN = "main"
SHORT = range(1, 3)
FULL = range(SHORT.stop, 200)
STEPS = 12


class ClientLife:
    """A table, and the rows that each of its lines and snapshots should have."""

    def __init__(self, warehouse: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.client = HandWriter(warehouse)
        assert self.client.create(version=self.chance.choice([2, 3]))[0] == 200
        self.rows: dict[str, list[int]] = {MAIN: []}
        self.kinds = {MAIN: "branch"}
        self.snapshots: dict[int, list[int]] = {}
        self.next_id = 1
        self.steps_done: list[str] = []
        self.append()
        self.note_snapshots()
        self.set_ref("a")

    def new_ids(self) -> list[int]:
        count = self.chance.randint(1, 3)
        self.next_id += count
        return list(range(self.next_id - count, self.next_id))

    def branch(self) -> str:
        return self.chance.choice([name for name, kind in self.kinds.items() if kind == "branch"])

    def step(self) -> None:
        steps = [self.append, self.delete, self.overwrite, self.set_ref, self.drop_ref, self.roll_back]
        steps += [self.change_places, self.append_by_lakelog, self.delete_by_lakelog, self.compact]
        (chosen,) = self.chance.choices(steps, [5, 3, 1, 5, 1, 3, 3, 1, 1, 1])
        self.steps_done.append(chosen.__name__)
        chosen()
        self.note_snapshots()

    def note_snapshots(self) -> None:
        for name, ref in self.client.metadata["refs"].items():
            self.snapshots[ref["snapshot-id"]] = self.rows[name]

    # Steps of the client

    def append(self) -> None:
        """Append rows to a branch. A tag may keep the rows of before, in the same commit."""
        line, ids, others = self.branch(), self.new_ids(), []
        refs = self.client.metadata["refs"]
        if line in refs and self.chance.random() < 0.4:
            others = [ref_set("before", refs[line]["snapshot-id"], "tag")]
            self.rows["before"], self.kinds["before"] = self.rows[line], "tag"
        self.taken(self.client.commit([self.client.ids(*ids)], line=line, others=others))
        self.rows[line] = sorted(self.rows[line] + ids)

    def files(self, line: str) -> list[tuple[str, int]]:
        """Return the files of a line without deleted rows, with their numbers of rows."""
        table = self.client.catalog.load_table("ns.t")
        head = (table if line == MAIN else table.at(ref=line)).table_head
        rows = head.all_files().to_pylist()
        return [(row["path"], row["rows"]) for row in rows if not row.get("deleted")]

    def delete(self) -> None:
        """Delete a row of a file, by a vector or by its position."""
        line = self.branch()
        files = [(path, count) for path, count in self.files(line) if count > 1]
        if not files:
            return
        path, count = self.chance.choice(files)
        place, position = f"{self.client.metadata['location']}/{path}", self.chance.randrange(count)
        if self.chance.random() < 0.5:
            entry = self.client.vector(place, [position])
        else:
            entry = self.client.positions(pa.table({"file_path": [place], "pos": [position]}))
        before = self.client.rows(line)
        self.taken(self.client.commit(deletes=[entry], line=line))
        after = self.client.rows(line)
        # The model does not know the order of rows in files, so lakelog says which row it was.
        assert len(after) == len(before) - 1 and set(after) < set(before)
        self.rows[line] = after

    def overwrite(self) -> None:
        line, ids = self.branch(), self.new_ids()
        if self.chance.random() < 0.3:
            return self.overwrite_without_texts(line, ids)
        status, answer = self.client.commit([self.client.ids(*ids)], line=line, keeps=lambda record: False)
        self.taken((status, answer))
        self.rows[line] = ids

    def overwrite_without_texts(self, line: str, ids: list[int]) -> None:
        """Replace the rows of a branch by rows without texts, which is refused if a row has a text."""
        table = self.client.catalog.load_table("ns.t")
        texts = (table if line == MAIN else table.at(ref=line)).scan().to_arrow()["s"]
        rows = pa.table({"id": ids}, schema=pa.schema([part("id", pa.int64(), 1)]))
        entry = self.client.entry(self.client.file(rows))
        status, answer = self.client.commit([entry], line=line, keeps=lambda record: False)
        if texts.null_count < len(texts):
            assert status == 409 and "lacks the column s" in answer["message"], answer
        else:
            self.taken((status, answer))
            self.rows[line] = ids

    def set_ref(self, name: str | None = None) -> None:
        name = name or self.chance.choice(["a", "b", "t", "u"])
        kind = "branch" if name in ("a", "b") else "tag"
        listed = {snapshot["snapshot-id"] for snapshot in self.client.metadata["snapshots"]}
        id = self.chance.choice(sorted(self.snapshots.keys() & listed))
        self.taken(self.client.send(ref_set(name, id, kind)))
        self.rows[name], self.kinds[name] = self.snapshots[id], kind

    def drop_ref(self) -> None:
        names = sorted(self.rows.keys() - {MAIN})
        if names:
            name = self.chance.choice(names)
            self.taken(self.client.send({"action": "remove-snapshot-ref", "ref-name": name}))
            del self.rows[name], self.kinds[name]

    def roll_back(self) -> None:
        listed = {snapshot["snapshot-id"] for snapshot in self.client.metadata["snapshots"]}
        id = self.chance.choice(sorted(self.snapshots.keys() & listed))
        self.taken(self.client.send(ref_set(MAIN, id)))
        self.rows[MAIN] = self.snapshots[id]

    def change_places(self) -> None:
        refs = self.client.metadata["refs"]
        names = [name for name, kind in self.kinds.items() if kind == "branch" and name in refs]
        if len(names) < 2:
            return
        one, other = self.chance.sample(names, 2)
        ids = refs[one]["snapshot-id"], refs[other]["snapshot-id"]
        self.taken(self.client.send(ref_set(one, ids[1]), ref_set(other, ids[0])))
        self.rows[one], self.rows[other] = self.rows[other], self.rows[one]

    # Steps of lakelog

    def append_by_lakelog(self) -> None:
        line, ids = self.branch(), self.new_ids()
        table = self.client.catalog.load_table("ns.t")
        (table if line == MAIN else table.at(ref=line)).append(
            pa.table({"id": ids, "s": [str(id) for id in ids]})
        )
        self.rows[line] = sorted(self.rows[line] + ids)

    def delete_by_lakelog(self) -> None:
        line = self.branch()
        if self.rows[line]:
            id = self.chance.choice(self.rows[line])
            table = self.client.catalog.load_table("ns.t")
            (table if line == MAIN else table.at(ref=line)).delete(f"id = {id}")
            self.rows[line] = [other for other in self.rows[line] if other != id]

    def compact(self) -> None:
        self.client.catalog.load_table("ns.t").compact()

    # Checks

    def taken(self, answer: tuple[int, Any]) -> None:
        assert answer[0] == 200, answer

    def check(self) -> None:
        url, metadata = self.client.loaded()
        for line, rows in self.rows.items():
            assert self.client.rows(line) == rows, line
            ref = metadata["refs"].get(line)
            if ref is None:
                assert rows == [], line  # a line without any snapshot
                continue
            for read in (by_pyiceberg, by_duckdb):
                assert sorted(read(url, ref["snapshot-id"])["id"].to_pylist()) == rows, (line, read)
        assert is_clean(self.client.catalog)


def live(folder: Path, seed: int) -> None:
    life = ClientLife(str(folder / "w"), seed)
    try:
        for _ in range(STEPS):
            life.step()
            life.check()
    except Exception as error:
        raise AssertionError(f"seed {seed}, after {', '.join(life.steps_done)}: {error}") from error


@pytest.mark.parametrize("seed", SHORT)
def test_clients_and_lakelog_find_the_same_rows_on_all_lines(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed)


@pytest.mark.slow
def test_clients_and_lakelog_find_the_same_rows_in_hundreds_of_lives(tmp_path: Path) -> None:
    for seed in FULL:
        live(tmp_path / str(seed), seed)

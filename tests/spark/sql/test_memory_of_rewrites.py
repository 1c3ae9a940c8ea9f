"""No data of a table's size passes through the Python process: executors read and write the rewritten files.

The process is asked itself, as the one that tests can kill is a stand-in for it (see `tests.spark.warm`): it writes its
id into a file. How much it has read and written is what the kernel counts of it, over all its files, pipes and sockets:
the table is more than ten times that. How much memory it needed is the kernel's peak. Modules and buffers raise that by
some megabytes, too, when they are first needed, so it has to stay far below the table's size.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog

pytestmark = pytest.mark.adapter

ROWS, VALUE_BYTES = 6_000, 10_000
LIMIT_BYTES = ROWS * VALUE_BYTES // 10


@pytest.fixture
def lake(make_lake, warm, tmp_path):
    """A catalog, whose Python side writes its process id to a file."""
    place = str(tmp_path / "process")
    lake = make_lake(
        python=warm.program(tmp_path, f"import os\nopen({place!r}, 'w').write(str(os.getpid()))")
    )
    lake.sql("CREATE NAMESPACE lake.n")
    return lake


def spent_by(process: Path) -> tuple[int, int]:
    """Return how many bytes a process has read and written so far, and the peak of its memory."""
    counts = dict(re.findall(r"^(\w+): (\d+)$", (process / "io").read_text(), re.MULTILINE))
    status = dict(re.findall(r"^(\w+):\s+(\d+) kB$", (process / "status").read_text(), re.MULTILINE))
    return int(counts["rchar"]) + int(counts["wchar"]), 1024 * int(status["VmHWM"])


def spent(lake) -> tuple[int, int]:
    return spent_by(Path("/proc") / (Path(lake.warehouse).parent / "process").read_text())


def table(lake, name, rows, bytes_each):
    """Rows that no codec makes smaller, in four files of one partition each, and a file that goes with each."""
    lake.sql(f"CREATE TABLE lake.n.{name} (id BIGINT, day INT, pad BINARY) PARTITIONED BY (day)")
    for key in ("lakelog.write.update.mode", "lakelog.write.delete.mode"):
        lake.sql(f"ALTER TABLE lake.n.{name} SET TBLPROPERTIES ('{key}' = 'copy-on-write')")
    random = f"unhex(sha2(concat(id, '{name}', n), 256))"
    pads = f"transform(sequence(1, {max(1, bytes_each // 32)}), n -> {random})"
    row = f"id, id % 2, aggregate({pads}, X'', (a, b) -> concat(a, b))"
    for first in (0, rows // 2):
        source = f"range({first}, {first + rows // 2})"
        lake.sql(f"INSERT INTO lake.n.{name} (id, day, pad) SELECT {row} FROM {source}")


STATEMENTS = {
    "an overwrite that cuts files": "INSERT INTO lake.n.{t} REPLACE WHERE id < 10 VALUES (1, 1, X'00')",
    "a compaction": "CALL lake.system.compact('n.{t}')",
    "a partition's new name": "ALTER TABLE lake.n.{t} PARTITION (day = 1) RENAME TO PARTITION (day = 7)",
    "a clustering": "CALL lake.system.cluster('n.{t}')",
    "a clone": "CREATE TABLE lake.n.{t}_c CLONE lake.n.{t}",
    "a clone that copies": "ALTER TABLE lake.n.{t}_c MATERIALIZE",
    "an erasure": "CALL lake.system.forget('n.{t}', 'id = 3 OR id BETWEEN 100 AND 150', dry_run => false)",
}


def run(lake, name):
    """Run all of the statements, and return what each has cost the process."""
    found = {}
    for what, text in STATEMENTS.items():
        if what == "a clustering":
            lake.sql(f"ALTER TABLE lake.n.{name} CLUSTER BY (id)")
        before, peak = spent(lake)
        lake.sql(text.format(t=name))
        after, highest = spent(lake)
        found[what] = (after - before, highest - peak)
    return found


def test_what_is_rewritten_does_not_pass_through_python(lake):
    table(lake, "small", 8, 32)
    run(lake, "small")  # what statements need however little there is: imports, buffers
    table(lake, "large", ROWS, VALUE_BYTES)
    total = sum(file.stat().st_size for file in Path(lake.warehouse).rglob("*.parquet"))
    assert total > 10 * LIMIT_BYTES * 0.9
    found = run(lake, "large")
    assert all(bytes < LIMIT_BYTES for bytes, _ in found.values()), found
    assert sum(peak for _, peak in found.values()) < 4 * LIMIT_BYTES, found
    for name in ("large", "large_c"):
        [(count, ids)] = [
            tuple(row) for row in lake.sql(f"SELECT count(*), count(DISTINCT id) FROM lake.n.{name}")
        ]
        assert count == ids and count > 0.9 * ROWS


def test_a_process_through_which_rows_pass_is_noticed(tmp_path):
    """This one is: a compaction in Python reads and writes all of them."""
    rows = [pa.table({"pad": [os.urandom(VALUE_BYTES) for _ in range(ROWS // 10)]}) for _ in range(2)]
    kept_table = Catalog(str(tmp_path), options={"fsync": "off"}).create_table("t", rows[0].schema)
    kept_table = kept_table.append(rows[0]).append(rows[1])
    before, _ = spent_by(Path("/proc/self"))
    assert len(kept_table.compact().plan()) == 1
    assert spent_by(Path("/proc/self"))[0] - before > LIMIT_BYTES

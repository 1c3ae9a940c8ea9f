"""All data files that readable versions ever had, as a check learns of them, commit by commit.

A table may have had millions. For each, eight bytes stay in memory: a hash of its path. It is enough to know
that some version needs an object. The commits' facts about the files are kept as compressed columns, if
requested.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.files import Hashes, deletes_from_json, hashes_of

PART_FILES = 50_000
"""About this many files are processed together."""

GATHERED_FILES = 4096

_STORED = pa.schema(
    [
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("rows", pa.int64()),
        ("crc", pa.int64()),
        ("footer_crc", pa.int64()),
        ("vectors", pa.list_(pa.string())),
    ]
)


@dataclass(slots=True)
class DataFileFacts:
    """A data file in the commits.

    `rows` includes rows that are deleted by any of `vectors` (JSON of `DeletionVector`).
    """

    size_bytes: int
    rows: int
    crc: int | None = None
    footer_crc: int | None = None
    vectors: frozenset[str] = frozenset()

    def objects(self) -> set[str]:
        """Return the paths of the objects that contain the vectors."""
        return {path for text in self.vectors if (path := deletes_from_json(text).path) is not None}


class RetainedFiles:
    """The files of a table. With `facts`, the facts about them are available."""

    def __init__(self, *, facts: bool = False) -> None:
        self._with_facts = facts
        self.forget()

    def forget(self) -> None:
        """Begin anew: versions that had these files have expired."""
        self._count = 0
        self._named = array("q")
        self._gathered: list[tuple[str, DataFileFacts]] = []
        self._packed: list[pa.Buffer] = []

    def __bool__(self) -> bool:
        return bool(self._named)

    def add(self, files: Mapping[str, DataFileFacts]) -> None:
        """Note files that a version has. A file of an earlier version may have other vectors now."""
        for path, facts in files.items():
            self._named.append(hash(path))
            if facts.vectors:
                self._named.extend(map(hash, facts.objects()))
            if self._with_facts:
                self._gathered.append((path, facts))
        if len(self._gathered) >= GATHERED_FILES:
            self._pack()

    def named(self) -> Hashes:
        """Return the hashes of the paths of all files, and of their vectors' objects, in order."""
        return np.unique(np.frombuffer(self._named, np.int64))

    def parts(self) -> Iterator[dict[str, DataFileFacts]]:
        """Yield the facts about the files, each once, with all of its vectors."""
        self._pack()
        count = -(-self._count // PART_FILES)
        for number in range(count):
            part: dict[str, DataFileFacts] = {}
            for batch in self._read():
                mine = np.flatnonzero(hashes_of(batch["path"].to_pylist()) % count == number)
                for row in batch.take(pa.array(mine)).to_pylist():
                    path, vectors = row.pop("path"), frozenset(row.pop("vectors"))
                    facts_so_far = part.get(path)
                    facts = DataFileFacts(**row, vectors=vectors)
                    part[path] = (
                        facts
                        if facts_so_far is None
                        else replace(facts, vectors=vectors | facts_so_far.vectors)
                    )
            yield part

    def _pack(self) -> None:
        if not self._gathered:
            return
        rows = [
            {
                "path": path,
                "size_bytes": facts.size_bytes,
                "rows": facts.rows,
                "crc": facts.crc,
                "footer_crc": facts.footer_crc,
                "vectors": sorted(facts.vectors),
            }
            for path, facts in self._gathered
        ]
        batch = pa.RecordBatch.from_pylist(rows, _STORED)
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, _STORED, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(batch)
        self._packed.append(buffer.getvalue())
        self._count += len(rows)
        self._gathered = []

    def _read(self) -> Iterator[pa.RecordBatch]:
        for buffer in self._packed:
            with pa.ipc.open_stream(buffer) as reader:
                yield from reader

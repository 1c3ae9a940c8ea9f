"""A few rows of many: the last rows or random rows, from as few files as possible.

Files are given by their numbers in the order of a read, with a function that reads a file. It must not know
where rows come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakelog.log.errors import InvalidInput

ReadFile = Callable[[int], pa.Table]
"""Returns the rows of a file, by its number."""


def checked_count(n: int) -> int:
    """Return a number of rows. Raises InvalidInput for anything else."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidInput(f"{n!r} is not a number of rows: give a whole number, 0 or more")
    return n


def limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Return at most `limit` rows of batches."""
    if limit is None:
        yield from batches
        return
    rows_left = limit
    for batch in batches:
        if rows_left <= 0:
            return
        yield batch.slice(0, rows_left)
        rows_left -= batch.num_rows


def last_rows(count: int, files: int, read: ReadFile, schema: pa.Schema) -> pa.Table:
    """Return the last `count` rows. Reads only the last files that have them."""
    parts: list[pa.Table] = []
    rows_to_read = count
    for number in reversed(range(files)):
        if rows_to_read <= 0:
            break
        rows = read(number)
        parts.insert(0, rows.slice(max(0, rows.num_rows - rows_to_read)))
        rows_to_read -= parts[0].num_rows
    return pa.concat_tables(parts or [schema.empty_table()])


def sample_of_files(
    count: int, sizes: Sequence[int], read: ReadFile, schema: pa.Schema, chance: np.random.Generator
) -> pa.Table:
    """Return random rows, each equally likely, from files of `sizes` rows. Files without a chosen row are not
    read."""
    ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
    total = int(ends[-1]) if len(ends) else 0
    row_numbers = (
        np.sort(chance.choice(total, size=min(count, total), replace=False)) if total else np.array([], int)
    )
    of_file = np.searchsorted(ends, row_numbers, side="right")
    parts = [
        read(int(number)).take(pa.array(row_numbers[of_file == number] - (ends[number] - sizes[number])))
        for number in np.unique(of_file)
    ]
    return pa.concat_tables(parts or [schema.empty_table()])


def sample_of_batches(
    count: int, batches: Iterable[pa.RecordBatch], schema: pa.Schema, chance: np.random.Generator
) -> pa.Table:
    """Return random rows, each equally likely. All batches are read, and few rows are held in memory."""
    sample, tickets = schema.empty_table(), np.array([], np.float64)
    for batch in batches:
        sample = pa.concat_tables([sample, pa.Table.from_batches([batch], schema)])
        tickets = np.concatenate([tickets, chance.random(batch.num_rows)])
        if len(tickets) > count:
            lowest = np.sort(np.argpartition(tickets, count)[:count])
            sample, tickets = sample.take(pa.array(lowest)), tickets[lowest]
    return sample

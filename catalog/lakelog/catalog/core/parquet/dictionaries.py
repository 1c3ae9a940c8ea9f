"""Which columns of a Parquet file are written without a dictionary, as most of their values differ.

A writer that only tries hashes each value, until the dictionary is too large, and what it has written until then is
larger than the plain values. So it is estimated from a sample. Rule: where that is not clear, a dictionary is tried.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS_MIN = 64 * 1024
SAMPLED_ROWS = 16 * 1024
DICTIONARY_BYTES_MAX = 1024 * 1024
"""Arrow writes no larger ones."""

GAIN_MIN = 0.2
"""The share of the plain values' bytes that a dictionary has to save: compression finds repeated values as well."""


def columns_without_dictionary(rows: pa.Table) -> set[str] | None:
    """Return the names of columns that are best written without a dictionary, nested ones left out; None where the rows
    are too few to say.

    Counts the values of about `SAMPLED_ROWS` rows.
    """
    if rows.num_rows < ROWS_MIN:
        return None
    chosen = [each.name for each in rows.schema if _width(each.type) is not None]
    sample = rows.select(chosen).take(np.arange(0, rows.num_rows, rows.num_rows // SAMPLED_ROWS))
    return {name for name in chosen if not _saves(sample[name], rows.num_rows)}


def _saves(sample: pa.ChunkedArray, rows: int) -> bool:
    values = len(sample) - sample.null_count
    found = pc.count_distinct(sample).as_py()
    if found < 2:
        return True
    share = values / len(sample)
    width = _width(sample.type) or sample.nbytes / values
    distinct = _distinct_values(found, values, rows * share)
    dictionary = distinct * width
    plain, indices = rows * share * width, rows * share * math.ceil(math.log2(distinct)) / 8
    return dictionary <= DICTIONARY_BYTES_MAX and dictionary + indices <= (1 - GAIN_MIN) * plain


def _distinct_values(found: int, sampled: int, values: float) -> float:
    """Return how many distinct values there are among `values`, if each is there as often, where a sample has
    `found`."""
    low, high = float(found), values
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        # Of a value that is there so many times, none is in the sample with this probability.
        missed = (1 - sampled / values) ** (values / middle)
        low, high = (middle, high) if middle * (1 - missed) < found else (low, middle)
    return high


def _width(type: pa.DataType) -> int | None:
    """Return the bytes of a plain value in Parquet, 0 where they vary; None for types without a dictionary, and nested
    ones."""
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return 0
    if pa.types.is_decimal(type):
        return 4 if type.precision <= 9 else 8 if type.precision <= 18 else 16
    if pa.types.is_primitive(type) and not pa.types.is_boolean(type):
        return 8 if type.bit_width > 32 else 4
    return None

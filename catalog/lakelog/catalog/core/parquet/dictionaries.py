"""Which columns of a Parquet file are written without a dictionary, as most of their values differ.

A writer that merely tries a dictionary hashes each value until it is too large, and its output until then is
larger than the plain values. So the size is estimated from a sample. Rule: if that is not clear, a dictionary
is tried.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS_MIN = 64 * 1024
SAMPLED_ROWS = 16 * 1024
DICTIONARY_BYTES_MAX = 1024 * 1024
"""Arrow writes no larger dictionaries."""

GAIN_MIN = 0.2
"""The share of the plain bytes that a dictionary has to save, because compression finds repeated values too.
"""


def columns_without_dictionary(rows: pa.Table) -> set[str] | None:
    """Return the names of columns that are best written without a dictionary, except nested columns.

    None if the rows are too few to say. Counts the values of about `SAMPLED_ROWS` rows.
    """
    if rows.num_rows < ROWS_MIN:
        return None
    column_names = [column.name for column in rows.schema if _width(column.type) is not None]
    sample = rows.select(column_names).take(np.arange(0, rows.num_rows, rows.num_rows // SAMPLED_ROWS))
    return {name for name in column_names if not _saves(sample[name], rows.num_rows)}


def _saves(sample: pa.ChunkedArray, rows: int) -> bool:
    values = len(sample) - sample.null_count
    distinct_in_sample = pc.count_distinct(sample).as_py()
    if distinct_in_sample < 2:
        return True
    share = values / len(sample)
    width = _width(sample.type) or sample.nbytes / values
    distinct = _distinct_values(distinct_in_sample, values, rows * share)
    dictionary = distinct * width
    plain, indices = rows * share * width, rows * share * math.ceil(math.log2(distinct)) / 8
    return dictionary <= DICTIONARY_BYTES_MAX and dictionary + indices <= (1 - GAIN_MIN) * plain


def _distinct_values(distinct_in_sample: int, sample_values: int, values: float) -> float:
    """Return how many distinct values there are among `values`, each equally often.

    Computed from the number of distinct values among the values of a sample.
    """
    low, high = float(distinct_in_sample), values
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        # The probability that a value which occurs so many times is not in the sample.
        miss_probability = (1 - sample_values / values) ** (values / middle)
        low, high = (middle, high) if middle * (1 - miss_probability) < distinct_in_sample else (low, middle)
    return high


def _width(type: pa.DataType) -> int | None:
    """Return the bytes of a plain value in Parquet, 0 if they vary; None for types without a dictionary.

    Nested types have none.
    """
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return 0
    if pa.types.is_decimal(type):
        return 4 if type.precision <= 9 else 8 if type.precision <= 18 else 16
    if pa.types.is_primitive(type) and not pa.types.is_boolean(type):
        return 8 if type.bit_width > 32 else 4
    return None

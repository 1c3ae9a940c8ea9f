"""A Delta table as a source of an import: its log, its columns, and its files as entries of a lakelog table.

Rule: what a version of the table is, its log alone decides, and what is not understood is refused by name: a feature, a
checkpoint without a part, a partition value that does not parse. A statistic that is not certain is left out.
It must not know tables, commits or events of lakelog. Source: PROTOCOL.md of Delta Lake.
"""

from lakelog.catalog.formats.imports.delta.delta_source import DeltaSource, delta_source

__all__ = ["DeltaSource", "delta_source"]

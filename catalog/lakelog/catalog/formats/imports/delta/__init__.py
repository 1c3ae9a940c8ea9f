"""A Delta table as a source of an import: its log, its columns, and its files as entries of a lakelog table.

Rule: only a table's log decides what its version contains. Parts that are not understood are refused by name:
a feature, an incomplete checkpoint, or a partition value that does not parse. A statistic that is not certain
is left out. This package must not know tables, commits or events of lakelog. Source: PROTOCOL.md of Delta
Lake.
"""

from lakelog.catalog.formats.imports.delta.delta_source import DeltaSource, delta_source

__all__ = ["DeltaSource", "delta_source"]

"""Decorators that make a function of this door an operation.

A catalog's hook observes it like the users' methods.
"""

from __future__ import annotations

from lakelog.catalog.core.logs import operation

of_table = operation(lambda table: table.table_head.logs, lambda table: table.name)
of_catalog = operation(lambda catalog: catalog._logs)

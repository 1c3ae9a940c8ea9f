"""Tables in the forms of others: what lakelog's tables are to readers of Iceberg, and how others' tables come in.

Rule: loaded when a table is exported or imported, by those who do so. It must not know who keeps or shows a table.
"""

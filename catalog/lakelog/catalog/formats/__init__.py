"""Other formats: lakelog's tables for Iceberg's readers, and tables of other formats that are imported.

Rule: only an export or an import loads this package. It must not know who maintains or shows a table.
"""

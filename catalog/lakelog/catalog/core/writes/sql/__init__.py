"""Conditions and values that Python's users write in SQL, computed by DuckDB: the parser's trees, what they mean for
a table, and the engine that evaluates them.

Rule: what DuckDB would compute otherwise than Spark is refused by name. It must not know what a commit is.
"""

"""Conditions and values that Python's users write in SQL, computed by DuckDB.

It has the parser's trees, their meaning for a table, and the engine that evaluates them. Rule: an expression
that DuckDB would compute otherwise than Spark is refused by name. It must not know what a commit is.
"""

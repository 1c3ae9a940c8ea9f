"""Rows in the forms of other libraries: Arrow streams, pandas, Polars, DuckDB, PyTorch, and HTML for
notebooks.

Rule: a library is imported only if its form is requested, and a missing library is an error that names it.
The columns, conditions and limits that a library hands down make a read smaller, but never change its result.
It must not know tables, logs or stores. Everything with rows implements `ArrowRows`.
"""

from lakelog.catalog.core.tools.arrow_rows import ArrowRows
from lakelog.catalog.core.tools.controls import visible
from lakelog.catalog.core.tools.few_rows import (
    checked_count,
    last_rows,
    limited,
    sample_of_batches,
    sample_of_files,
)
from lakelog.catalog.core.tools.notebook import (
    NULL_CELL,
    ROWS_MAX,
    HtmlTable,
    NullCell,
    as_html,
    one_line,
    shortened_text,
)
from lakelog.catalog.core.tools.packages import package
from lakelog.catalog.core.tools.queries import answer_of

__all__ = [
    "ArrowRows",
    "HtmlTable",
    "NULL_CELL",
    "NullCell",
    "ROWS_MAX",
    "answer_of",
    "as_html",
    "checked_count",
    "last_rows",
    "limited",
    "one_line",
    "package",
    "sample_of_batches",
    "sample_of_files",
    "shortened_text",
    "visible",
]

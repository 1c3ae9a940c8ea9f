"""Rows in the forms of other libraries: Arrow streams, pandas, Polars, DuckDB, PyTorch; HTML for notebooks.

Rule: a library is imported when its form is asked for, never before, and one that is missing is an error that names
it. What a library hands down (columns, conditions, a limit) makes a read smaller, and never its result different.
It must not know tables, logs or stores: whatever has rows implements `ArrowRows`.
"""

from lakelog.catalog.core.tools.arrow_rows import (
    ArrowRows,
)
from lakelog.catalog.core.tools.controls import (
    visible,
)
from lakelog.catalog.core.tools.notebook import (
    ROWS_MAX,
    as_html,
)
from lakelog.catalog.core.tools.packages import (
    package,
)
from lakelog.catalog.core.tools.queries import (
    answer_of,
)

__all__ = [
    "ArrowRows",
    "ROWS_MAX",
    "answer_of",
    "as_html",
    "package",
    "visible",
]

"""Pictures of logs: what a table or a namespace holds and what happened to it, as one model, a page and a graph.

Rule: read only, and one model for all forms: a fact that the page shows stands in the JSON too. Texts of other clients
are text everywhere, without secrets, and what is damaged is named and hides nothing else.
It must not decide what names mean, or change anything; it must not know the command or a notebook.
"""

from lakelog.catalog.looking.pictures.comparing import (
    differences,
)
from lakelog.catalog.looking.pictures.definitions import (
    definition_of,
)
from lakelog.catalog.looking.pictures.drawing import (
    Wish,
    picture_of_namespace,
    picture_of_table,
)
from lakelog.catalog.looking.pictures.graph import (
    graph_lines,
)
from lakelog.catalog.looking.pictures.model import (
    Picture,
)
from lakelog.catalog.looking.pictures.sheet import (
    Sheet,
)
from lakelog.catalog.looking.pictures.words import (
    changes_schema,
    partition_value,
    what,
    what_was_done,
)

__all__ = [
    "Picture",
    "Sheet",
    "Wish",
    "changes_schema",
    "definition_of",
    "differences",
    "graph_lines",
    "partition_value",
    "picture_of_namespace",
    "picture_of_table",
    "what",
    "what_was_done",
]

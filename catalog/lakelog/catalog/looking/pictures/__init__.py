"""Pictures of logs: the contents and history of a table or a namespace, as a model, a page and a graph.

Rule: it only reads, and all forms share the model, so a fact on the page stands in the JSON too. Texts of other clients
stay text everywhere, without secrets. Damage is named, and hides nothing else.
It must not decide the meaning of names, or change anything. It must not know the command or a notebook.
"""

from lakelog.catalog.looking.pictures.comparing import differences
from lakelog.catalog.looking.pictures.definitions import definition_of
from lakelog.catalog.looking.pictures.drawing import PictureRequest, picture_of_namespace, picture_of_table
from lakelog.catalog.looking.pictures.graph import graph_lines
from lakelog.catalog.looking.pictures.model import Picture
from lakelog.catalog.looking.pictures.page import PageContext, data_of, page_of, policy_of
from lakelog.catalog.looking.pictures.sheet import Sheet
from lakelog.catalog.looking.pictures.words import ROOT, changes_schema, partition_value, what, what_was_done

__all__ = [
    "ROOT",
    "PageContext",
    "Picture",
    "Sheet",
    "PictureRequest",
    "changes_schema",
    "data_of",
    "definition_of",
    "differences",
    "graph_lines",
    "page_of",
    "partition_value",
    "picture_of_namespace",
    "picture_of_table",
    "policy_of",
    "what",
    "what_was_done",
]

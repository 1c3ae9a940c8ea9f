"""The display of a table or a catalog in a notebook, from a bounded number of requests.

Rule: it never raises an error. If a part cannot be read, it shows the other parts, and the error in a line without
secrets. It notes no read for a transaction.
It must not change anything, nor run a script in the notebook.
"""

from lakelog.catalog.looking.notebooks.names import catalog_html
from lakelog.catalog.looking.notebooks.tables import table_html

__all__ = ["catalog_html", "table_html"]

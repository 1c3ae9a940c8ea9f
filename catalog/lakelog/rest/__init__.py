"""Iceberg's REST catalog protocol, read only: what its clients ask of a warehouse, and a server that answers them.

Rule: an answer is computed from the warehouse when it is asked for; a server has no other state, and hands out no
credentials. It must not change anything but exports, which are derived.
"""

from lakelog.rest.answers import Answer, Answers
from lakelog.rest.server import serve

__all__ = ["Answer", "Answers", "serve"]

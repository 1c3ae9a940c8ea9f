"""Iceberg's REST catalog protocol, read only: what its clients ask of a warehouse.

A server answers them; or what it would answer is published, as objects in a bucket. Rule: both are computed from the
warehouse and have no other state, and hand out no credentials. They must not change anything but exports and the
published objects, which are derived.
"""

from lakelog.rest.answers import Answer, Answers
from lakelog.rest.bucket_tree import BucketTree
from lakelog.rest.publishing import Published, publish
from lakelog.rest.server import serve

__all__ = ["Answer", "Answers", "BucketTree", "Published", "publish", "serve"]

"""Iceberg's REST catalog protocol, read only: answers to its clients about a warehouse.

A server gives the answers, or they are published as objects in a bucket. `lakelog ui` uses the server, too. Rule:
both are computed from the warehouse, have no other state, and hand out no credentials. They change only exports and
the published objects, which are derived.
"""

from lakelog.rest.answers import HttpAnswer, WarehouseAnswers, error_answer
from lakelog.rest.bucket_tree import BucketTree
from lakelog.rest.publishing import PublishResult, publish
from lakelog.rest.server import AnswerSource, serve

__all__ = [
    "HttpAnswer",
    "AnswerSource",
    "WarehouseAnswers",
    "BucketTree",
    "PublishResult",
    "error_answer",
    "publish",
    "serve",
]

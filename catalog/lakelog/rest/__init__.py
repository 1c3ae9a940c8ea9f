"""Iceberg's REST catalog protocol: answers to its clients about a warehouse, who may write if they are let.

A server gives the answers, or they are published as objects in a bucket. `lakelog ui` uses the server, too. Rule:
both are computed from the warehouse, and have no other state. Only a server with a role for it hands out credentials.
Those that only read change nothing but exports and the published objects, which are derived.
"""

from lakelog.rest.answers import HttpAnswer, WarehouseAnswers, error_answer
from lakelog.rest.bucket_tree import BucketTree
from lakelog.rest.publishing import PublishResult, publish
from lakelog.rest.serving import AnswerSource, serve
from lakelog.rest.writing import WritableAnswers

__all__ = [
    "HttpAnswer",
    "AnswerSource",
    "WarehouseAnswers",
    "WritableAnswers",
    "BucketTree",
    "PublishResult",
    "error_answer",
    "publish",
    "serve",
]

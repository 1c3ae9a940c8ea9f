"""Texts for Python sides whose answers a test holds up, counts or prevents."""

HOOK = """
from dataclasses import replace
from lakelog.spark.handlers.entries import HANDLERS
def hook(method, wrap):
    entry = HANDLERS[method]
    HANDLERS[method] = replace(entry, handler=wrap(entry.handler))
"""
"""`hook(method, wrap)` puts `wrap(handler)` in the place of the handler of a request."""

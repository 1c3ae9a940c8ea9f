"""The next step after an error, in the words of the user's front.

A handle in Python is a value, so the same call on it would fail again. A statement in Spark, or a command,
loads its table each time it runs, and only has to run again. Rule: Python's words are the default, and
another front enters `advising`. Threads that take the current thread's context have the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

RUN_STATEMENT = "run the statement again"
RUN_TRANSACTION = "run the transaction again"
RUN_COMMAND = "run the command again"
SEND_REQUEST = "load the table again, and send a new request"

_IN_PYTHON = "load the table again, by `table = table.refresh()`, and repeat the change"
_ADVICE: ContextVar[str] = ContextVar("lakelog_next_step", default=_IN_PYTHON)


def start_over() -> str:
    """Return the advice after a change of a table that another commit has stopped."""
    return _ADVICE.get()


def in_words(*, python: str, elsewhere: str, request: str = "") -> str:
    """Return an advice of Python's if the user's front is Python, and `request` if it is a client of the server."""
    return {_IN_PYTHON: python, SEND_REQUEST: request}.get(_ADVICE.get(), elsewhere)


def run_transaction() -> str:
    """Return the advice after a transaction that another commit has stopped. A client sends a request again."""
    return SEND_REQUEST if _ADVICE.get() == SEND_REQUEST else RUN_TRANSACTION


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """Inside, `start_over` returns `advice`."""
    token = _ADVICE.set(advice)
    try:
        yield
    finally:
        _ADVICE.reset(token)

"""Threads for handed-over work: their costs are added to the tally of the thread that hands it over."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class TallyThreads(ThreadPoolExecutor):
    """A pool whose threads run each task in its submitter's context: its tally, and the facts about its writer."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(copy_context().run, fn, *args, **kwargs)

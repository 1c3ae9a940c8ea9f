"""A change whose thread waits while another thread commits it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic

from lakelog.log.errors import CommitUnknown, StorageError
from lakelog.log.parallel import ThreadRequest
from lakelog.log.placing import ChangeCursor
from lakelog.log.view import CommittedChange, S


@dataclass(eq=False)
class WaitingChange(ThreadRequest, Generic[S]):
    """A change whose thread waits for it. `done` is its commit, or the error if there is none."""

    cursor: ChangeCursor[S] = field(kw_only=True)
    run: Callable[..., Any] = field(default_factory=lambda: copy_context().run)
    """Runs a function in its thread's context, which has the facts about the writer."""
    sent: bool = False
    """Whether a courier has it. The courier sets `returned` once it is done, or if its own thread has to commit it."""
    is_of_many: bool = False
    """Whether it carries other changes, which should rather be proposed separately."""
    returned: threading.Event = field(default_factory=threading.Event)
    has_wished: bool = False
    is_over: threading.Event = field(default_factory=threading.Event)
    """Set once its thread no longer waits, so that a wish for it is removed."""

    def outcome(self) -> CommittedChange[S]:
        """Return the commit of the change, or raise its error."""
        if isinstance(self.done, BaseException):
            try:
                raise self.done
            finally:
                self.done = None  # otherwise it and its traceback's frames would keep each other alive
        assert isinstance(self.done, CommittedChange)
        return self.done


def own_error(error: StorageError) -> StorageError:
    """Return a copy of the error for another thread, because a raised error has the frames of its thread."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    copy.__cause__ = error.__cause__
    return copy


def unknown(commit_id: str, location: str, why: str) -> CommitUnknown:
    return CommitUnknown(
        f"it is unknown whether commit {commit_id} happened, which was written together with others: {why}; retry "
        "with the same commit id",
        commit_id=commit_id,
        location=location,
    )

"""A change that a thread waits for, while another one commits it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic

from lakelog.log.errors import CommitUnknown, StorageError
from lakelog.log.parallel import Wanted
from lakelog.log.placing import Placing
from lakelog.log.view import Committed, S


@dataclass(eq=False)
class Waiting(Wanted, Generic[S]):
    """One change, which its thread waits for. `done` is what became of it, or why nothing did."""

    placing: Placing[S] = field(kw_only=True)
    run: Callable[..., Any] = field(default_factory=lambda: copy_context().run)
    """Runs a function with what its thread's context says: who writes, for one."""
    sent: bool = False
    """Whether a courier has it, which sets `returned` once it is done, or is to be committed by its own thread."""
    is_of_many: bool = False
    """Whether it carries changes of others, which had better be proposed one by one."""
    returned: threading.Event = field(default_factory=threading.Event)

    def outcome(self) -> Committed[S]:
        """Return what became of the change, or raise why nothing did."""
        if isinstance(self.done, BaseException):
            raise self.done
        assert isinstance(self.done, Committed)
        return self.done


def own_error(error: StorageError) -> StorageError:
    """Return the error for another thread: what one raises has the frames of that thread."""
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

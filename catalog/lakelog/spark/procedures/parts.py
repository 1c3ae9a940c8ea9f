"""Objects that executors copy or read for a procedure, part by part, each a job of Spark.

Work under way is known by an id that the job carries. If this process was restarted, that knowledge is lost.
Then the procedure begins again, and finds the copied objects.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from lakelog.spark.procedures.declare import ProcedureCall
from lakelog.spark.requests.jobs import CopyObjects, ObjectsCopied
from lakelog.spark.requests.pieces import ObjectToCopy

if TYPE_CHECKING:
    from lakelog.catalog.keeping.backups import BackupEngine, BackupObject

AT_ONCE = 10_000
"""The objects of a job. If the job is killed, at most so many are copied again."""

KEPT_MAX = 8


class MakesParts(Protocol):
    """Begins the work of a call, and returns the objects to copy, or None."""

    def __call__(self, call: ProcedureCall) -> BackupEngine | None: ...


_lock = threading.Lock()
_under_way: OrderedDict[str, tuple[BackupEngine, list[BackupObject]]] = OrderedDict()


def in_parts(what: str, begin: MakesParts) -> Callable[[ProcedureCall], CopyObjects | None]:
    """Return the preparation of a procedure whose objects are copied part by part.

    `what` is in the job's name.
    """

    def prepare(call: ProcedureCall) -> CopyObjects | None:
        known_work = None if call.result is None else _taken(call.came_of(ObjectsCopied).work)
        if known_work is None:
            from lakelog.log import new_id

            id, parts = new_id(), begin(call)
        else:
            result = call.came_of(ObjectsCopied)
            id, (parts, part) = result.work, known_work
            parts.note(part, [(copied.size, copied.sha256) for copied in result.objects])
        if parts is None:
            return None
        part = parts.next(AT_ONCE)
        with _lock:
            _under_way[id] = parts, part
            while len(_under_way) > KEPT_MAX:
                _under_way.popitem(last=False)
        if not part and known_work is not None:
            return None  # `run` has to know the first part, even if it is empty
        objects = tuple(ObjectToCopy(source=item.source, target=item.target) for item in part)
        return CopyObjects(work=id, what=what, objects=objects)

    return prepare


def parts_of(call: ProcedureCall) -> BackupEngine | None:
    """Return the parts that the jobs of a call have done. None if they are not known."""
    if call.result is None:
        return None
    known_work = _taken(call.came_of(ObjectsCopied).work)
    return None if known_work is None else known_work[0]


def _taken(id: str) -> tuple[BackupEngine, list[BackupObject]] | None:
    with _lock:
        return _under_way.pop(id, None)

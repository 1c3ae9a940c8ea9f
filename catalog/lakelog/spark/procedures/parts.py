"""Objects that executors copy or read for a procedure, part by part, each a job of Spark.

What is under way is known by an id that the job carries. Where this process was restarted since, what is known is lost:
then the procedure begins anew, and finds what was copied.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from lakelog.spark.procedures.declare import Call
from lakelog.spark.requests.jobs import CopyObjects, ObjectsCopied
from lakelog.spark.requests.pieces import ObjectToCopy

if TYPE_CHECKING:
    from lakelog.catalog.keeping.backups import Part, Parts

AT_ONCE = 10_000
"""Objects of one job: what is copied again where it is killed, at most."""

KEPT_MAX = 8


class MakesParts(Protocol):
    """Begins what a call does, and returns what is to be copied for it, None for nothing."""

    def __call__(self, call: Call) -> Parts | None: ...


_lock = threading.Lock()
_under_way: OrderedDict[str, tuple[Parts, list[Part]]] = OrderedDict()


def in_parts(what: str, begin: MakesParts) -> Callable[[Call], CopyObjects | None]:
    """Return the preparation of a procedure whose objects are copied part by part; `what` is in the job's name."""

    def prepare(call: Call) -> CopyObjects | None:
        found = None if call.result is None else _taken(call.came_of(ObjectsCopied).work)
        if found is None:
            from lakelog.log import new_id

            id, parts = new_id(), begin(call)
        else:
            result = call.came_of(ObjectsCopied)
            id, (parts, part) = result.work, found
            parts.note(part, [(each.size, each.sha256) for each in result.objects])
        if parts is None:
            return None
        part = parts.next(AT_ONCE)
        with _lock:
            _under_way[id] = parts, part
            while len(_under_way) > KEPT_MAX:
                _under_way.popitem(last=False)
        if not part and found is not None:
            return None  # of the first one, though it may be empty, `run` has to know
        objects = tuple(ObjectToCopy(source=each.source, target=each.target) for each in part)
        return CopyObjects(work=id, what=what, objects=objects)

    return prepare


def parts_of(call: Call) -> Parts | None:
    """Return what the jobs of a call have done, None where that is not known."""
    if call.result is None:
        return None
    found = _taken(call.came_of(ObjectsCopied).work)
    return None if found is None else found[0]


def _taken(id: str) -> tuple[Parts, list[Part]] | None:
    with _lock:
        return _under_way.pop(id, None)

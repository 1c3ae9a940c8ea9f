"""What operations cost, for those who ask: one record of each that a user called, handed to the catalog's hook.

    catalog = Catalog("/tmp/lake", observe=lambda seen: print(seen.operation, seen.duration_s, seen.requests))

An operation is a public method of what users import, by its name. What it calls in turn is a part of it, also in other
threads; what goes on after it has returned (snapshots, exports to Iceberg) is a record of its own. Rule: a hook sees,
and changes nothing; without one, this costs a look at one member. It must not know what an operation does.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, TypeVar

from lakelog.catalog.core.state import RowCounts
from lakelog.catalog.names import identifier, quoted
from lakelog.log.clocks import host_clock_us, steady_clock_us
from lakelog.log.costs import Tally, tallied
from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.log.secrets import masked

C = TypeVar("C")
T = TypeVar("T")

_LOGGER = logging.getLogger("lakelog.catalog")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one operation cost, and what became of it. It has no secrets: keys in texts are masked.

    `operation` is the method that was called, `scan` the read of rows, from its first request to its last batch;
    `name` is the table, namespace or place that it was about, empty for the whole warehouse. The
    operation began at `begun_us`, by this host's clock, and took `duration_s`. `requests` are those to stores by kind,
    and the bytes those of objects. `attempts` are versions of logs that it put, or tried to; `rebases` are decisions
    after versions of others; `waits` are times that it waited for other writers, or to try again, for `waited_s`.

    `rows` says how many rows a change of a table has changed, None of what changes none. `error` is the kind of the
    error that it ended by, None where it ended by none. `is_background`: no caller waited
    for it, such as a snapshot after a commit.
    """

    operation: str
    name: str
    warehouse: str
    begun_us: int
    duration_s: float
    requests: Mapping[str, int] = field(default_factory=dict)
    bytes_read: int = 0
    bytes_written: int = 0
    attempts: int = 0
    rebases: int = 0
    waits: int = 0
    waited_s: float = 0.0
    rows: RowCounts | None = None
    error: str | None = None
    is_background: bool = False

    @property
    def request_count(self) -> int:
        return sum(self.requests.values())


Observe = Callable[[Observation], None]

_INSIDE: ContextVar[bool] = ContextVar("lakelog_observed", default=False)
"""Whether the thread works for an operation already, or for a hook, whose own operations are not observed."""


class Watched:
    """One operation that is under way: `working` and `each` are its parts, which may run in several threads."""

    def __init__(
        self, hook: Hook, operation: str, name: str, warehouse: str, *, is_background: bool = False
    ) -> None:
        self._hook = hook
        self._operation, self._name, self._warehouse = operation, name, warehouse
        self._is_background = is_background
        self._rows: RowCounts | None = None
        self._tally = Tally()
        self._begun_us, self._steady_us = host_clock_us(), steady_clock_us()
        self._has_ended = False

    @contextmanager
    def working(self) -> Iterator[None]:
        """Inside, what is done is a part of the operation. An error ends it."""
        inside = _INSIDE.set(True)
        try:
            with tallied(self._tally):
                yield
        except BaseException as error:
            _INSIDE.reset(inside)
            self.end(error)
            raise
        _INSIDE.reset(inside)

    def each(self, items: Iterator[T]) -> Iterator[T]:
        """Return the items, of which each is a part of the operation; it ends with the last of them, or once no more
        are wanted."""
        return _Parts(self, items)

    def returned(self, result: Any) -> None:
        """Note what the operation returns, if that says how many rows it has changed."""
        self._rows = getattr(result, "rows_changed", None)

    def end(self, error: BaseException | None) -> None:
        """Hand the record over, once."""
        if self._has_ended:
            return
        self._has_ended = True
        tally = self._tally
        seen = Observation(
            operation=self._operation,
            name=self._name,
            warehouse=self._warehouse,
            begun_us=self._begun_us,
            duration_s=(steady_clock_us() - self._steady_us) / 1e6,
            requests=dict(tally.requests),
            bytes_read=tally.bytes_read,
            bytes_written=tally.bytes_written,
            attempts=tally.attempts,
            rebases=tally.rebases,
            waits=tally.waits,
            waited_s=tally.waited_s,
            rows=self._rows,
            error=None if error is None else kind_of(error),
            is_background=self._is_background,
        )
        self._hook(seen)


_END: Any = object()


class _Parts(Iterator[T]):
    """Items of a stream that is read while it is taken, by any thread. It ends the operation, also where none is taken:
    so it is no generator."""

    def __init__(self, watched: Watched, items: Iterator[T]) -> None:
        self._watched = watched
        self._items = items

    def __next__(self) -> T:
        with self._watched.working():
            item = next(self._items, _END)
        if item is _END:
            self._watched.end(None)
            raise StopIteration
        return item

    def close(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            with self._watched.working():
                close()
        self._watched.end(None)

    def __del__(self) -> None:
        self.close()


def kind_of(error: BaseException) -> str:
    """Return an error's kind; for what is no error of lakelog's, the name of its class."""
    return error.kind if isinstance(error, LakelogError) else type(error).__name__


class Observable(Protocol):
    """Logs under a warehouse, whose operations a hook may observe."""

    observe: Hook | None

    @property
    def warehouse(self) -> str: ...


class Hook:
    """What a user wants called with each record. It may fail: that is logged once, and breaks no operation."""

    def __init__(self, observe: Observe) -> None:
        self._observe = observe
        self._has_failed = False

    def __call__(self, seen: Observation) -> None:
        inside = _INSIDE.set(True)
        try:
            with tallied(None):
                self._observe(seen)
        except Exception as failure:
            if not self._has_failed:
                self._has_failed = True
                _LOGGER.warning(
                    "a hook for operations failed, and may go on to; this is logged once: %s",
                    masked(f"{type(failure).__name__}: {failure}"),
                )
        finally:
            _INSIDE.reset(inside)


class Unwatched:
    """An operation that no hook observes, or that is a part of another one."""

    def working(self) -> AbstractContextManager[None]:
        return nullcontext()

    def each(self, items: Iterator[T]) -> Iterator[T]:
        return items

    def returned(self, result: Any) -> None:
        return

    def end(self, error: BaseException | None) -> None:
        return


_UNWATCHED = Unwatched()


def watched(logs: Observable, operation: str, name: str) -> Watched | Unwatched:
    """Return an operation that begins now, whose parts the caller names."""
    if logs.observe is None or _INSIDE.get():
        return _UNWATCHED
    return Watched(logs.observe, operation, masked(name), logs.warehouse)


@contextmanager
def as_operation(logs: Observable, operation: str, name: str) -> Iterator[Watched | Unwatched]:
    """Inside, what is done is one operation."""
    found = watched(logs, operation, name)
    with found.working():
        yield found
    found.end(None)


def in_background(hook: Hook, warehouse: str, name: str, work: Callable[[], None]) -> Callable[[], None]:
    """Return work that is a record of its own, in any thread."""

    def run() -> None:
        under_way = Watched(hook, "background", masked(name), warehouse, is_background=True)
        with under_way.working():
            work()
        under_way.end(None)

    return run


# Methods as operations

_NAMES = ("table", "name", "namespace", "old", "parent", "location")
"""Parameters that say what an operation is about, the most specific first."""


def observed(
    logs_of: Callable[[Any], Observable],
    name_of: Callable[[Any], str] | None = None,
    *,
    apart_from: Sequence[str] = (),
) -> Callable[[type[C]], type[C]]:
    """Make each public method of a class an operation, named by what `name_of` returns, or by its arguments.

    Not those `apart_from`, which make no request by themselves, or say on their own what is an operation.
    """

    def decorate(cls: type[C]) -> type[C]:
        for method, function in list(vars(cls).items()):
            is_public = not method.startswith("_") and isinstance(function, FunctionType)
            if is_public and method not in apart_from:
                setattr(cls, method, _operation(function, logs_of, name_of))
        return cls

    return decorate


def _operation(
    function: FunctionType, logs_of: Callable[[Any], Observable], name_of: Callable[[Any], str] | None
) -> Callable[..., Any]:
    assert not inspect.isgeneratorfunction(function), (
        f"{function.__name__} ends before it is read: use `watched`"
    )
    parameters = list(inspect.signature(function).parameters)
    about = next((each for each in _NAMES if each in parameters), None)
    at = -1 if about is None else parameters.index(about) - 1

    @wraps(function)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        logs = logs_of(self)
        if logs.observe is None or _INSIDE.get():
            return function(self, *args, **kwargs)
        if name_of is not None:
            name = name_of(self)
        else:
            given = kwargs.get(about) if about in kwargs else args[at] if 0 <= at < len(args) else None
            name = _spelled(given, is_place=about == "location")
        with as_operation(logs, function.__name__, name) as seen:
            result = function(self, *args, **kwargs)
            seen.returned(result)
            return result

    return method


def _spelled(given: Any, *, is_place: bool) -> str:
    """Return a name as SQL spells it, or a place. What is not valid is as it is: the operation reports that."""
    if given is None:
        return ""
    try:
        return str(given) if is_place else quoted(identifier(given))
    except (InvalidInput, TypeError, AttributeError):
        return str(given)

"""The cost of operations, for users who ask: a record of each call of a user, for the catalog's hook.

    catalog = Catalog("/tmp/lake", observe=lambda seen: print(seen.operation, seen.duration_s, seen.requests))

An operation is a public method of a class that users import, or a function of the engine's door, by its name.
Calls inside it are a part of it, also in other threads. Work that goes on after it has returned (snapshots,
exports to Iceberg) is a record of its own.

Rule: a hook sees, and changes nothing; without a hook, this costs a look at a member. It must not know how an
operation works.
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
from typing import Any, Protocol, TypeVar, cast

from lakelog.catalog.core.state.row_counts import RowCounts
from lakelog.catalog.names import identifier, quoted
from lakelog.log.clocks import host_clock_us, steady_clock_us
from lakelog.log.costs import CostTally, tallied
from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.log.secrets import masked

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_LOGGER = logging.getLogger("lakelog.catalog")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The cost of an operation, and its outcome.

    It has no secrets: keys in texts are masked. `operation` is the method that was called, `scan` the read of
    rows, from its first request to its last batch. `name` is the table, namespace or place that it was about,
    empty for the whole warehouse. The operation began at `begun_us`, by this host's clock, and took
    `duration_s`.

    `requests` counts requests to stores by kind; the bytes are those of objects. `attempts` counts the
    versions of logs that it put, or tried to put. `rebases` counts decisions after versions of others.
    `waits` counts how often it waited for other writers, or to try again, for `waited_s` in all.

    `rows` says how many rows a change of a table has changed, None if it changes none. `error` is the kind of
    the error that ended it, None if none did. `is_background` says that no caller waited for it, such as for
    a snapshot after a commit.
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


class WatchedOperation:
    """An operation that is under way.

    Its parts are `working` and `each`, which may run in several threads.
    """

    def __init__(
        self, hook: ObservationHook, operation: str, name: str, warehouse: str, *, is_background: bool = False
    ) -> None:
        self._hook = hook
        self._operation, self._name, self._warehouse = operation, name, warehouse
        self._is_background = is_background
        self._rows: RowCounts | None = None
        self._tally = CostTally()
        self._begun_us, self._steady_us = host_clock_us(), steady_clock_us()
        self._has_ended = False

    @contextmanager
    def working(self) -> Iterator[None]:
        """Inside, all work is a part of the operation. An error ends it."""
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
        """Return the items.

        Reading each is a part of the operation, which ends with the last item that the caller takes.
        """
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
        record = Observation(
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
        self._hook(record)


_END: Any = object()


class _Parts(Iterator[T]):
    """Items of a stream that any thread reads while it takes them.

    It ends the operation, even if no item is taken. A generator could not do that.
    """

    def __init__(self, watched_operation: WatchedOperation, items: Iterator[T]) -> None:
        self._watched = watched_operation
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
    """Return an error's kind; the name of its class if it is not lakelog's error."""
    return error.kind if isinstance(error, LakelogError) else type(error).__name__


class ObservableLogs(Protocol):
    """Logs under a warehouse, whose operations a hook may observe."""

    observe: ObservationHook | None

    @property
    def warehouse(self) -> str: ...


class ObservationHook:
    """A user's function that is called with each record.

    If it fails, that is logged once, and breaks no operation.
    """

    def __init__(self, observe: Observe) -> None:
        self._observe = observe
        self._has_failed = False

    def __call__(self, record: Observation) -> None:
        inside = _INSIDE.set(True)
        try:
            with tallied(None):
                self._observe(record)
        except Exception as failure:
            if not self._has_failed:
                self._has_failed = True
                _LOGGER.warning(
                    "a hook for operations failed, and may go on to; this is logged once: %s",
                    masked(f"{type(failure).__name__}: {failure}"),
                )
        finally:
            _INSIDE.reset(inside)


class UnwatchedOperation:
    """An operation that no hook observes, or that is a part of another operation."""

    def working(self) -> AbstractContextManager[None]:
        return nullcontext()

    def each(self, items: Iterator[T]) -> Iterator[T]:
        return items

    def returned(self, result: Any) -> None:
        return

    def end(self, error: BaseException | None) -> None:
        return


_UNWATCHED = UnwatchedOperation()


def watched(logs: ObservableLogs, operation: str, name: str) -> WatchedOperation | UnwatchedOperation:
    """Return an operation that begins now, whose parts the caller names."""
    if logs.observe is None or _INSIDE.get():
        return _UNWATCHED
    return WatchedOperation(logs.observe, operation, masked(name), logs.warehouse)


@contextmanager
def as_operation(
    logs: ObservableLogs, operation: str, name: str
) -> Iterator[WatchedOperation | UnwatchedOperation]:
    """Inside, all work is a single operation."""
    current = watched(logs, operation, name)
    with current.working():
        yield current
    current.end(None)


def in_background(
    hook: ObservationHook, warehouse: str, name: str, work: Callable[[], None]
) -> Callable[[], None]:
    """Return work that is a record of its own, in any thread."""

    def run() -> None:
        under_way = WatchedOperation(hook, "background", masked(name), warehouse, is_background=True)
        with under_way.working():
            work()
        under_way.end(None)

    return run


# Methods and functions as operations

_NAMES = ("table", "name", "namespace", "old", "parent", "location")
"""Parameters that say which object an operation is about, the most specific first."""


def observed(
    logs_of: Callable[[Any], ObservableLogs],
    name_of: Callable[[Any], str] | None = None,
    *,
    apart_from: Sequence[str] = (),
) -> Callable[[type[C]], type[C]]:
    """Make each public method of a class an operation, named by the result of `name_of`, or by its arguments.

    Methods `apart_from` are left out: they make no request, or declare their own operations.
    """

    def decorate(cls: type[C]) -> type[C]:
        for method, function in list(vars(cls).items()):
            is_public = not method.startswith("_") and isinstance(function, FunctionType)
            if is_public and method not in apart_from:
                setattr(cls, method, _operation(function, logs_of, name_of))
        return cls

    return decorate


def operation(
    logs_of: Callable[[Any], ObservableLogs], name_of: Callable[[Any], str] | None = None
) -> Callable[[F], F]:
    """Make a function an operation of its first argument, as `observed` does with each method."""

    def decorate(function: F) -> F:
        assert isinstance(function, FunctionType)
        return cast(F, _operation(function, logs_of, name_of))

    return decorate


def _operation(
    function: FunctionType, logs_of: Callable[[Any], ObservableLogs], name_of: Callable[[Any], str] | None
) -> Callable[..., Any]:
    assert not inspect.isgeneratorfunction(function), (
        f"{function.__name__} ends before it is read: use `watched`"
    )
    parameters = list(inspect.signature(function).parameters)
    about = next((parameter for parameter in _NAMES if parameter in parameters), None)
    at = -1 if about is None else parameters.index(about) - 1

    @wraps(function)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        logs = logs_of(self)
        if logs.observe is None or _INSIDE.get():
            return function(self, *args, **kwargs)
        if name_of is not None:
            name = name_of(self)
        else:
            subject = kwargs.get(about) if about in kwargs else args[at] if 0 <= at < len(args) else None
            name = _spelled(subject, is_place=about == "location")
        with as_operation(logs, function.__name__, name) as current:
            result = function(self, *args, **kwargs)
            current.returned(result)
            return result

    return method


def _spelled(subject: Any, *, is_place: bool) -> str:
    """Return a name as SQL spells it, or a place.

    An invalid name stays as it is, because the operation reports that.
    """
    if subject is None:
        return ""
    try:
        return str(subject) if is_place else quoted(identifier(subject))
    except (InvalidInput, TypeError, AttributeError):
        return str(subject)

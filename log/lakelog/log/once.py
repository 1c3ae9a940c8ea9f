"""Values that are computed on first use: members of objects, and results for the last few objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):
    """A `functools.cached_property` as it is from Python 3.12 on: without a lock.

    Python 3.11 has a single lock for all objects of a class. So an object that reads files would hold up all
    others. If two threads use an object at once, both may compute its member.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        if instance is None:
            return self
        # This descriptor has no `__set__`, so Python finds the instance's own member first, and this runs
        # once.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def of_the_last(count: int) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """Make a function of an object cache its results for the last `count` objects, by identity.

    Comparing equal objects would cost more than computing. The cache also keeps these objects alive. Two
    threads may both compute a result at once.
    """

    def remembering(compute: Callable[[Any], T]) -> Callable[[Any], T]:
        cache: tuple[tuple[Any, T], ...] = ()  # replaced as a whole, so that no lock is needed

        @wraps(compute)
        def found(of: Any) -> T:
            nonlocal cache
            entries = cache
            for argument, value in entries:
                if argument is of:
                    return value
            value = compute(of)
            cache = ((of, value), *entries[: count - 1])
            return value

        return found

    return remembering

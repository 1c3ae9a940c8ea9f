"""What is computed when it is first asked for: members of objects, and what follows from one of the last objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):
    """As `functools.cached_property` from Python 3.12 on: without a lock.

    That of 3.11 has one lock for all objects of a class, so that one which reads files would hold up all others. Two
    threads that ask one object at once may both compute its member.
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
        # The instance's own member is found before this descriptor, which sets none: it is asked once.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def of_the_last(count: int) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """Have a function of one object keep what it returned for the last `count` of them: for that very object, as equal
    ones cost more to compare than to compute. It keeps these objects too. Threads may both compute it at once."""

    def remembering(compute: Callable[[Any], T]) -> Callable[[Any], T]:
        kept: tuple[tuple[Any, T], ...] = ()  # replaced as a whole, so that no lock is needed

        @wraps(compute)
        def found(of: Any) -> T:
            nonlocal kept
            known = kept
            for each, value in known:
                if each is of:
                    return value
            value = compute(of)
            kept = ((of, value), *known[: count - 1])
            return value

        return found

    return remembering

"""Members of objects that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
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

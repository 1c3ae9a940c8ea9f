"""The kinds of known properties: which texts each kind accepts, and the value of a text.

Rule: `check` checks a text when it is set, and `of` reads it as its type. Nothing else reads the text of a
known property. It must not know the properties themselves.
"""

from __future__ import annotations

import datetime as dt
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from lakelog.catalog.times import age_of
from lakelog.log.errors import InvalidInput

NEVER = "never"
_DIGITS_MAX = 20
_SHARE = re.compile(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?")
_BETWEEN = re.compile(r"0\.(?!0*$)[0-9]{1,6}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperty(ABC, Generic[T]):
    """A known property. Its values are texts that stand for a T. `about` is its line in the documentation."""

    name: str
    default: str
    about: str

    def of(self, properties: Mapping[str, str]) -> T:
        """Return the value that `properties` have, or the default."""
        return self.meaning(properties.get(self.name, self.default))

    def check(self, text: str) -> None:
        """Raise InvalidInput unless `text` is a value of this property."""
        problem = self.refused(text)
        if problem is not None:
            raise InvalidInput(f"the property {self.name} is {text!r}: it must be {problem}")

    @abstractmethod
    def meaning(self, text: str) -> T:
        """Return the value that `text` stands for."""

    @abstractmethod
    def refused(self, text: str) -> str | None:
        """Return None for a valid text, else a description of the valid texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberProperty(TableProperty[int]):
    """A whole number from `minimum` to `maximum`. Results computed from it must fit into 64 bits."""

    minimum: int
    maximum: int

    def meaning(self, text: str) -> int:
        return int(text)

    def refused(self, text: str) -> str | None:
        if not (text.isascii() and text.isdigit()):
            return f"a whole number of at least {self.minimum}"
        # Python refuses to read a number of thousands of digits.
        if len(text) > _DIGITS_MAX or int(text) > self.maximum:
            return f"at most {self.maximum}"
        return f"a whole number of at least {self.minimum}" if int(text) < self.minimum else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionProperty(TableProperty[float]):
    """A number from 0 to 1. With `is_open`, strictly between them."""

    is_open: bool = False

    def meaning(self, text: str) -> float:
        return float(text)

    def refused(self, text: str) -> str | None:
        if self.is_open:
            description = "a number between 0 and 1, of at most six digits, as 0.01"
            return None if _BETWEEN.fullmatch(text) else description
        return None if _SHARE.fullmatch(text) else "a number from 0 to 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceProperty(TableProperty[str]):
    """A choice from a few words."""

    choices: tuple[str, ...]

    def meaning(self, text: str) -> str:
        return text

    def refused(self, text: str) -> str | None:
        return None if text in self.choices else f"one of {', '.join(self.choices)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeProperty(TableProperty[dt.timedelta | None]):
    """An age, such as 12h or 7d. None for NEVER."""

    def meaning(self, text: str) -> dt.timedelta | None:
        return age_of(text)

    def refused(self, text: str) -> str | None:
        return None if text == NEVER or age_of(text) else f"an age (90s, 30m, 12h, 7d or 2w), or {NEVER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsProperty(TableProperty[list[str]]):
    """Column names as written in SQL, divided by commas. Any text is valid, because another check looks up
    the columns."""

    def meaning(self, text: str) -> list[str]:
        return [name for part in text.split(",") if (name := part.strip())]

    def refused(self, text: str) -> str | None:
        return None

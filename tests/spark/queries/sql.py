"""A query as a tree: its text for each side, the possible replacements of a part, and its features.

Trees are values. The generator makes them, the comparison writes them out, the shrinker replaces parts of them; none
of that parses SQL. Parts know nothing of tables but their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table, or one version of it (a number, or the name of a tag or a branch)."""

    name: str
    version: int | str | None = None


class Side(Protocol):
    """Where a query runs. `kind` chooses between the texts of a part; a table is written as that side has it."""

    @property
    def kind(self) -> str: ...

    def table(self, ref: TableRef) -> str: ...


@dataclass(frozen=True, slots=True)
class Sql:
    """A part of a query: a text with a `{}` for each of its own parts.

    Parts of one `kind` may stand in each other's place: a value of a type, a query of some columns, a relation. What
    has the kind `clause` may be left out, and so may each part of a list (`many`). `others` are texts for other sides.
    """

    text: str
    parts: tuple[Sql, ...] = ()
    kind: str = ""
    feature: str = ""
    others: tuple[tuple[str, str], ...] = ()
    many: str | None = None
    ref: TableRef | None = None

    def write(self, side: Side) -> str:
        if self.ref is not None:
            return side.table(self.ref)
        if self.many is not None:
            return self.many.join(part.write(side) for part in self.parts)
        pieces = dict(self.others).get(side.kind, self.text).split("{}")
        assert len(pieces) == len(self.parts) + 1 or (self.others and len(pieces) == 1), self.text
        written_pieces = [pieces[0]]
        for part, piece in zip(self.parts, pieces[1:], strict=False):
            written_pieces += [part.write(side), piece]
        return "".join(written_pieces)

    def walk(self) -> Iterator[Sql]:
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def size(self) -> int:
        return sum(1 for _ in self.walk())

    def smaller(self) -> Iterator[Sql]:
        """Yield trees that are this one with one part left out or replaced by a smaller one, the largest cuts first."""
        yield from self._instead()
        for place, part in enumerate(self.parts):
            for other_sql in part.smaller():
                yield replace(self, parts=(*self.parts[:place], other_sql, *self.parts[place + 1 :]))

    def _instead(self) -> Iterator[Sql]:
        if self.kind == "clause" and (self.text or self.many):
            yield NOTHING
        if self.many is not None and len(self.parts) > 1:
            for place in range(len(self.parts)):
                yield replace(self, parts=self.parts[:place] + self.parts[place + 1 :])
        if self.kind and self.kind != "clause":
            for part in self.parts:
                yield from (below for below in part.walk() if below.kind == self.kind)
        if self.kind.startswith("value ") and self.parts:
            yield null(self.kind.removeprefix("value "))


def value(type: str, text: str, *parts: Sql, feature: str = "", plain: str | None = None) -> Sql:
    other_texts = (("plain", plain),) if plain is not None else ()
    return Sql(text, parts, f"value {type}", feature, other_texts)


def null(type: str) -> Sql:
    return value(type, f"CAST(NULL AS {type})", feature="null")


def clause(text: str, *parts: Sql, feature: str = "") -> Sql:
    return Sql(text, parts, "clause", feature)


def listed(parts: list[Sql], joiner: str = ", ") -> Sql:
    return Sql("", tuple(parts), many=joiner)


NOTHING = Sql("", kind="clause")


def features(sql: Sql) -> Counter[str]:
    return Counter(part.feature for part in sql.walk() if part.feature)

"""Texts that quote values of a condition: statements that commits keep, and definitions of tables, views and functions.

A statement is kept without its literals unless a session asks for all of it. What is found goes by expiry, as a
tombstone keeps no text. Definitions that there are, are the user's to change: they are named. Former ones go by expiry.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.core.schema import Literal, Metadata, Predicate, kind_of
from lakelog.catalog.core.state import (
    EntryDefined,
    NamespaceAltered,
    NamespaceCreated,
    NamespaceState,
    namespace_events,
)
from lakelog.log import Commit, each_change
from lakelog.log.burial import is_buried
from lakelog.log.expiry import last_base

SHORTEST = 3
"""Shorter numbers are in too many statements to say anything; shorter texts are looked for between quotes."""

_EPOCH, _DAY_US = dt.datetime(1970, 1, 1), 86_400_000_000

_CHANGE_IT = "quotes a value of the condition: change or drop it"


def values_of(predicate: Predicate) -> list[str]:
    """Return the values that a condition names, as patterns of the forms that literals and JSON have them in."""
    found: list[str] = []
    for part in predicate.args:
        if isinstance(part, Predicate):
            found += values_of(part)
        elif isinstance(part, Literal) and part.value is not None and not isinstance(part.value, bool):
            found += _patterns(part.value, part.type or "")
    return list(dict.fromkeys(found))


def _patterns(value: Any, type: str) -> list[str]:
    if type == "date":
        return _moment(value * _DAY_US, "")
    if type.startswith("timestamp"):
        return _moment(value, r"[ T]")
    if type == "time":
        return [_clock(value)]
    if type.startswith("interval"):
        return []
    if type == "binary":
        data = base64.b64decode(value)
        text = data.decode(errors="ignore")
        return [rf"(?i:{data.hex()})", re.escape(value), *_text(text)] if len(data) >= SHORTEST else []
    if isinstance(value, str) and not type.startswith("decimal"):
        return _text(value)
    number = Decimal(str(value))
    return _number(format(number, "f")) if number.is_finite() else []


def _text(text: str) -> list[str]:
    if len(text) >= SHORTEST:
        return [re.escape(each) for each in _written(text)]
    return [re.escape(f"{quote}{each}{quote}") for quote in "'\"" for each in _written(text) if text]


def _number(text: str) -> list[str]:
    """Return the number with any zeros before and after it, and with the letters that say its type in SQL."""
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    if len(whole) + bool(fraction) + len(fraction) < SHORTEST:
        return []
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    rest = rf"\.{fraction}0*" if fraction else r"(\.0*)?"
    return [rf"(?<!\d\.){sign}0*{digits}{rest}(?i:BD|[LSYDF])?(?!\.\d)"]


def _moment(time_us: int, between: str) -> list[str]:
    """Return a date, with a time of day if something is `between`. One that no calendar here has is not looked for."""
    try:
        moment = _EPOCH + dt.timedelta(microseconds=time_us)
    except OverflowError:
        return []
    day, of_day = moment.date().isoformat(), time_us % _DAY_US
    return [rf"{day}{between}{_clock(of_day)}Z?"] * bool(between) + [day] * (not of_day)


def _clock(time_us: int) -> str:
    seconds, micros = divmod(time_us, 1_000_000)
    minutes, second = divmod(seconds, 60)
    fraction = f"{micros:06}".rstrip("0")
    rest = f":{second:02}" + (rf"\.{fraction}0*" if fraction else "")
    return rf"{minutes // 60:02}:{minutes % 60:02}" + (rest if second or micros else f"({rest})?")


def _written(text: str) -> list[str]:
    """Return the forms of a text between quotes: as it is, quotes doubled, with backslashes, and as JSON has it."""
    slashed = text.replace("\\", "\\\\")
    return [
        text,
        text.replace("'", "''"),
        text.replace('"', '""'),
        slashed,
        slashed.replace("'", "\\'"),
        slashed.replace('"', '\\"'),
        msgspec.json.encode(text).decode()[1:-1],
    ]


def quotes(text: str, values: Sequence[str]) -> bool:
    """Return whether a text has one of the values, and not only as a part of a longer word or number."""
    return any(re.search(rf"(?<!\w)({value})(?!\w)", text) for value in values)


def versions_quoting(
    tracked: TrackedLog[Any],
    values: Sequence[str],
    *,
    also: Callable[[Commit, Sequence[str]], bool] | None = None,
) -> Iterator[int]:
    """Yield the versions of a log whose commits keep a statement that quotes a value, and that of a base where expiry
    was stopped: commits before it are still there, and are read no more. A commit that has no effect counts, as its
    object stays: that of a transaction that was aborted, or is undecided. So does one of which `also` says so."""
    if not values:
        return
    base = last_base(tracked.log)
    if base is not None and not is_buried(tracked.log.replay, base):
        yield base.root.version
    for commit in tracked.log.standing(1 if base is None else base.root.version):
        if has_quoting_statement(commit, values) or (also is not None and also(commit, values)):
            yield commit.version


def has_quoting_statement(commit: Commit, values: Sequence[str]) -> bool:
    """Return whether a commit keeps a statement that quotes one of the values."""
    return any(quotes(text, values) for text in _statements(commit))


def _statements(commit: Commit) -> Iterator[str]:
    for each in (commit, *each_change(commit)):
        yield str(each.writer.get("statement") or "")


def definitions_quoting(metadata: Metadata, values: Sequence[str]) -> Iterator[str]:
    """Yield what of a table's definition quotes a value, in words, with what to do about it."""
    for constraint in metadata.constraints:
        if quotes(msgspec.json.encode(constraint).decode(), values):
            yield f"the constraint {constraint.name} {_CHANGE_IT}"
    for name, value in sorted(metadata.properties.items()):
        if quotes(value, values):
            yield f"the property {name} {_CHANGE_IT}"
    if metadata.comment and quotes(metadata.comment, values):
        yield f"the comment of the table {_CHANGE_IT}"
    for field in metadata.schema.fields:
        unnamed = msgspec.structs.replace(field, name="", physical="")
        if quotes(msgspec.json.encode(unnamed).decode(), values):
            yield f"the definition of the column {field.name} {_CHANGE_IT}"


def entries_quoting(state: NamespaceState, values: Sequence[str]) -> Iterator[str]:
    """Yield what of a namespace's views, functions and properties quotes a value, in words, with what to do then."""
    for names in state.definitions.values():
        for name, defined in names.items():
            if quotes(msgspec.json.encode(defined.definition).decode(), values):
                yield f"the {kind_of(defined.definition)} {name} {_CHANGE_IT}"
    for dropped in state.dropped_definitions.values():
        if quotes(msgspec.json.encode(dropped.definition).decode(), values):
            what = f"the dropped {kind_of(dropped.definition)} {dropped.name}"
            yield f"{what} quotes a value of the condition: a vacuum of the namespace purges it once it is old"
    for name, value in sorted(state.properties.items()):
        if quotes(value, values):
            yield f"the property {name} {_CHANGE_IT}"


def former_entries_quote(tracked: TrackedLog[NamespaceState], values: Sequence[str]) -> bool:
    """Return whether the first version of a namespace that can be read has a definition that quotes a value."""
    base = last_base(tracked.log)
    return base is not None and any(entries_quoting(tracked.log.view_at(base.root.version).state, values))


def defines_quoting(commit: Commit, values: Sequence[str]) -> bool:
    """Return whether a commit of a namespace says something that quotes a value."""
    return any(
        quotes(msgspec.json.encode(event).decode(), values)
        for event in namespace_events(commit)
        if isinstance(event, EntryDefined | NamespaceAltered | NamespaceCreated)
    )

"""Texts that quote values of a condition: statements, and definitions of tables, views and functions.

Unless a session keeps complete statements, they are kept without their literals. Statements with quotes are
removed by expiry because a tombstone keeps no text. Users have to change present definitions, so these are
named. Former definitions are removed by expiry.
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
from lakelog.catalog.core.schema import FilterLiteral, Metadata, Predicate
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
"""Shorter numbers are in too many statements. Shorter texts are only searched between quotes."""

_EPOCH, _DAY_US = dt.datetime(1970, 1, 1), 86_400_000_000

_CHANGE_IT = "quotes a value of the condition: change or drop it"


def values_of(predicate: Predicate) -> list[str]:
    """Return the values in a condition, as patterns of their forms in literals and JSON."""
    patterns: list[str] = []
    for part in predicate.args:
        if isinstance(part, Predicate):
            patterns += values_of(part)
        elif isinstance(part, FilterLiteral) and part.value is not None and not isinstance(part.value, bool):
            patterns += _patterns(part.value, part.type or "")
    return list(dict.fromkeys(patterns))


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
        return [re.escape(form) for form in _written(text)]
    return [re.escape(f"{quote}{form}{quote}") for quote in "'\"" for form in _written(text) if text]


def _number(text: str) -> list[str]:
    """Return patterns of the number with any zeros before and after it, and with SQL's letters for its type."""
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    if len(whole) + bool(fraction) + len(fraction) < SHORTEST:
        return []
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    fraction_pattern = rf"\.{fraction}0*" if fraction else r"(\.0*)?"
    return [rf"(?<!\d\.){sign}0*{digits}{fraction_pattern}(?i:BD|[LSYDF])?(?!\.\d)"]


def _moment(time_us: int, between: str) -> list[str]:
    """Return patterns of a date, with a time of day if something is `between`.

    None for dates outside of the calendar.
    """
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
    second_pattern = f":{second:02}" + (rf"\.{fraction}0*" if fraction else "")
    return rf"{minutes // 60:02}:{minutes % 60:02}" + (
        second_pattern if second or micros else f"({second_pattern})?"
    )


def _written(text: str) -> list[str]:
    """Return the forms of a quoted text: unchanged, with doubled quotes, with backslashes, and in JSON."""
    with_backslashes = text.replace("\\", "\\\\")
    return [
        text,
        text.replace("'", "''"),
        text.replace('"', '""'),
        with_backslashes,
        with_backslashes.replace("'", "\\'"),
        with_backslashes.replace('"', '\\"'),
        msgspec.json.encode(text).decode()[1:-1],
    ]


def quotes(text: str, values: Sequence[str]) -> bool:
    """Return whether a text has a value as a whole word or number."""
    return any(re.search(rf"(?<!\w)({value})(?!\w)", text) for value in values)


def versions_quoting(
    tracked: TrackedLog[Any],
    values: Sequence[str],
    *,
    also: Callable[[Commit, Sequence[str]], bool] | None = None,
) -> Iterator[int]:
    """Yield the versions of a log whose commits keep a statement that quotes a value.

    If expiry was stopped, the version of its base is included: commits before it still exist, but are not
    read any more. A commit without effect, of an aborted or undecided transaction, counts because its object
    stays. A commit for which `also` returns true counts, too.
    """
    if not values:
        return
    base = last_base(tracked.log)
    if base is not None and not is_buried(tracked.log.replay, base):
        yield base.root.version
    for commit in tracked.log.standing(1 if base is None else base.root.version):
        if has_quoting_statement(commit, values) or (also is not None and also(commit, values)):
            yield commit.version


def has_quoting_statement(commit: Commit, values: Sequence[str]) -> bool:
    """Return whether a commit keeps a statement that quotes a value."""
    return any(quotes(text, values) for text in _statements(commit))


def _statements(commit: Commit) -> Iterator[str]:
    for change in (commit, *each_change(commit)):
        yield str(change.writer.get("statement") or "")


def definitions_quoting(metadata: Metadata, values: Sequence[str]) -> Iterator[str]:
    """Yield descriptions of a table's definitions that quote a value, with a remedy."""
    for constraint in metadata.constraints:
        if quotes(msgspec.json.encode(constraint).decode(), values):
            yield f"the constraint {constraint.name} {_CHANGE_IT}"
    for name, value in sorted(metadata.properties.items()):
        if quotes(value, values):
            yield f"the property {name} {_CHANGE_IT}"
    if metadata.comment and quotes(metadata.comment, values):
        yield f"the comment of the table {_CHANGE_IT}"
    for field in metadata.schema.fields:
        plain_field = msgspec.structs.replace(field, name="", physical="")
        if quotes(msgspec.json.encode(plain_field).decode(), values):
            yield f"the definition of the column {field.name} {_CHANGE_IT}"


def entries_quoting(state: NamespaceState, values: Sequence[str]) -> Iterator[str]:
    """Yield descriptions of a namespace's views, functions and properties that quote a value, with a remedy."""
    for space in state.entries:
        for name, entry in state.definitions(space):
            if quotes(msgspec.json.encode(entry.definition).decode(), values):
                yield f"the {entry.kind} {name} {_CHANGE_IT}"
    for drop in state.dropped_definitions():
        if quotes(msgspec.json.encode(drop.entry.definition).decode(), values):
            title = f"the dropped {drop.entry.kind} {drop.name}"
            yield f"{title} quotes a value of the condition: a vacuum of the namespace purges it once it is old"
    for name, value in sorted(state.properties.items()):
        if quotes(value, values):
            yield f"the property {name} {_CHANGE_IT}"


def former_entries_quote(tracked: TrackedLog[NamespaceState], values: Sequence[str]) -> bool:
    """Return whether the first readable version of a namespace has a definition that quotes a value."""
    base = last_base(tracked.log)
    return base is not None and any(entries_quoting(tracked.log.view_at(base.root.version).state, values))


def defines_quoting(commit: Commit, values: Sequence[str]) -> bool:
    """Return whether a commit of a namespace has a definition that quotes a value."""
    return any(
        quotes(msgspec.json.encode(event).decode(), values)
        for event in namespace_events(commit)
        if isinstance(event, EntryDefined | NamespaceAltered | NamespaceCreated)
    )

"""The events of commits, decoded from what a log has of them.

Rule: what is not known, or has another form, is refused by an error that names the log, the version and the event. It
must not know what an event does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

import msgspec

from lakelog.catalog.core.state.events import NamespaceEvent, TableEvent
from lakelog.log import Commit, Json
from lakelog.log.decoding import said
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, UnsupportedFormat
from lakelog.log.grammar import shortened


def namespace_events(commit: Commit) -> list[NamespaceEvent]:
    """Decode the events of a commit of a namespace's log. UnsupportedFormat for an event that is not known here."""
    return _decode(commit, NamespaceEvent, "namespace")


def table_events(commit: Commit) -> list[TableEvent]:
    """Decode the events of a commit of a table's log. UnsupportedFormat for an event that is not known here."""
    return _decode(commit, TableEvent, "table")


def says_only(commit: Commit, *kinds: type[msgspec.Struct]) -> bool:
    """Return whether all events of a commit, of any log, are of these kinds. Those that are not known are of none."""
    tags = {kind.__struct_config__.tag for kind in kinds}
    return bool(commit.events) and all([event.get("event") in tags for event in commit.events])


def _tags(union: Any) -> set[str]:
    return {struct.__struct_config__.tag for struct in get_args(union)}


class _OfNamespace(msgspec.Struct):
    events: list[NamespaceEvent]


class _OfTable(msgspec.Struct):
    events: list[TableEvent]


_HELD: dict[Any, type[_OfNamespace] | type[_OfTable]] = {NamespaceEvent: _OfNamespace, TableEvent: _OfTable}
"""What msgspec knows of a union is found out for each call, unless the union stands in a Struct: this takes a tenth."""


def decoded(events: Sequence[Mapping[str, Json]], union: Any) -> list[Any]:
    """Return events of one of the two unions. Raises msgspec's errors, and those of the events."""
    return msgspec.convert({"events": events}, _HELD[union], strict=True, str_keys=True).events


def _decode(commit: Commit, union: Any, what: str) -> list[Any]:
    with suppress(ValueError, TypeError, ArithmeticError, RecursionError, LakelogError):
        return decoded(commit.events, union)
    try:
        # Each by itself, as an error says what is wrong with one event.
        return [msgspec.convert(event, union, strict=True, str_keys=True) for event in commit.events]
    except LakelogError as error:
        raise FormatError(
            f"version {commit.version} of the {what} log {commit.log_id} holds an event that cannot be read "
            f"({shortened(error.message)}): it was written by a faulty client, or by a newer one"
        ) from error
    except (msgspec.ValidationError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        known, others = _tags(union), _tags(NamespaceEvent) | _tags(TableEvent)
        for event in commit.events:
            kind = event.get("event")
            if kind not in known and kind in others:
                raise InvalidInput(
                    f"the log {commit.log_id} is not a {what}'s: its version {commit.version} says {kind}"
                ) from None
            if kind not in known:
                raise UnsupportedFormat(
                    f"version {commit.version} of the {what} log {commit.log_id} holds the event "
                    f"{shortened(repr(kind))}, "
                    "which this version of lakelog does not know: upgrade lakelog to read it"
                ) from None
        raise FormatError(
            f"version {commit.version} of the {what} log {commit.log_id} holds an event that cannot be read "
            f"({said(error)}): it was written by a faulty client, or by a newer one"
        ) from None

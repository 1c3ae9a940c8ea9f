"""The events of commits, decoded from their form in a log.

Rule: an unknown event, or an event of another form, is refused by an error that names the log, the version
and the event. Only an unknown event that is `skippable` is skipped: it belongs to a feature that only writers
need, so a client that does not know it writes nothing. It must not know the effect of an event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

import msgspec

from lakelog.catalog.core.state.events import NamespaceEvent, TableEvent
from lakelog.log import Commit, Json
from lakelog.log.decoding import is_unknown, said
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, UnsupportedFormat
from lakelog.log.grammar import shortened

SKIPPABLE = "skippable"
"""The member of an event that readers skip if they do not know the event."""


def namespace_events(commit: Commit) -> list[NamespaceEvent]:
    """Decode the events of a commit of a namespace's log. Raises UnsupportedFormat for an unknown event."""
    return _decode(commit, NamespaceEvent, "namespace")


def table_events(commit: Commit) -> list[TableEvent]:
    """Decode the events of a commit of a table's log. Raises UnsupportedFormat for an unknown event."""
    return _decode(commit, TableEvent, "table")


def says_only(commit: Commit, *kinds: type[msgspec.Struct]) -> bool:
    """Return whether all events of a commit, of any log, have these kinds. Unknown events have none of
    them."""
    tags = {kind.__struct_config__.tag for kind in kinds}
    return bool(commit.events) and all([event.get("event") in tags for event in commit.events])


def _tags(union: Any) -> set[str]:
    return {struct.__struct_config__.tag for struct in get_args(union)}


class _OfNamespace(msgspec.Struct):
    events: list[NamespaceEvent]


class _OfTable(msgspec.Struct):
    events: list[TableEvent]


_HELD: dict[Any, type[_OfNamespace] | type[_OfTable]] = {NamespaceEvent: _OfNamespace, TableEvent: _OfTable}
"""msgspec analyses a union on each call, unless a Struct contains the union, which takes a tenth of the
time."""


def decoded(events: Sequence[Mapping[str, Json]], union: Any) -> list[Any]:
    """Return events of either union. Raises msgspec's errors, and errors of the events."""
    return msgspec.convert({"events": events}, _HELD[union], strict=True, str_keys=True).events


def _decode(commit: Commit, union: Any, what: str) -> list[Any]:
    with suppress(ValueError, TypeError, ArithmeticError, RecursionError, LakelogError):
        return decoded(commit.events, union)
    known_tags, all_tags = _tags(union), _tags(NamespaceEvent) | _tags(TableEvent)
    events = [
        event for event in commit.events if event.get("event") in all_tags or event.get(SKIPPABLE) is not True
    ]
    try:
        # One at a time, so that an error describes a single event.
        return [msgspec.convert(event, union, strict=True, str_keys=True) for event in events]
    except InvalidInput as error:
        # A type or a transform that does not exist here.
        raise _unknown(commit, what, error) from error
    except LakelogError as error:
        raise FormatError(
            f"version {commit.version} of the {what} log {commit.log_id} holds an event that cannot be read "
            f"({shortened(error.message)}): it was written by a faulty client, or by a newer one"
        ) from error
    except (msgspec.ValidationError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        for event in events:
            kind = event.get("event")
            if kind not in known_tags and kind in all_tags:
                raise InvalidInput(
                    f"the log {commit.log_id} is not a {what}'s: its version {commit.version} says {kind}"
                ) from None
            if kind not in known_tags:
                raise UnsupportedFormat(
                    f"version {commit.version} of the {what} log {commit.log_id} holds the event "
                    f"{shortened(repr(kind))}, "
                    "which this version of lakelog does not know: upgrade lakelog to read it"
                ) from None
        if is_unknown(error):
            raise _unknown(commit, what, error) from None
        raise FormatError(
            f"version {commit.version} of the {what} log {commit.log_id} holds an event that cannot be read "
            f"({said(error)}): it was written by a faulty client, or by a newer one"
        ) from None


def _unknown(commit: Commit, what: str, error: Exception) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"version {commit.version} of the {what} log {commit.log_id} holds something that this version of lakelog does "
        f"not know ({said(error)}): upgrade lakelog to read it"
    )

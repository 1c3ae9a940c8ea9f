"""Errors as a version keeps them that refuses a change for good, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakelog.log.errors import ConflictError, LakelogError
from lakelog.log.format import Refusal
from lakelog.log.grammar import is_id, shortened

MESSAGE_SIZE_MAX = 1800
"""With what `shortened` says of the rest, a message stays within the format's limit."""


def refusal_of(error: LakelogError) -> Refusal:
    """Return an error as it is stored. It names what is in the way, and has no secrets, as messages have none. Where
    rooms above say by whom that was in words of their own, these are in the message."""
    conflict = error if isinstance(error, ConflictError) else None
    # Twice, as what cannot be printed is longer afterwards.
    message = shortened(shortened(error.message, MESSAGE_SIZE_MAX), MESSAGE_SIZE_MAX)
    return Refusal(
        kind=error.kind,
        message=message or error.kind,
        version=(conflict.version or 0) if conflict is not None else 0,
        by=conflict.by if conflict is not None and is_id(conflict.by or "") else None,
    )


def error_of(refusal: Refusal, commit_id: str, version: int) -> LakelogError:
    """Return the error of a change that `version` refuses. A ConflictError where its kind is not known here."""
    message = f"{refusal.message} (change {commit_id} was refused in version {version})"
    for kind in _kinds(LakelogError):
        if vars(kind).get("kind") != refusal.kind:
            continue
        if issubclass(kind, ConflictError):
            return kind(message, version=refusal.version or None, by=refusal.by)
        if kind.__init__ is LakelogError.__init__:  # others are made of more than a message
            return kind(message)
    return ConflictError(message, version=refusal.version or version, by=refusal.by)


def _kinds(base: type[LakelogError]) -> Iterator[type[LakelogError]]:
    for each in base.__subclasses__():
        yield each
        yield from _kinds(each)

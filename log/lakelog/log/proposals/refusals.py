"""Errors as stored in a version that refuses a change for good, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakelog.log.errors import ConflictError, LakelogError
from lakelog.log.format import ChangeRefusal
from lakelog.log.grammar import is_id, shortened

MESSAGE_SIZE_MAX = 1800
"""A message of this size, with the note of `shortened`, stays within the format's limit."""


def refusal_of(error: LakelogError) -> ChangeRefusal:
    """Return an error as it is stored: it names the conflicting commit, and like all messages has no secrets.

    If rooms above name that commit in their own words, the message has them.
    """
    conflict = error if isinstance(error, ConflictError) else None
    # Shortened twice, because escaping unprintable characters makes a text longer.
    message = shortened(shortened(error.message, MESSAGE_SIZE_MAX), MESSAGE_SIZE_MAX)
    return ChangeRefusal(
        kind=error.kind,
        message=message or error.kind,
        version=(conflict.version or 0) if conflict is not None else 0,
        by=conflict.by if conflict is not None and is_id(conflict.by or "") else None,
    )


def error_of(refusal: ChangeRefusal, commit_id: str, version: int) -> LakelogError:
    """Return the error of a change that `version` refuses, a ConflictError if its kind is unknown here."""
    message = f"{refusal.message} (change {commit_id} was refused in version {version})"
    for kind in _kinds(LakelogError):
        if vars(kind).get("kind") != refusal.kind:
            continue
        if issubclass(kind, ConflictError):
            return kind(message, version=refusal.version or None, by=refusal.by)
        if kind.__init__ is LakelogError.__init__:  # others need more than a message
            return kind(message)
    return ConflictError(message, version=refusal.version or version, by=refusal.by)


def _kinds(base: type[LakelogError]) -> Iterator[type[LakelogError]]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _kinds(subclass)

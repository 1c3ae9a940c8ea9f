"""Every error that lakelog raises on purpose, as one tree, grouped by what a caller does about it.

    LakelogError
    ├── ConflictError        redo the work from a fresh snapshot
    │   └── WriteFenced      the files of this write may have been deleted: write them again
    ├── CommitUnknown        the outcome is unknown: look the commit up by its id
    ├── NotFound             give up: it does not exist
    │   └── LogSealed        the log was closed for good
    ├── AlreadyExists        give up: another writer created it first
    ├── InvalidInput         give up: the request itself is wrong
    │   └── Unsupported      lakelog does not support this yet
    ├── FormatError          give up: stored bytes do not follow the format
    │   └── UnsupportedFormat   they were written by a newer lakelog, or use a feature unknown here
    └── StorageError         retry: the store did not do what it was asked
        └── PermissionDenied    ... because it refused these credentials

A message says what happened, to which object, and the next step. `kind` is stable and made for programs.
"""

from typing import Any, ClassVar

from lakelog.log.secrets import masked


class LakelogError(Exception):
    """Base of all errors that lakelog raises on purpose."""

    kind: ClassVar[str] = "lakelog"

    explained: ClassVar[bool] = False
    """Whether there is more to say of its kind than each message does: then people are shown `pointer` behind it."""

    is_for_good: bool = True
    """Whether a change that is refused for it is given up. Where its author tries another one under the same id, no
    version may refuse that id."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if self.explained:
            # A traceback shows it; the text stays what programs and other messages quote.
            self.add_note(self.pointer)

    @property
    def pointer(self) -> str:
        """How to read what to do about its kind, without a network; empty where the message says all."""
        return f"(more: lakelog explain {self.kind})" if self.explained else ""

    @property
    def message(self) -> str:
        """The text, without the secrets that a path or a statement in it may have."""
        return masked(str(self.args[0])) if self.args else ""

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers send errors to other processes: with all that they know, and without the secrets of their texts.
        args = (self.message, *self.args[1:]) if self.args else ()
        return _as_raised, (type(self), args, self.__dict__)


def _as_raised(cls: type[LakelogError], args: tuple[object, ...], facts: dict[str, Any]) -> LakelogError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(facts)
    return error


class ConflictError(LakelogError):
    """Another writer's commit makes this one impossible: redo the work from a fresh snapshot.

    `version` and `by` name that commit, if it was one.
    """

    kind = "conflict"
    explained = True

    def __init__(self, message: str, *, version: int | None = None, by: str | None = None) -> None:
        super().__init__(message)
        self.version = version
        self.by = by


class WriteFenced(ConflictError):
    """The write started before the log's fence, so its files may have been deleted: write them again."""

    kind = "write-fenced"


class CommitUnknown(LakelogError):
    """Whether the commit happened is not known. Retry with the same id and base to find out."""

    kind = "commit-unknown"
    explained = True

    def __init__(self, message: str, *, commit_id: str, location: str) -> None:
        super().__init__(message)
        self.commit_id = commit_id
        self.location = location


class NotFound(LakelogError):
    """The object does not exist: check its name or place."""

    kind = "not-found"


class LogSealed(NotFound):
    """The log was sealed, as its table or namespace was dropped: look the name up again."""

    kind = "log-sealed"
    explained = True


class AlreadyExists(LakelogError):
    """The object exists already: use it, or choose another name or place."""

    kind = "already-exists"


class InvalidInput(LakelogError):
    """The request is wrong as it stands: change it as the message says."""

    kind = "invalid-input"


class Unsupported(InvalidInput):
    """The request is understood, but lakelog does not support it: do without it, as the message says."""

    kind = "unsupported"


class FormatError(LakelogError):
    """A stored object is truncated, altered, missing or not understood: check the warehouse by `lakelog fsck`."""

    kind = "format"
    explained = True


class UnsupportedFormat(FormatError):
    """A stored object needs a newer lakelog: upgrade to read it."""

    kind = "unsupported-format"


class StorageError(LakelogError):
    """The store failed: retry. `without_effect` is True only where it is certain that nothing was changed."""

    kind = "storage"
    explained = True

    def __init__(self, message: str, *, location: str, without_effect: bool = False) -> None:
        super().__init__(message)
        self.location = location
        self.without_effect = without_effect


class PermissionDenied(StorageError):
    """The store refused these credentials: correct them, or grant the right. The request had no effect."""

    kind = "permission-denied"

    def __init__(self, message: str, *, location: str) -> None:
        super().__init__(message, location=location, without_effect=True)

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

import re
from typing import Any, ClassVar

from lakelog.log.secrets import masked


class LakelogError(Exception):
    """Base of all errors that lakelog raises on purpose."""

    kind: ClassVar[str] = "lakelog"

    explained: ClassVar[bool] = False
    """Whether `lakelog explain` says more about its kind. If so, people are shown `pointer` after the message."""

    is_for_good: bool = True
    """Whether a change that is refused for this error is given up.

    If False, its author may try another change under the same id, so no version may refuse that id.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if self.explained:
            # A traceback shows the note. Programs and other messages quote the text, so it stays as it is.
            self.add_note(self.pointer)

    @property
    def pointer(self) -> str:
        """How to read about its kind without a network; empty if the message says everything."""
        return f"(more: lakelog explain {self.kind})" if self.explained else ""

    @property
    def message(self) -> str:
        """The text, without secrets that its paths or statements may contain."""
        return masked(str(self.args[0])) if self.args else ""

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers send errors to other processes: with all facts, but without the secrets in their texts.
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
    """The write started before the log's fence, so its files may be deleted: write them again."""

    kind = "write-fenced"


class CommitUnknown(LakelogError):
    """It is unknown whether the commit happened. Retry with the same id and base to find out."""

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
    """The log was sealed because its table or namespace was dropped: look the name up again."""

    kind = "log-sealed"
    explained = True


class AlreadyExists(LakelogError):
    """The object already exists: use it, or choose another name or place."""

    kind = "already-exists"


class InvalidInput(LakelogError):
    """The request itself is wrong: change it as the message says."""

    kind = "invalid-input"


class Unsupported(InvalidInput):
    """lakelog understands the request but does not support it: do without it, as the message says."""

    kind = "unsupported"


class FormatError(LakelogError):
    """A stored object is truncated, altered, missing or not understood: check the warehouse by `lakelog fsck`."""

    kind = "format"
    explained = True


class UnsupportedFormat(FormatError):
    """A stored object needs a newer lakelog: upgrade to read it."""

    kind = "unsupported-format"


class StorageError(LakelogError):
    """The store failed: retry. `without_effect` is True only if it is certain that nothing changed."""

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


def install_command(library: str, extra: str | None = None) -> str:
    """Return the command that installs a missing library, with everything else that its extra of lakelog needs.

    lakelog is on no package index, so a message never names its extras. Version bounds come from the metadata
    of the installed lakelog. There are none if lakelog is only on PYTHONPATH. The extra has the library's
    name by default.
    """
    import shlex  # imported here because only this message needs it

    return f"pip install {' '.join(map(shlex.quote, _requirements(extra or library) or [library]))}"


def _requirements(extra: str) -> list[str]:
    from importlib import metadata  # loads much that only this message needs

    try:
        requirements = metadata.requires("lakelog") or []
    except metadata.PackageNotFoundError:
        return []
    of_extra = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    parts = (requirement.partition(";") for requirement in requirements)
    return [requirement.strip() for requirement, _, marker in parts if of_extra.fullmatch(marker.strip())]

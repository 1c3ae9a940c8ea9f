"""Every error that lakelog raises on purpose, as one tree, grouped by what a caller does about it.

    LakelogError
    ├── ConflictError        redo the work from a fresh snapshot
    │   └── WriteFenced      the files of this write may be gone: write them again
    ├── CommitUnknown        the outcome could not be learned: look the commit's id up
    ├── NotFound             give up: it is not there
    │   └── LogSealed        the log was closed for good
    ├── AlreadyExists        give up: somebody made it first
    ├── InvalidInput         give up: the request itself is wrong
    │   └── Unsupported      nobody can do that yet, by name
    ├── FormatError          give up: stored bytes are not what the format says
    │   └── UnsupportedFormat   they are from the future, or use a feature unknown here
    └── StorageError         try again: the store did not do what it was asked
        └── PermissionDenied    ... because these credentials may not

A message says what happened, to which object, and the next step. `kind` is stable and made for programs.
"""

from typing import ClassVar


class LakelogError(Exception):
    """Root of the tree."""

    kind: ClassVar[str] = "lakelog"

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""


class ConflictError(LakelogError):
    """Somebody else's commit makes this one impossible. `version` and `by` name that commit, if it was one."""

    kind = "conflict"

    def __init__(self, message: str, *, version: int | None = None, by: str | None = None) -> None:
        super().__init__(message)
        self.version = version
        self.by = by


class WriteFenced(ConflictError):
    """The write started before the log's fence: its files may have been removed."""

    kind = "write-fenced"


class CommitUnknown(LakelogError):
    """It could not be learned whether the commit happened. Ask again with the same id and base to settle it."""

    kind = "commit-unknown"

    def __init__(self, message: str, *, commit_id: str, location: str) -> None:
        super().__init__(message)
        self.commit_id = commit_id
        self.location = location


class NotFound(LakelogError):
    kind = "not-found"


class LogSealed(NotFound):
    """The log was sealed: whatever it described has been dropped or moved."""

    kind = "log-sealed"


class AlreadyExists(LakelogError):
    kind = "already-exists"


class InvalidInput(LakelogError):
    kind = "invalid-input"


class Unsupported(InvalidInput):
    kind = "unsupported"


class FormatError(LakelogError):
    """A stored object is truncated, altered, missing or not understood."""

    kind = "format"


class UnsupportedFormat(FormatError):
    """A stored object needs a newer lakelog."""

    kind = "unsupported-format"


class StorageError(LakelogError):
    """The store failed. `without_effect` is True only where it is certain that nothing was changed."""

    kind = "storage"

    def __init__(self, message: str, *, location: str, without_effect: bool = False) -> None:
        super().__init__(message)
        self.location = location
        self.without_effect = without_effect


class PermissionDenied(StorageError):
    """The store refused these credentials. Never has an effect."""

    kind = "permission-denied"

    def __init__(self, message: str, *, location: str) -> None:
        super().__init__(message, location=location, without_effect=True)

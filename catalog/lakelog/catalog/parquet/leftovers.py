"""Files of a commit that did not happen: nobody will ever read them, so they are deleted at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from lakelog.catalog.files import DataFile
from lakelog.catalog.logs import TrackedLog
from lakelog.catalog.state import TableState
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError


@contextmanager
def kept_by_commit(tracked: TrackedLog[TableState], files: Sequence[DataFile]) -> Iterator[None]:
    """Inside, the one commit is made that `files` were written for: where it did not happen for certain, they go."""
    try:
        yield
    except (CommitUnknown, StorageError):
        raise
    except LakelogError:
        delete(tracked, [file.path for file in files])
        raise


def delete(tracked: TrackedLog[TableState], paths: Sequence[str]) -> None:
    """Delete files that nobody needs; what fails here, vacuum does later."""
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    with suppress(StorageError):
        tracked.store.delete([prefix + path for path in paths])

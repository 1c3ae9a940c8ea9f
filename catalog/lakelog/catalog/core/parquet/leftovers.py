"""Files of a commit that did not happen: no reader can reach them, so they are deleted at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.core.state import TableState
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError


@contextmanager
def kept_by_commit(tracked: TrackedLog[TableState], files: Sequence[DataFile]) -> Iterator[None]:
    """Inside, the one commit of `files` is made: where it certainly did not happen, they are deleted."""
    try:
        yield
    except (CommitUnknown, StorageError):
        raise
    except LakelogError:
        delete(tracked, [file.path for file in files])
        raise


def delete(tracked: TrackedLog[TableState], paths: Sequence[str]) -> None:
    """Delete files that no version has; vacuum deletes those for which this fails. No request for none."""
    if not paths:
        return
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    with suppress(StorageError):
        tracked.store.delete([prefix + path for path in paths])

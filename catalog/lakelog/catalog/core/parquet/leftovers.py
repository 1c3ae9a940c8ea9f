"""Files of a commit that did not happen: no reader can reach them, so they are deleted at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError


@contextmanager
def kept_by_commit(tracked: TrackedLog[TableState], files: Sequence[DataFile]) -> Iterator[None]:
    """Inside, the only commit of `files` is made. If it certainly did not happen, they are deleted."""
    try:
        yield
    except (CommitUnknown, StorageError):
        raise
    except LakelogError:
        delete(tracked, [file.path for file in files])
        raise


def delete(tracked: TrackedLog[TableState], paths: Sequence[str]) -> None:
    """Delete files that no version has.

    Vacuum deletes those for which this fails. Makes no request for no files.
    """
    if not paths:
        return
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    with suppress(StorageError):
        tracked.store.delete([prefix + path for path in paths])

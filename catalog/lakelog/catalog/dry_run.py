"""Results of maintenance that only reports."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class DryRun(list[T]):
    """A list of reports of a dry run. Its display says that nothing was changed."""

    def __repr__(self) -> str:
        return f"<dry run: nothing was changed, dry_run=False does it> {super().__repr__()}"


def reported(results: list[T], *, dry_run: bool) -> list[T]:
    """Return the results, as a `DryRun` if nothing was changed."""
    return DryRun(results) if dry_run else results

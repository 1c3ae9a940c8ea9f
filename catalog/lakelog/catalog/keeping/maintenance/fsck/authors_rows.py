"""A check of rows that several authors appended together: each author has as many rows as recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakelog.catalog.core.state import FilesChanged, RowsAppended, TableEvent


@dataclass(slots=True)
class AuthorsRows:
    """Follows the events of version after version. `problems` has the problems of all completed versions."""

    problems: list[str] = field(default_factory=list)
    _rows: list[int] = field(default_factory=list)
    _wrong: list[str] = field(default_factory=list)

    def passed(self, event: TableEvent) -> None:
        if isinstance(event, RowsAppended):
            self._rows.append(event.rows)
        elif isinstance(event, FilesChanged) and event.of_changes:
            if (len(self._rows), sum(self._rows)) != (event.of_changes, event.added_rows):
                self._wrong.append(
                    f"files with {event.added_rows} rows of {event.of_changes} changes, and changes before them that "
                    f"have {sum(self._rows)} rows: {len(self._rows)}"
                )
            self._rows = []

    def ends(self, version: int) -> None:
        if self._rows:
            self._wrong.append(f"{len(self._rows)} changes that append rows, and no files for them")
        self.problems += [f"version {version} has {problem}" for problem in self._wrong]
        self._rows, self._wrong = [], []

"""The changes of a picture as lines of a terminal, with branches as lanes beside one another. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakelog.catalog.looking.pictures.model import Change, Picture

COLUMNS_MAX = 12
_MARKS = {"commit": "●", "aborted": "○", "expired": "┄", "older": "┄", "damage": "✗"}


def graph_lines(picture: Picture) -> Iterator[tuple[str, Change, str]]:
    """Yield for each change, the newest first: the drawing of all lanes, the change, and the names that end at it.

    A rebased change has `◆`; one that belongs to a transaction over several logs `■`.
    """
    alive = _alive(picture)
    names = _names(picture)
    width = min(COLUMNS_MAX, 1 + max((lane.column for lane in picture.lanes), default=0))
    for place, change in enumerate(picture.changes):
        cells = [" "] * width
        for lane, (newest, oldest) in alive.items():
            if newest <= place <= oldest:
                cells[min(picture.lanes[lane].column, width - 1)] = "│"
        own = min(picture.lanes[change.lane].column, width - 1) if picture.lanes else 0
        if change.kind == "commit" and (other := _joined(picture, change)) is not None:
            for column in range(min(own, other) + 1, max(own, other)):
                cells[column] = "─" if cells[column] == " " else "┼"
            cells[other] = "╯" if other > own else "╰"
        cells[own] = mark_of(change)
        yield " ".join(cells), change, ", ".join(names.get(change.version, ()))


def mark_of(change: Change) -> str:
    """Return the sign of a change."""
    if change.kind != "commit":
        return _MARKS[change.kind]
    if change.transaction is not None:
        return "■"
    return "◆" if change.base is not None else "●"


def _joined(picture: Picture, change: Change) -> int | None:
    """Return the column that a change is connected to: where it takes contents from, or began."""
    lane = picture.lanes[change.lane]
    other = change.joins
    if other is None and lane.begun == change.version:
        other = lane.of
    return None if other is None else min(picture.lanes[other].column, COLUMNS_MAX - 1)


def _alive(picture: Picture) -> dict[int, tuple[int, int]]:
    """Return between which changes each lane is drawn."""
    last = len(picture.changes) - 1
    found: dict[int, tuple[int, int]] = {}
    for number, lane in enumerate(picture.lanes):
        newest, oldest = 0, last
        if lane.ended is not None:
            newest = next((at for at, each in enumerate(picture.changes) if each.version <= lane.ended), last)
        if lane.begun is not None:
            oldest = next((at for at, each in enumerate(picture.changes) if each.version <= lane.begun), last)
        found[number] = (newest, oldest)
    return found


def _names(picture: Picture) -> dict[int, list[str]]:
    """Return the tags and branches by the version of which they are, or that they have changed last."""
    if picture.kind != "table":
        return {}
    live = {lane.name: number for number, lane in enumerate(picture.lanes) if lane.ended is None}
    found: dict[int, list[str]] = {}
    for ref in picture.refs:
        lane = live.get(ref.name) if ref.kind == "branch" else None
        newest = next((each.version for each in picture.changes if each.lane == lane), ref.version)
        found.setdefault(ref.version if lane is None else newest, []).append(
            ref.name if ref.kind == "branch" else f"tag {ref.name}"
        )
    return found

"""The changes of a picture as lines of a terminal, with branches as lanes beside one another. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakelog.catalog.looking.pictures.model import ChangePicture, Picture

COLUMNS_MAX = 12
_MARKS = {"commit": "●", "aborted": "○", "expired": "┄", "older": "┄", "damage": "✗"}


def graph_lines(picture: Picture) -> Iterator[tuple[str, ChangePicture, str]]:
    """Yield the drawing of all lanes, the change, and the names that end at it, for each change from the newest on.

    A rebased change has `◆`, and a change of a transaction over several logs `■`.
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
        if change.kind == "commit" and (joined_column := _joined(picture, change)) is not None:
            for column in range(min(own, joined_column) + 1, max(own, joined_column)):
                cells[column] = "─" if cells[column] == " " else "┼"
            cells[joined_column] = "╯" if joined_column > own else "╰"
        cells[own] = mark_of(change)
        yield " ".join(cells), change, ", ".join(names.get(change.version, ()))


def mark_of(change: ChangePicture) -> str:
    """Return the sign of a change."""
    if change.kind != "commit":
        return _MARKS[change.kind]
    if change.transaction is not None:
        return "■"
    return "◆" if change.base is not None else "●"


def _joined(picture: Picture, change: ChangePicture) -> int | None:
    """Return the column to which a change is connected: of the contents that it takes, or of its branch's origin."""
    lane = picture.lanes[change.lane]
    joined_lane = change.joins
    if joined_lane is None and lane.begun == change.version:
        joined_lane = lane.of
    return None if joined_lane is None else min(picture.lanes[joined_lane].column, COLUMNS_MAX - 1)


def _alive(picture: Picture) -> dict[int, tuple[int, int]]:
    """Return the newest and the oldest change of each lane, by their places."""
    last = len(picture.changes) - 1
    spans: dict[int, tuple[int, int]] = {}
    for number, lane in enumerate(picture.lanes):
        newest, oldest = 0, last
        if lane.ended is not None:
            newest = next(
                (at for at, change in enumerate(picture.changes) if change.version <= lane.ended), last
            )
        if lane.begun is not None:
            oldest = next(
                (at for at, change in enumerate(picture.changes) if change.version <= lane.begun), last
            )
        spans[number] = (newest, oldest)
    return spans


def _names(picture: Picture) -> dict[int, list[str]]:
    """Return the tags by their version, and the branches by the version that changed them last."""
    if picture.kind != "table":
        return {}
    lane_numbers = {lane.name: number for number, lane in enumerate(picture.lanes) if lane.ended is None}
    names: dict[int, list[str]] = {}
    for ref in picture.refs:
        lane = lane_numbers.get(ref.name) if ref.kind == "branch" else None
        newest = next((change.version for change in picture.changes if change.lane == lane), ref.version)
        names.setdefault(ref.version if lane is None else newest, []).append(
            ref.name if ref.kind == "branch" else f"tag {ref.name}"
        )
    return names

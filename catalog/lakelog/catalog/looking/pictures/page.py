"""A picture as one HTML file: no request to anywhere, no handler inline, and never larger than `SIZE_MAX`.

The data stands in the page as JSON, which its script reads and writes into text nodes only. A Content-Security-Policy
forbids everything but that script and that style, by their hashes. What does not fit is folded or left out, the oldest
and smallest first, and the page says so. Pure.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from lakelog.catalog.core.tools import visible
from lakelog.catalog.looking.pictures.model import Change, Definition, Picture

SIZE_MAX = 2_000_000
"""In bytes, of the whole page, whatever it is of."""

DETAILED_MAX = 10_000
"""So many changes are shown one by one; older ones are folded."""

_FOLDS = 400
_COLUMNS_MAX = 20_000
_TEXT_LEAST = 200
_SCRIPTS = ("start.js", "draw.js", "changes.js", "panels.js", "main.js")

_LIMITS = {
    "changes": DETAILED_MAX,
    "definitions": 300,
    "logs": 3_000,
    "writers": 2_000,
    "lanes": 500,
    "refs": 1_000,
    "health": 200,
    "dropped": 1_000,
    "partitions": 2_000,
    "files": 600,
    "columns": 20_000,
    "text": 1_000,
}
"""How many of each are shown, and how many characters of a text. Until all fits, texts are
cut, and then the parts that take most of the page are halved."""


def page_of(picture: Picture, *, size_max: int = SIZE_MAX) -> str:
    """Return a whole page, of at most `size_max` bytes."""
    limits = dict(_LIMITS)
    while True:
        said = _fitted(picture, limits)
        data = _script_text(said)
        page = _page(picture, data)
        if len(page.encode()) <= size_max:
            return page
        sizes = {name: len(json.dumps(_part(said, name))) for name in limits if limits[name] > 1}
        assert sizes, "a page of nothing is too large"
        too_large = [name for name, size in sizes.items() if size > size_max // 4] or [
            max(sizes, key=lambda name: sizes[name])
        ]
        if limits["text"] > _TEXT_LEAST:
            limits["text"] //= 2
        else:
            for name in too_large:
                limits[name] //= 2


def framed(picture: Picture, *, height: int = 640, size_max: int = SIZE_MAX // 4) -> str:
    """Return the page within a frame of its own, as a notebook shows it: it can reach nothing of the notebook's."""
    page = escape(page_of(picture, size_max=size_max), quote=True)
    title = escape(f"lakelog: {picture.name}", quote=True)
    return (
        f'<iframe sandbox="allow-scripts" title="{title}" srcdoc="{page}" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8888"></iframe>'
    )


def folded(changes: Sequence[Change], most: int) -> tuple[list[Change], int]:
    """Return the newest `most` changes as they are and older ones in folds, with how many were folded.

    Of a namespace, a fold stands for changes of several logs.
    """
    if len(changes) <= most:
        return list(changes), 0
    old = changes[most:]
    step = max(1, -(-len(old) // _FOLDS))
    folds = [_fold(old[start : start + step]) for start in range(0, len(old), step)]
    return [*changes[:most], *folds], sum(change.count for change in old)


def _fold(changes: Sequence[Change]) -> Change:
    newest, oldest = changes[0], changes[-1]
    if len(changes) == 1:
        return newest
    commits = [change for change in changes if change.kind == "commit"]
    is_one_log = all(change.log == newest.log for change in changes)
    operations: dict[str, int] = {}
    for change in commits:
        operations[change.operation] = operations.get(change.operation, 0) + change.count
    most = sorted(operations.items(), key=lambda pair: -pair[1])[:4]
    damage = [change.text for change in changes if change.kind == "damage"]
    return Change(
        kind="damage" if damage else "older",
        log=newest.log,
        version=newest.version if is_one_log else 0,
        first_version=(oldest.first_version or oldest.version) if is_one_log else None,
        time_us=newest.time_us,
        text=", ".join([*damage[:3], *(f"{count:,} × {operation}" for operation, count in most)]),
        added_rows=sum(change.added_rows for change in commits),
        added_files=sum(change.added_files for change in commits),
        added_bytes=sum(change.added_bytes for change in commits),
        removed_rows=sum(change.removed_rows for change in commits),
        removed_files=sum(change.removed_files for change in commits),
        removed_bytes=sum(change.removed_bytes for change in commits),
        deleted_rows=sum(change.deleted_rows for change in commits),
        count=sum(change.count for change in commits) or 1,
    )


def _fitted(picture: Picture, limits: dict[str, int]) -> dict[str, Any]:
    """Return the picture as the page has it: bounded, with its changes as columns."""
    changes, count = folded(picture.changes, limits["changes"])
    left_out = list(picture.left_out)
    few = _newest(picture, left_out)
    said: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(picture, changes=(), definitions=few))
    if count:
        left_out.append(f"{count:,} older changes are folded: lakelog view --json has each of them")
    for name in ("logs", "refs", "health", "dropped", "definitions", "writers", "lanes"):
        _shorten(said, name, limits[name], left_out)
    for definition in said.get("definitions") or ():
        _shorten(definition, "columns", limits["columns"], left_out)
        _shorten(definition, "properties", limits["columns"], left_out)
    for name in ("partitions", "files"):
        _shorten(said.get("layout") or {}, name, limits[name], left_out)
    said = _shown(said, limits["text"])
    shown = [msgspec.structs.replace(change, **_shown_texts(change, limits["text"])) for change in changes]
    said["changes"] = columns(_within(shown, said))
    said["left_out"] = left_out
    return said


def _newest(picture: Picture, left_out: list[str]) -> tuple[Definition, ...]:
    """Return the newest definitions that have no more than a number of columns together."""
    columns, kept = 0, 0
    for definition in reversed(picture.definitions):
        columns += len(definition.columns)
        if kept and columns > _COLUMNS_MAX:
            break
        kept += 1
    if kept < (known := len(picture.definitions)):
        left_out.append(f"{known - kept:,} of {known:,} definitions are not shown: these have many columns")
    return picture.definitions[known - kept :]


def _shorten(said: dict[str, Any], name: str, most: int, left_out: list[str]) -> None:
    there = said.get(name)
    if there and len(there) > most:
        # The newest definitions count; all other lists have what matters first.
        if isinstance(there, dict):
            said[name] = dict(list(there.items())[:most])
        else:
            said[name] = there[-most:] if name == "definitions" else there[:most]
        text = f"{len(there) - most:,} of {len(there):,} {name} are not shown"
        if text not in left_out:
            left_out.append(text)


def _within(changes: Iterable[Change], said: dict[str, Any]) -> list[Change]:
    """Return the changes with places of lists that were shortened left out."""
    logs, writers, lanes = (len(said.get(name) or ()) for name in ("logs", "writers", "lanes"))
    return [
        msgspec.structs.replace(
            change,
            log=change.log if change.log < logs else -1,
            writer=None if change.writer is None or change.writer >= writers else change.writer,
            lane=min(change.lane, max(0, lanes - 1)),
            joins=None if change.joins is None or change.joins >= lanes else change.joins,
        )
        if change.log >= logs
        or (change.writer or 0) >= writers
        or max(change.lane, change.joins or 0) >= lanes
        else change
        for change in changes
    ]


def columns(changes: Sequence[Change]) -> dict[str, Any]:
    """Return changes as columns, which take a fraction of the space: defaults are left out, versions and times are
    differences to the row before, and texts that repeat are places in a list."""
    found: dict[str, Any] = {"length": len(changes)}
    for field in msgspec.structs.fields(Change):
        values = [getattr(change, field.name) for change in changes]
        if all(value == field.default for value in values):
            continue
        if field.name in ("version", "time_us"):
            found[field.name] = {"steps": _steps(values)}
        elif any(isinstance(value, str) for value in values):
            places: dict[Any, int] = {}
            at = [places.setdefault(value, len(places)) for value in values]
            repeats = len(places) * 2 < len(values)
            found[field.name] = {"of": list(places), "at": at} if repeats else {"values": values}
        else:
            found[field.name] = {"values": values}
    return found


def _steps(values: Sequence[int | None]) -> list[int | None]:
    before, steps = 0, []
    for value in values:
        steps.append(None if value is None else value - before)
        before = before if value is None else value
    return steps


def _shown_texts(change: Change, most: int) -> dict[str, str]:
    texts = (
        (name, getattr(change, name)) for name in ("text", "operation", "query", "statement", "commit_id")
    )
    return {name: new for name, text in texts if text is not None and (new := _bounded(text, most)) != text}


def _shown(value: Any, most: int) -> Any:
    """Return a value whose texts, keys too, are visible and not too long."""
    match value:
        case str():
            return _bounded(value, most)
        case dict():
            return {_bounded(key, most): _shown(each, most) for key, each in value.items()}
        case list() | tuple():
            return [_shown(each, most) for each in value]
        case _:
            return value


def _bounded(text: str, most: int) -> str:
    shown = visible(_cut(text, most))
    return _cut(shown, most)  # what is made visible is longer


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _part(said: dict[str, Any], name: str) -> Any:
    if name == "text":
        return ""
    if name == "columns":
        each = said.get("definitions") or ()
        return [(definition.get("columns"), definition.get("properties")) for definition in each]
    return said.get(name) or (said.get("layout") or {}).get(name)


def _script_text(said: dict[str, Any]) -> str:
    """Return JSON that may stand in a script element: nothing in it can end that, or begin a comment."""
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "backslashreplace").decode()


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return '(function () {\n"use strict";\n' + "\n".join(map(_asset, _SCRIPTS)) + "\n})();\n"


def _page(picture: Picture, data: str) -> str:
    style, script = _asset("page.css"), _script()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    marks = {
        "policy": policy,
        "title": escape(_bounded(f"{picture.name} · lakelog", 200)),
        "style": style,
        "data": data,
        "script": script,
    }
    page = _asset("page.html")
    # Each mark stands there once, and none is looked for in what was put in the place of another.
    parts = [page]
    for name, text in marks.items():
        before, after = parts[-1].split(f"{{{{{name}}}}}")
        parts[-1:] = [before, text, after]
    return "".join(parts)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

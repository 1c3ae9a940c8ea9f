"""A picture as an HTML page: no request to another site, no handler inline, and never larger than `SIZE_MAX`.

The data stands in the page as JSON, which its script reads and writes into text nodes only. A Content-Security-Policy
allows that script and that style by their hashes, and nothing else; a live page may also ask its own server. Contents
that do not fit are folded or left out, the oldest and smallest first, and the page says so. Pure.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from lakelog.catalog.core.tools import visible
from lakelog.catalog.looking.pictures.model import ChangePicture, DefinitionPicture, Picture

SIZE_MAX = 2_000_000
"""The most bytes of a page."""

DETAILED_MAX = 10_000
"""So many changes are shown; older changes are folded."""

_FOLDS = 400
_COLUMNS_MAX = 20_000
_TEXT_LEAST = 200
_TOOLS = ("start.js",)
_TOOLS_OF_A_SERVER = ("live.js",)
_DRAWING = ("facts.js", "draw.js", "changes.js", "panels.js", "main.js")

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
"""The most entries of each list, and characters of a text. Until all fits, texts are cut, and then the limits of the
largest parts are halved."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """The pages around a page. `above` has the names and pages of the namespaces above it, and `pages` the page of a
    table or namespace by its name. If a server refreshes the page, `live` has the facts that its script needs."""

    above: tuple[tuple[str, str], ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)
    live: Mapping[str, Any] | None = None


ALONE = PageContext()


def page_of(picture: Picture, context: PageContext = ALONE, *, size_max: int = SIZE_MAX) -> str:
    """Return a whole page, of at most `size_max` bytes."""
    frame = _page(picture, "", is_live=context.live is not None)
    data = data_of(picture, context, size_max=size_max - len(frame.encode()))
    return _page(picture, data, is_live=context.live is not None)


def data_of(picture: Picture, context: PageContext = ALONE, *, size_max: int = SIZE_MAX) -> str:
    """Return the JSON from which the page's script draws a picture, of at most `size_max` bytes."""
    limits = dict(_LIMITS)
    while True:
        page_data = _fitted(picture, limits)
        _connect(page_data, picture, context)
        data = _script_text(page_data)
        if len(data.encode()) <= size_max:
            return data
        sizes = {name: len(json.dumps(_part(page_data, name))) for name in limits if limits[name] > 1}
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
    """Return the page within a frame for a notebook, of which it can reach nothing."""
    page = escape(page_of(picture, size_max=size_max), quote=True)
    title = escape(f"lakelog: {picture.name}", quote=True)
    return (
        f'<iframe sandbox="allow-scripts" title="{title}" srcdoc="{page}" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8888"></iframe>'
    )


def folded(changes: Sequence[ChangePicture], most: int) -> tuple[list[ChangePicture], int]:
    """Return the newest `most` changes as they are and older changes in folds, with the number of folded changes.

    In a namespace, a fold stands for changes of several logs.
    """
    if len(changes) <= most:
        return list(changes), 0
    old = changes[most:]
    step = max(1, -(-len(old) // _FOLDS))
    folds = [_fold(old[start : start + step]) for start in range(0, len(old), step)]
    return [*changes[:most], *folds], sum(change.count for change in old)


def _fold(changes: Sequence[ChangePicture]) -> ChangePicture:
    newest, oldest = changes[0], changes[-1]
    if len(changes) == 1:
        return newest
    commits = [change for change in changes if change.kind == "commit"]
    is_one_log = all(change.log == newest.log for change in changes)
    operations: dict[str, int] = {}
    for change in commits:
        operations[change.operation] = operations.get(change.operation, 0) + change.count
    frequent = sorted(operations.items(), key=lambda pair: -pair[1])[:4]
    damage = [change.text for change in changes if change.kind == "damage"]
    return ChangePicture(
        kind="damage" if damage else "older",
        log=newest.log,
        version=newest.version if is_one_log else 0,
        first_version=(oldest.first_version or oldest.version) if is_one_log else None,
        time_us=newest.time_us,
        text=", ".join([*damage[:3], *(f"{count:,} × {operation}" for operation, count in frequent)]),
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
    """Return the picture in the page's form: bounded, with its changes as columns."""
    changes, count = folded(picture.changes, limits["changes"])
    left_out = list(picture.left_out)
    definitions = _newest(picture, left_out)
    page_data: dict[str, Any] = msgspec.to_builtins(
        msgspec.structs.replace(picture, changes=(), definitions=definitions)
    )
    if count:
        left_out.append(f"{count:,} older changes are folded: lakelog view --json has each of them")
    for name in ("logs", "refs", "health", "dropped", "definitions", "writers", "lanes"):
        _shorten(page_data, name, limits[name], left_out)
    for definition in page_data.get("definitions") or ():
        _shorten(definition, "columns", limits["columns"], left_out)
        _shorten(definition, "properties", limits["columns"], left_out)
    for name in ("partitions", "files"):
        _shorten(page_data.get("layout") or {}, name, limits[name], left_out)
    page_data = _shown(page_data, limits["text"])
    shown_changes = [
        msgspec.structs.replace(change, **_shown_texts(change, limits["text"])) for change in changes
    ]
    page_data["changes"] = columns(_within(shown_changes, page_data))
    page_data["left_out"] = left_out
    return page_data


def _connect(said: dict[str, Any], picture: Picture, context: PageContext) -> None:
    """Add the pages around this page, and the facts from its server."""
    for log_data, log in zip(said.get("logs") or (), picture.logs, strict=False):
        page = None if log.dropped else context.pages.get(log.name)
        if page is not None:
            log_data["page"] = page
    if context.above:
        said["above"] = [(_bounded(name, _TEXT_LEAST), page) for name, page in context.above]
    if context.live is not None:
        said["live"] = context.live


def _newest(picture: Picture, left_out: list[str]) -> tuple[DefinitionPicture, ...]:
    """Return the newest definitions, with at most `_COLUMNS_MAX` columns together."""
    columns, count = 0, 0
    for definition in reversed(picture.definitions):
        columns += len(definition.columns)
        if count and columns > _COLUMNS_MAX:
            break
        count += 1
    if count < (total := len(picture.definitions)):
        left_out.append(f"{total - count:,} of {total:,} definitions are not shown: these have many columns")
    return picture.definitions[total - count :]


def _shorten(said: dict[str, Any], name: str, most: int, left_out: list[str]) -> None:
    entries = said.get(name)
    if entries and len(entries) > most:
        # The newest definitions count; all other lists have what matters first.
        if isinstance(entries, dict):
            said[name] = dict(list(entries.items())[:most])
        else:
            said[name] = entries[-most:] if name == "definitions" else entries[:most]
        text = f"{len(entries) - most:,} of {len(entries):,} {name} are not shown"
        if text not in left_out:
            left_out.append(text)


def _within(changes: Iterable[ChangePicture], said: dict[str, Any]) -> list[ChangePicture]:
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


def columns(changes: Sequence[ChangePicture]) -> dict[str, Any]:
    """Return changes as columns, which take a fraction of the space: defaults are left out, versions and times are
    differences to the row before, and texts that repeat are places in a list."""
    change_columns: dict[str, Any] = {"length": len(changes)}
    for member in msgspec.structs.fields(ChangePicture):
        values = [getattr(change, member.name) for change in changes]
        if all(value == member.default for value in values):
            continue
        if member.name in ("version", "time_us"):
            change_columns[member.name] = {"steps": _steps(values)}
        elif any(isinstance(value, str) for value in values):
            places: dict[Any, int] = {}
            at = [places.setdefault(value, len(places)) for value in values]
            repeats = len(places) * 2 < len(values)
            change_columns[member.name] = {"of": list(places), "at": at} if repeats else {"values": values}
        else:
            change_columns[member.name] = {"values": values}
    return change_columns


def _steps(values: Sequence[int | None]) -> list[int | None]:
    before, steps = 0, []
    for value in values:
        steps.append(None if value is None else value - before)
        before = before if value is None else value
    return steps


def _shown_texts(change: ChangePicture, most: int) -> dict[str, str]:
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
            return {_bounded(key, most): _shown(part, most) for key, part in value.items()}
        case list() | tuple():
            return [_shown(part, most) for part in value]
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
        definitions = said.get("definitions") or ()
        return [(definition.get("columns"), definition.get("properties")) for definition in definitions]
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
def _script(is_live: bool) -> str:
    """Return the script. All that knows the picture is in a function, which draws the page again if it is live."""
    tools = _TOOLS + _TOOLS_OF_A_SERVER if is_live else _TOOLS
    parts = [
        '(function () {\n"use strict";',
        *map(_asset, tools),
        "function drawPicture(data, kept) {",
        *map(_asset, _DRAWING),
        '}\nconst first = JSON.parse(document.getElementById("data").textContent);',
        "follow(drawPicture, first);" if is_live else "drawPicture(first, {});",
        "})();\n",
    ]
    return "\n".join(parts)


def policy_of(*, is_live: bool) -> str:
    """Return the Content-Security-Policy of a page: its own style and script, and its own server if it is live."""
    own_server = "connect-src 'self'; " if is_live else ""
    return (
        f"default-src 'none'; script-src {_hash(_script(is_live))}; style-src {_hash(_asset('page.css'))}; "
        f"{own_server}base-uri 'none'; form-action 'none'"
    )


def _page(picture: Picture, data: str, *, is_live: bool) -> str:
    style, script = _asset("page.css"), _script(is_live)
    marks = {
        "policy": policy_of(is_live=is_live),
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

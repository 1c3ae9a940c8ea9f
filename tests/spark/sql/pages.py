"""Pages of documentation as programs: the statements of their ```sql blocks, or their ```python blocks, and the output
that they promise."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_FAILS = re.compile(r"^-- fails: (\S+)$", re.M)
_SINCE = re.compile(r"\A(?:--|#) since Spark (\d+\.\d+)\n")


@dataclass(frozen=True)
class Statement:
    line: int  # of the page, the first is 1
    text: str
    fails: str | None = None  # the condition of the error
    output: str | None = None  # what follows in a ```text block
    since: tuple[int, ...] = ()  # the version of Spark that has it


def statements(page: Path) -> Iterator[Statement]:
    """Give the statements of a page in order. Each ends with a `;` at a line's end, or with its block.

    `-- fails: ERROR_CLASS` before a statement says that it has to fail with that, `-- since Spark 4.3` as the first
    line of a block that an older Spark lacks it, and a ```text block right behind what its last statement shows.
    """
    text = page.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    for number, block in enumerate(blocks):
        if block[1] != "sql":
            continue
        shown_text = _shown_text(text, blocks, number)
        since = _SINCE.match(block[2])
        parts = [part for part in re.split(r";$", block[2], flags=re.M) if part.strip()]
        start = text.count("\n", 0, block.start(2)) + 1
        for part in parts:
            fails = _FAILS.search(part)
            yield Statement(
                start + len(part) - len(part.lstrip()),
                _FAILS.sub("", part).strip(),
                fails[1] if fails else None,
                shown_text if part is parts[-1] else None,
                tuple(map(int, since[1].split("."))) if since else (),
            )
            start += part.count("\n")


def programs(page: Path) -> Iterator[Statement]:
    """Give the ```python blocks of a page in order, each with what it prints if a ```text block is right behind.

    `# since Spark 4.2` as the first line says that an older Spark lacks what a block does.
    """
    text = page.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    for number, block in enumerate(blocks):
        if block[1] == "python":
            start = text.count("\n", 0, block.start(2)) + 1
            since = _SINCE.match(block[2])
            version = tuple(map(int, since[1].split("."))) if since else ()
            yield Statement(start, block[2], output=_shown_text(text, blocks, number), since=version)


def printed(program: Statement, page: Path, names: dict[str, Any]) -> str:
    """Run a program of a page with these names, and those that it makes itself; return what it prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile("\n" * (program.line - 1) + program.text, str(page), "exec"), names)
    return output.getvalue()


def _shown_text(text: str, blocks: list[re.Match[str]], number: int) -> str | None:
    """Return what the ```text block right behind a block has."""
    if number + 1 == len(blocks):
        return None
    block, shown_block = blocks[number], blocks[number + 1]
    follows = shown_block[1] == "text" and not text[block.end() : shown_block.start()].strip()
    return shown_block[2] if follows else None


def same_output(shown: str, promised: str) -> bool:
    """Whether they are equal, however wide their columns are; `…` in the promise stands for anything in a line."""

    def lines(text: str) -> list[str]:
        padded_text = re.sub(
            r"^\+[-+]+\+$", lambda rule: re.sub("-+", "-", rule[0]), text.strip(), flags=re.M
        )
        return [re.sub(r" +\|", "|", line).rstrip() for line in padded_text.splitlines()]

    ours, theirs = lines(shown), lines(promised)
    return len(ours) == len(theirs) and all(
        re.fullmatch(".*".join(map(re.escape, want.split("…"))), line)
        for line, want in zip(ours, theirs, strict=True)
    )

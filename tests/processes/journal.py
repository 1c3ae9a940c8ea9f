"""Each writer's requests, noted before they are sent, and their answers. It is the only witness of a killed process.

A process appends to a file of its own, one JSON object a line, forced to disk. A line is either an intent, written
before anything is asked for, or an answer. An intent without an answer is of a request whose process died.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DONE, FAILED, UNKNOWN, NOTHING = "done", "failed", "unknown", "nothing"
"""NOTHING: the request was answered in order, and there was nothing to do."""


class Journal:
    """The file of one process. Writers' files are named `<writer>.<incarnation>.jsonl`."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def write(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        assert os.write(self._fd, data) == len(data)
        os.fsync(self._fd)


@dataclass
class Asked:
    """One request over all its attempts: by its writer, and by the writers that came after it."""

    key: str  # writer.incarnation.number
    request: dict[str, Any]
    answers: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    open: bool = False  # asked, and its process died before an answer
    retries: int = 0

    @property
    def outcome(self) -> str:
        """What its writers may rely on: the first certain answer, since a retry cannot change what happened."""
        return next((answer for answer in self.answers if answer != UNKNOWN), UNKNOWN)

    @property
    def doubtful(self) -> bool:
        """Whether a writer should retry."""
        return self.outcome == UNKNOWN


class Journals:
    """All journals of a run, read on from where the last reading ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_to: dict[Path, int] = {}
        self.asked: dict[str, Asked] = {}

    def read_on(self) -> list[Asked]:
        """Read what was added since the last time; return the requests that it is about."""
        touched_requests: dict[str, Asked] = {}
        for path in sorted(self._folder.glob("*.jsonl")):
            for line in self._new_lines(path):
                key = str(line["key"])
                if "request" in line:
                    asked_request = self.asked.setdefault(key, Asked(key, line["request"]))
                    asked_request.retries += asked_request.open or bool(asked_request.answers)
                    asked_request.open = True
                else:
                    asked_request = self.asked[key]
                    asked_request.answers.append(line["answer"])
                    asked_request.open = False
                    if "error" in line:
                        asked_request.errors.append(line["error"])
                touched_requests[key] = asked_request
        return list(touched_requests.values())

    def _new_lines(self, path: Path) -> Iterator[dict[str, Any]]:
        with path.open("rb") as source:
            source.seek(self._read_to.get(path, 0))
            data = source.read()
        # The last line may be half of one, of a process that is writing or was killed: nothing was asked for yet.
        end = data.rfind(b"\n") + 1
        self._read_to[path] = self._read_to.get(path, 0) + end
        for line in data[:end].splitlines():
            yield json.loads(line)

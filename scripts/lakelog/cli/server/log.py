"""The log of a server on stderr: a line for each request and event, for people or in JSON.

Rule: no token, no body, and nothing that a terminal obeys. An entry for people is a line, and a traceback below it is
indented, so no text of a client looks like an entry.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from lakelog.cli import answer
from lakelog.log.secrets import masked
from lakelog.rest.serving import RequestRecord

_LOGGERS = ("lakelog.rest", "uvicorn.error", "asyncio")


class ServerLog:
    """Prints the events of a server."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self._as_json = as_json
        self._quiet = quiet

    def request(self, record: RequestRecord) -> None:
        """Print a request, unless requests are not wanted."""
        if self._quiet:
            return
        moment = datetime.fromtimestamp(record.began_us / 1_000_000, UTC)
        target = masked(record.target)
        if self._as_json:
            members = {**record.members, "target": target, "client": masked(record.client)}
            members["duration_s"] = round(record.duration_s, 6)
            del members["began_us"]
            _print_json({"time": moment.isoformat(), "event": "request", **members})
        else:
            time = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
            # A name with a space would look like the entry's other parts.
            name = record.caller if not set(record.caller) & {" ", '"'} else json.dumps(record.caller)
            caller = f" {name}" if name else ""
            _print_line(
                f"{time} {record.address}{caller} {record.method} {target} {record.status} "
                f"{record.duration_s * 1000:.1f} ms"
            )

    def event(self, event: str, text: str, **members: Any) -> None:
        """Print an event of the server itself."""
        if self._as_json:
            _print_json({"time": datetime.now(UTC).isoformat(), "event": event, "message": text, **members})
        else:
            _print_line(text)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, messages of the server's own loggers are printed, too, with their tracebacks."""
        handler = _LogHandler(as_json=self._as_json)
        handler.addFilter(_is_of_interest)
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(handler)
        try:
            yield
        finally:
            for name in _LOGGERS:
                logging.getLogger(name).removeHandler(handler)


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Return whether a message is printed. uvicorn warns of each request that is no HTTP, as scanners send them."""
    return record.name != "uvicorn.error" or record.levelno >= logging.ERROR


class _LogHandler(logging.Handler):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def emit(self, record: logging.LogRecord) -> None:
        message = masked(record.getMessage())
        traceback = masked(logging.Formatter().formatException(record.exc_info)) if record.exc_info else ""
        if not self._as_json:
            _print_line(message, traceback.splitlines())
            return
        members: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "event": "log",
            "level": record.levelname.lower(),
            "message": message,
        }
        _print_json({**members, **({"traceback": traceback} if traceback else {})})


def _print_line(text: str, below: Sequence[str] = ()) -> None:
    """Print an entry, and indented lines below it."""
    lines = [text, *(f"    {line}" for line in below)]
    # A single write, so that lines of several processes do not mix.
    sys.stderr.write("".join(answer.harmless(line).replace("\n", "\\n") + "\n" for line in lines))
    sys.stderr.flush()


def _print_json(members: dict[str, Any]) -> None:
    sys.stderr.write(answer.harmless(json.dumps(members, ensure_ascii=False)) + "\n")
    sys.stderr.flush()

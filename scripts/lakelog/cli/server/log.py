"""The log of a server on stderr: a line for each request and event, for people or in JSON.

Rule: no token, no body, and nothing that a terminal obeys.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
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
            caller = f" {record.caller}" if record.caller else ""
            answer.say(
                f"{time} {record.address}{caller} {record.method} {target} {record.status} "
                f"{record.duration_s * 1000:.1f} ms",
                err=True,
            )

    def event(self, event: str, text: str, **members: Any) -> None:
        """Print an event of the server itself."""
        if self._as_json:
            _print_json({"time": datetime.now(UTC).isoformat(), "event": event, "message": text, **members})
        else:
            answer.say(text, err=True)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, messages of the server's own loggers are printed, too, with their tracebacks."""
        handler = _JsonHandler() if self._as_json else logging.StreamHandler()
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


class _JsonHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        members: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "event": "log",
            "level": record.levelname.lower(),
            "message": masked(record.getMessage()),
        }
        if record.exc_info:
            members["traceback"] = logging.Formatter().formatException(record.exc_info)
        _print_json(members)


def _print_json(members: dict[str, Any]) -> None:
    # A single write, so that lines of several processes do not mix.
    sys.stderr.write(answer.harmless(json.dumps(members, ensure_ascii=False)) + "\n")
    sys.stderr.flush()

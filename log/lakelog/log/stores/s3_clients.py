"""The clients of one bucket: lakelog's own for the requests of a log, s3fs for the rest, each made when it is needed.

Rule: neither outlives a fork, so each process has its own. Where the own client cannot serve a place, or the bucket
turns out to be elsewhere, all goes through s3fs: see `s3_place`.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelog.log.stores.s3_files import S3Files
from lakelog.log.stores.s3_place import place_of
from lakelog.log.stores.s3_wire import ATTEMPTS_MAX, CONNECTIONS_MAX, Elsewhere, Wire, knows

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60


@dataclass(eq=False)
class _Made:
    """What one process has. `wire` is None once it is known that all goes through s3fs, for the reason `why`."""

    pid: int
    wire: Wire | None
    why: str
    files: S3Files | None = None


@dataclass(eq=False)
class Clients:
    """Threads may share it."""

    bucket: str
    endpoint: str | None
    region: str | None
    path_style: bool
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _made: _Made | None = field(default=None, init=False)

    def call(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Send one request about the bucket; return what the AWS SDK does, with the body of an object as
        bytes. Raises errors that `s3_errors` understands."""
        (found,) = self.calls(operation, [arguments])
        if isinstance(found, Exception):
            raise found
        return found

    def calls(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Send requests side by side, and return what became of each: an error does not end the others."""
        made = self._of_this_process()
        if made.wire is not None and all(knows(operation, arguments) for arguments in each):
            found: list[Any] = made.wire.calls(operation, each)
            if not any(isinstance(one, Elsewhere) for one in found):
                return found
            # These requests had no effect: s3fs finds out where the bucket is, and asks there.
            made.wire, made.why = None, "the bucket is in another region than the settings say"
        return self.files().calls(operation, each)

    def files(self) -> S3Files:
        """Return the client that is s3fs."""
        made = self._of_this_process()
        if made.files is None:
            files = S3Files(
                self.bucket,
                endpoint=self.endpoint,
                region=self.region,
                path_style=self.path_style,
                connect_timeout_s=CONNECT_TIMEOUT_S,
                read_timeout_s=READ_TIMEOUT_S,
                attempts_max=ATTEMPTS_MAX,
                connections_max=CONNECTIONS_MAX,
            )
            with self._lock:
                made.files = made.files or files
        return made.files

    def described(self) -> str:
        """Return which client sends the requests of a log. Makes no request to S3."""
        made = self._of_this_process()
        return "lakelog" if made.wire is not None else f"s3fs ({made.why})"

    def _of_this_process(self) -> _Made:
        made = self._made
        if made is not None and made.pid == os.getpid():
            return made
        with self._lock:
            made = self._made
            if made is None or made.pid != os.getpid():
                place, why = place_of(
                    self.bucket, endpoint=self.endpoint, region=self.region, path_style=self.path_style
                )
                wire = None if place is None else Wire(place, CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
                made = self._made = _Made(os.getpid(), wire, why)
        return made

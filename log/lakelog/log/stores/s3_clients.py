"""The clients of a bucket: lakelog's own for the requests of a log, s3fs for the rest, each made on demand.

Rule: neither outlives a fork, so each process has its own. If lakelog's own client cannot serve a place, or
the bucket turns out to be elsewhere, everything goes through s3fs: see `s3_place`.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelog.log.stores.s3_files import S3Files
from lakelog.log.stores.s3_place import is_of_aws, place_of
from lakelog.log.stores.s3_wire import ATTEMPTS_MAX, CONNECTIONS_MAX, BucketClient, BucketElsewhere, knows

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60


@dataclass(eq=False)
class _Made:
    """The clients of a process. `wire` is None if everything goes through s3fs, for the reason `why`."""

    pid: int
    wire: BucketClient | None
    why: str
    files: S3Files | None = None


@dataclass(eq=False)
class S3Clients:
    """The clients of a bucket. Threads may share them."""

    bucket: str
    endpoint: str | None
    region: str | None
    path_style: bool
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _made: _Made | None = field(default=None, init=False)

    def call(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Send a request about the bucket; return what the AWS SDK does, with an object's body as bytes.

        Raises errors that `s3_errors` understands.
        """
        (result,) = self.calls(operation, [arguments])
        if isinstance(result, Exception):
            raise result
        return result

    def calls(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Send requests in parallel, and return the result of each. An error does not end the others."""
        clients = self._of_this_process()
        if clients.wire is not None and all(knows(operation, arguments) for arguments in each):
            results: list[Any] = clients.wire.calls(operation, each)
            if not any(isinstance(result, BucketElsewhere) for result in results):
                return results
            # These requests had no effect. s3fs finds the bucket's region, and repeats them there.
            clients.wire, clients.why = None, "the bucket is in another region than the settings say"
        return self.files().calls(operation, each)

    def files(self) -> S3Files:
        """Return the client that is s3fs."""
        clients = self._of_this_process()
        if clients.files is None:
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
                clients.files = clients.files or files
        return clients.files

    def described(self) -> str:
        """Return which client sends the requests of a log. Makes no request to S3."""
        clients = self._of_this_process()
        return "lakelog" if clients.wire is not None else f"s3fs ({clients.why})"

    def is_of_aws(self) -> bool:
        """Return whether the requests of a log go to AWS's own S3, as far as this client knows. Makes no request."""
        wire = self._of_this_process().wire
        return wire is not None and is_of_aws(wire.place.server.host)

    def _of_this_process(self) -> _Made:
        clients = self._made
        if clients is not None and clients.pid == os.getpid():
            return clients
        with self._lock:
            clients = self._made
            if clients is None or clients.pid != os.getpid():
                place, why = place_of(
                    self.bucket, endpoint=self.endpoint, region=self.region, path_style=self.path_style
                )
                wire = None if place is None else BucketClient(place, CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
                clients = self._made = _Made(os.getpid(), wire, why)
        return clients

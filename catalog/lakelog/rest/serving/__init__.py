"""The HTTP server of `lakelog serve` and `lakelog ui`: uvicorn, with limits on all that a client may hold.

Rule: a client costs a bounded number of threads, connections and bytes, for a bounded time, and none before it is
known. Requests that cannot be understood are answered in JSON too. This package must not know the subject of requests.
The modules that need uvicorn are loaded when a server starts.
"""

from lakelog.rest.serving.application import AnswerSource, RequestSpan
from lakelog.rest.serving.limits import ServerLimits
from lakelog.rest.serving.records import RequestRecord
from lakelog.rest.serving.running import (
    RunningServer,
    ServerOutcome,
    check_installed,
    listening,
    serve,
    url_of,
)
from lakelog.rest.serving.settings import LOOPBACK, PORT, ServerSettings, TlsFiles
from lakelog.rest.serving.spans import request_spans
from lakelog.rest.serving.workers import serve_in_workers

__all__ = [
    "LOOPBACK",
    "PORT",
    "AnswerSource",
    "RequestRecord",
    "RequestSpan",
    "RunningServer",
    "ServerLimits",
    "ServerOutcome",
    "ServerSettings",
    "TlsFiles",
    "check_installed",
    "listening",
    "request_spans",
    "serve",
    "serve_in_workers",
    "url_of",
]

"""A server in this process: it listens, answers, and ends in order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.catalog.engine import package
from lakelog.rest.access import OpenGate, RequestGate
from lakelog.rest.hosts import is_loopback
from lakelog.rest.serving.application import AnswerApplication, AnswerSource, RequestSpan
from lakelog.rest.serving.probes import ServerProbes
from lakelog.rest.serving.records import RequestRecord
from lakelog.rest.serving.settings import LOOPBACK, PORT, ServerSettings

if TYPE_CHECKING:
    from lakelog.rest.serving.uvicorn_server import GracefulServer

BACKLOG = 512
EXTRA = "serve"


class RunningServer:
    """A server that runs. Any thread may end it."""

    def __init__(self, server: GracefulServer) -> None:
        self._server = server

    def shutdown(self) -> None:
        """Let the server finish the requests that it has begun, and end. Returns at once."""
        self._server.should_exit = True


@dataclass(frozen=True, slots=True)
class ServerOutcome:
    """How a server has ended: by Ctrl-C, and with requests that still run after the time for them."""

    is_interrupted: bool
    running_count: int


def serve(
    answers: AnswerSource,
    host: str = LOOPBACK,
    port: int = PORT,
    *,
    began: Callable[[str, RunningServer], None],
    asked: Callable[[RequestRecord], None] = lambda record: None,
    gate: RequestGate | None = None,
    settings: ServerSettings | None = None,
    check_ready: Callable[[], None] | None = None,
    span: RequestSpan | None = None,
    listener: socket.socket | None = None,
) -> ServerOutcome:
    """Answer requests until the server is shut down. `began` gets the URL and the server, `asked` each request.

    At an address of this host alone, requests to another host name are refused. With `check_ready` there are probes.
    A `listener` is a socket that listens already, as several processes share it. `settings` stand for `host` and
    `port`. Raises OSError if the address is not available, and Unsupported if uvicorn is not installed.
    """
    check_installed()
    from lakelog.rest.serving.uvicorn_server import GracefulServer

    settings = settings or ServerSettings(host=host, port=port)
    listener = listener or listening(settings)
    address, bound_port = listener.getsockname()[:2]
    application = AnswerApplication(
        answers,
        gate or OpenGate(),
        settings.limits,
        record=asked,
        local_host=settings.host if is_loopback(str(address)) and not settings.behind_proxy else None,
        probes=None if check_ready is None else ServerProbes(check_ready),
        span=span,
    )
    server = GracefulServer(application, settings.limits, settings.tls)
    try:
        began(url_of(settings, str(address), bound_port), RunningServer(server))
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        listener.close()
        application.close()
    return ServerOutcome(server.is_interrupted, application.running_count)


def check_installed() -> None:
    """Raise Unsupported if the libraries of a server are not installed."""
    package("uvicorn", "a server", "uvicorn", EXTRA)


def listening(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens at the server's address. Raises OSError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)


def url_of(settings: ServerSettings, address: str, port: int) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{'http' if settings.tls is None else 'https'}://{host}:{port}"

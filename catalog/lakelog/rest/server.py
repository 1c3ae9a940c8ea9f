"""A server of the answers, for clients on this host or, at another address, on others.

Rule: what cannot be understood is answered in JSON too, and a client that goes away, or sends what is not wanted,
disturbs no other. It must not know what is asked for.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from lakelog.log.clocks import steady_clock_us
from lakelog.rest.answers import Answer, Answers, error_answer

LOOPBACK = "127.0.0.1"
PORT = 8181
IDLE_S = 60
"""So long a connection may say nothing."""
LINGER_S = 5
"""So long is read what a client still sends when it has its answer."""
_LOGGER = logging.getLogger("lakelog.rest")


def serve(
    answers: Answers,
    host: str = LOOPBACK,
    port: int = PORT,
    *,
    began: Callable[[str, ThreadingHTTPServer], None],
    asked: Callable[[str], None] = lambda line: None,
) -> None:
    """Answer requests until the server is shut down, which `began` is given with its URL. `asked` gets a line for each.

    At an address of this host alone, requests to another name than this host's own are refused. OSError where the
    address cannot be had.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "lakelog"
        timeout = IDLE_S

        def _answer(self) -> None:
            # What a request brings along is of no use here, and must not be taken for the next one.
            brings_along = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
            self.close_connection = self.close_connection or brings_along
            self._send(self._answer_of(self.server))

        def _answer_of(self, server: Any) -> Answer:
            hosts = self.headers.get_all("Host", [])
            if server.is_local and not all(_is_of_this_host(each, host) for each in hosts):
                return error_answer(
                    403,
                    "ForbiddenException",
                    f"this catalog is for clients on its own host, and {hosts[0]} was asked for: use localhost or "
                    f"{host} in the URL",
                )
            try:
                return answers.answer(self.command, self.path, self.headers.get("If-None-Match", ""))
            except Exception:
                _LOGGER.exception("%s %r was not answered", self.command, self.path)
                return error_answer(500, "InternalServerError", "the server failed: its log has the reason")

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status not in (204, 304):
                self.send_header("Content-Length", str(len(answer.body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _answer

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            self.close_connection = True
            self._send(error_answer(code, "BadRequestException", message or HTTPStatus(code).phrase))

        def log_message(self, format: str, *arguments: object) -> None:
            asked(format % arguments)

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True
        request_queue_size = 128
        is_local = False

        def shutdown_request(self, request: Any) -> None:
            # A connection that is closed before all was read is reset, and the client may lose the answer.
            try:
                request.shutdown(socket.SHUT_WR)
                until_us = steady_clock_us() + LINGER_S * 1_000_000
                while (left_us := until_us - steady_clock_us()) > 0:
                    request.settimeout(left_us / 1_000_000)
                    if not request.recv(1 << 16):
                        break
            except OSError:
                pass  # the client is gone
            self.close_request(request)

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), OSError):  # the client is gone, or too slow
                super().handle_error(request, client_address)

    with Server((host, port), Handler) as server:
        address, bound = server.server_address[:2]
        server.is_local = ip_address(str(address).partition("%")[0]).is_loopback
        shown = f"[{address!s}]" if ":" in host else str(address)
        began(f"http://{shown}:{bound}", server)
        server.serve_forever()


def _is_of_this_host(asked: str, host: str) -> bool:
    """Return whether a header `Host` names this host.

    A name of another's choice may lead a web browser here, whose page could then read all; an address cannot.
    """
    try:
        name = (urlsplit(f"//{asked}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost") or name == host.lower():
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True

"""A server of answers over HTTP, for clients on this host or, at another address, on others.

Rule: requests that cannot be understood are answered in JSON too. A client that leaves, or sends unwanted
data, disturbs no other. It must not know the subject of requests.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlsplit

from lakelog.log.clocks import steady_clock_us
from lakelog.rest.answers import HttpAnswer, error_answer

LOOPBACK = "127.0.0.1"
PORT = 8181
IDLE_S = 60
"""How long a connection may be silent."""
LINGER_S = 5
"""How long input is still read after the client has its answer."""
_LOGGER = logging.getLogger("lakelog.rest")


class AnswerSource(Protocol):
    """The source of a server's answers, for several threads at once.

    `body_bytes_max` is the limit of a request's body. If it is 0, bodies are not read.
    """

    @property
    def body_bytes_max(self) -> int: ...

    def answer(
        self, method: str, target: str, known: str = "", body: bytes = b"", client: str = ""
    ) -> HttpAnswer: ...


def serve(
    answers: AnswerSource,
    host: str = LOOPBACK,
    port: int = PORT,
    *,
    began: Callable[[str, ThreadingHTTPServer], None],
    asked: Callable[[str], None] = lambda line: None,
) -> None:
    """Answer requests until the server is shut down. `began` gets the URL and the server, `asked` a line each.

    At an address of this host alone, requests to another host name are refused. Raises OSError if the address
    is not available.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "lakelog"
        timeout = IDLE_S

        def _answer(self) -> None:
            body = self._body()
            if isinstance(body, HttpAnswer):
                self.close_connection = True
                self._send(body)
            else:
                self._send(self._answer_of(self.server, body))

        def _body(self) -> bytes | HttpAnswer:
            """Return the request's body, or the answer to a request whose body is refused."""
            has_body = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
            if not has_body or not answers.body_bytes_max:
                # An unread body must not be taken for the next request.
                self.close_connection = self.close_connection or has_body
                return b""
            length = self.headers.get("Content-Length", "")
            if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
                return error_answer(411, "BadRequestException", "send the body with its Content-Length")
            if len(length) > 15 or int(length) > answers.body_bytes_max:
                limit = f"{answers.body_bytes_max:,} bytes"
                return error_answer(
                    413, "BadRequestException", f"the body is larger than the limit of {limit}"
                )
            body = self.rfile.read(int(length))
            if len(body) < int(length):
                return error_answer(400, "BadRequestException", "the body is shorter than its Content-Length")
            return body

        def _answer_of(self, server: Any, body: bytes) -> HttpAnswer:
            hosts = self.headers.get_all("Host", [])
            if server.is_local and not all(_is_of_this_host(name, host) for name in hosts):
                return error_answer(
                    403,
                    "ForbiddenException",
                    f"this server is for clients on its own host, and {hosts[0]} was asked for: use localhost or "
                    f"{host} in the URL",
                )
            if self.command not in ("GET", "HEAD") and "Origin" in self.headers:
                # Browsers send it with every change that a page of another site makes, and no other client does.
                return error_answer(
                    403, "ForbiddenException", "pages in a browser may not change anything here"
                )
            try:
                return answers.answer(
                    self.command,
                    self.path,
                    self.headers.get("If-None-Match", ""),
                    body,
                    self.headers.get("User-Agent", ""),
                )
            except Exception:
                _LOGGER.exception("%s %r was not answered", self.command, self.path)
                return error_answer(500, "InternalServerError", "the server failed: its log has the reason")

        def _send(self, answer: HttpAnswer) -> None:
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
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
            # A connection that is closed before all input was read is reset, and the client may lose the
            # answer.
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
        address, bound_port = server.server_address[:2]
        server.is_local = is_loopback(str(address))
        url_host = f"[{address!s}]" if ":" in host else str(address)
        began(f"http://{url_host}:{bound_port}", server)
        server.serve_forever()


def is_loopback(host: str) -> bool:
    """Return whether only this host reaches an address. False if it is no address, except for `localhost`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_of_this_host(asked: str, host: str) -> bool:
    """Return whether a header `Host` names this host.

    A name chosen by others may lead a web browser here, whose page could then read everything. An address
    cannot.
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

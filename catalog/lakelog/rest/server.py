"""A server of the answers, for clients on this host or, at another address, on others."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lakelog.rest.answers import Answers

LOOPBACK = "127.0.0.1"
PORT = 8181


def serve(
    answers: Answers,
    host: str = LOOPBACK,
    port: int = PORT,
    *,
    began: Callable[[str, ThreadingHTTPServer], None],
    asked: Callable[[str], None] = lambda line: None,
) -> None:
    """Answer requests until the server is shut down, which `began` is given with its URL. `asked` gets a line for each.

    OSError where the address cannot be had.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "lakelog"
        timeout = 60

        def _answer(self) -> None:
            # What a request brings along is of no use here, and must not be taken for the next one.
            brings_along = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
            self.close_connection = self.close_connection or brings_along
            answer = answers.answer(self.command, self.path)
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            if answer.status != 204:
                self.send_header("Content-Length", str(len(answer.body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, format: str, *arguments: object) -> None:
            asked(format % arguments)

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True
        request_queue_size = 128

    with Server((host, port), Handler) as server:
        address, bound = server.server_address[:2]
        shown = f"[{address!s}]" if ":" in host else str(address)
        began(f"http://{shown}:{bound}", server)
        server.serve_forever()

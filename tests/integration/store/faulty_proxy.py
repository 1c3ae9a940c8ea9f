"""An HTTP proxy before an S3 server that spoils answers: what AWS and networks do, and no test server."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>spoilt</Message></Error>"
CODES = {409: "ConditionalRequestConflict", 500: "InternalError", 503: "SlowDown"}


class FaultyProxy(ThreadingHTTPServer):
    """Passes requests on. Each PUT with a condition takes the next of `faults`:

    "500", "503", "409" answer so without the server having seen the request; with "lost-" before it, the server has;
    "close" and "lost-close" break the connection instead; "hang" and "lost-hang" never answer.
    """

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.ended = threading.Event()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        return  # clients that gave up


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def log_message(self, format: str, *args: object) -> None:
        return

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        conditional = self.command == "PUT" and "If-None-Match" in self.headers
        fault = self.server.faults.pop(0) if conditional and self.server.faults else ""
        self.server.requests.append(f"{self.command} {fault}".strip())
        if not fault or fault.startswith("lost-"):
            status, headers, answer = self._ask(body)
        fault = fault.removeprefix("lost-")
        if fault == "close":
            self.close_connection = True
            self.connection.close()
            return
        if fault == "hang":
            self.server.ended.wait(10)
            self.close_connection = True
            return
        if fault:
            status, answer = int(fault), ERROR.format(code=CODES[int(fault)]).encode()
            headers = [("Content-Type", "application/xml")]
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.server.target, timeout=30)
        try:
            # The Host that was signed goes along, so that the signature stays right.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


@contextmanager
def faulty_proxy(target: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(target)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.ended.set()
        proxy.shutdown()
        proxy.server_close()
        thread.join()

"""An HTTP proxy before an object store that does what AWS and networks do, and no test server: delays, breaks, loses.

Faults come from a list, one for each conditional PUT, or by chance from a seed, on any request. Each kind is counted.

    latency          answers late
    reset            breaks the connection; the server has not seen the request
    lost-reset       breaks the connection; the server has applied it
    late             breaks the connection, and the server gets a PUT only seconds later
    500, 503, 409    answers so; the server has not seen the request (409 for conditional PUTs only)
    lost-500, …      answers so; the server has applied it
    truncated        announces the whole answer, sends a part, and breaks the connection
    slow             sends the answer in small pieces with pauses between them
    hang, lost-hang  never answer (from the list only)
"""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.patience import PATIENCE_S

ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>spoilt</Message></Error>"
CODES = {409: "ConditionalRequestConflict", 500: "InternalError", 503: "SlowDown"}
CONDITIONS = ("if-none-match", "x-goog-if-generation-match")
ABRUPTLY = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset instead of an orderly end
LATENCY_MAX_S = 1.0
LATE_MAX_S = 3.0
HANG_S = 10.0
PIECES = 8
PIECE_PAUSE_MAX_S = 0.05

ANY = {"latency": 0.003, "reset": 0.001, "lost-reset": 0.001, "500": 0.001, "503": 0.001, "lost-500": 0.0005}
READ = {"truncated": 0.001, "slow": 0.002}
WRITE = {"latency": 0.02, "reset": 0.01, "lost-reset": 0.01, "late": 0.01, "500": 0.005, "lost-503": 0.01}
CONDITIONAL = {"409": 0.03, "lost-409": 0.01, "lost-reset": 0.02, "lost-500": 0.02, "late": 0.02}
"""How often, of all requests. Writes get most of it: it is they whose answers have to be understood."""


class Chance:
    """Draws a fault for a request now and then. `intensity` multiplies how often."""

    def __init__(self, seed: int, intensity: float = 1.0) -> None:
        self.intensity = intensity
        self._rng = random.Random(seed)
        self._lock = threading.Lock()

    def fault(self, command: str, conditional: bool) -> str:
        """Return a fault for a request, or "" for none."""
        with self._lock:
            drawn_number = self._rng.random()
            for rates in self._rates(command, conditional):
                for fault, rate in rates.items():
                    drawn_number -= rate * self.intensity
                    if drawn_number < 0:
                        return fault
        return ""

    def seconds(self, at_most: float) -> float:
        with self._lock:
            return self._rng.random() * at_most

    def _rates(self, command: str, conditional: bool) -> Iterator[Mapping[str, float]]:
        yield ANY
        if command == "GET":
            yield READ
        elif command == "PUT":
            yield WRITE
            if conditional:
                yield CONDITIONAL


class FaultyProxy(ThreadingHTTPServer):
    """Passes requests on. Each conditional PUT takes the next of `faults`; without one, `chance` decides."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: str, chance: Chance | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.faults: list[str] = []
        self.chance = chance
        self.requests: list[str] | None = None
        self.answers: list[tuple[str, str, int, int]] | None = None
        """Where wanted: the command, path, status and size in bytes of each answer that was sent."""
        self.refuse: Callable[[str, str, int], tuple[int, str] | None] = lambda command, path, size: None
        """Which requests, by command, path and size of the body, get a status and code, and do not reach the server."""
        self.ignores_conditions = False
        """Whether a conditional PUT replaces the object, as on servers that do not know the condition."""
        self.date: Callable[[], str | None] = lambda: None
        """The Date of answers, in place of the server's."""
        self.passed = 0
        self.injected: Counter[str] = Counter()
        self.ended = threading.Event()
        self._late: list[threading.Thread] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def fault_for(self, command: str, conditional: bool) -> str:
        fault = self.faults.pop(0) if conditional and self.faults else ""
        if not fault and self.chance is not None:
            fault = self.chance.fault(command, conditional)
        self.passed += 1
        if fault:
            self.injected[fault] += 1
        if self.requests is not None:
            self.requests.append(f"{command} {fault}".strip())
        return fault

    def seconds(self, at_most: float) -> float:
        return self.chance.seconds(at_most) if self.chance is not None else at_most

    def later(self, handler: _Handler, body: bytes) -> None:
        """Give a request to the server after a while, even if its client has died in between."""

        def apply() -> None:
            time.sleep(self.seconds(LATE_MAX_S))
            with suppress(OSError, http.client.HTTPException):
                handler.ask(body)

        thread = threading.Thread(target=apply, daemon=True)
        self._late.append(thread)
        thread.start()

    def settle(self) -> None:
        """Return when no late request is on its way any more."""
        for thread in self._late:
            thread.join()

    def handle_error(self, request: object, client_address: object) -> None:
        return  # clients that gave up, or were killed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FaultyProxy

    def log_message(self, format: str, *args: object) -> None:
        return

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        conditional = self.command == "PUT" and any(name in self.headers for name in CONDITIONS)
        refused_pair = self.server.refuse(self.command, self.path, len(body))
        if refused_pair is not None:
            return self._answer(
                refused_pair[0],
                [("Content-Type", "application/xml")],
                ERROR.format(code=refused_pair[1]).encode(),
            )
        fault = self.server.fault_for(self.command, conditional)
        if fault == "latency":
            time.sleep(self.server.seconds(LATENCY_MAX_S))
        if fault == "late":
            self.server.later(self, body)
        is_answered = fault in ("", "latency", "truncated", "slow") or fault.startswith("lost-")
        if is_answered:
            try:
                status, headers, answer = self.ask(body)
            except (OSError, http.client.HTTPException):
                return self._break()
            if conditional and self.server.ignores_conditions and status in (409, 412):
                status, headers, answer = 201, [("ETag", '"replaced"')], b""
        match fault.removeprefix("lost-"):
            case "reset" | "late":
                return self._break()
            case "hang":
                self.server.ended.wait(HANG_S)
                self.close_connection = True
                return
            case "409" | "500" | "503" as code:
                status, answer = int(code), ERROR.format(code=CODES[int(code)]).encode()
                headers = [("Content-Type", "application/xml")]
        self._answer(status, headers, answer, fault)

    def _answer(self, status: int, headers: list[tuple[str, str]], answer: bytes, fault: str = "") -> None:
        date = self.server.date()
        if date is not None:
            headers = [*((name, value) for name, value in headers if name.lower() != "date"), ("Date", date)]
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        length = len(answer)
        if self.command == "HEAD":
            length = int(next((v for n, v in headers if n.lower() == "content-length"), "0"))
        self.send_header("Content-Length", str(length))
        if self.server.answers is not None:
            self.server.answers.append((self.command, self.path, status, length))
        self.end_headers()
        if self.command != "HEAD":
            self._send(answer, fault)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

    def _send(self, answer: bytes, fault: str) -> None:
        if fault == "truncated":
            self.wfile.write(answer[: len(answer) // 2])
            return self._break()
        if fault != "slow":
            self.wfile.write(answer)
            return
        size = max(1, len(answer) // PIECES)
        for start in range(0, len(answer), size):
            self.wfile.write(answer[start : start + size])
            time.sleep(self.server.seconds(PIECE_PAUSE_MAX_S))

    def _break(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABRUPTLY)
        # The socket is closed in truth only when the files made of it are.
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def _is_dropped(self, header: str) -> bool:
        """Return whether a header is a condition that is ignored. Azure's signature has it, so there it stays."""
        is_signed = str(self.headers.get("Authorization")).startswith("SharedKey")
        return self.server.ignores_conditions and not is_signed and header.lower() in CONDITIONS

    def ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.server.target, timeout=PATIENCE_S)
        try:
            # The Host that was signed goes along, so that the signature stays right.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if not self._is_dropped(name):
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


@contextmanager
def faulty_proxy(target: str, chance: Chance | None = None) -> Iterator[FaultyProxy]:
    """Run a proxy before `target`, the url of an S3 server, until the block ends."""
    proxy = FaultyProxy(target, chance)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.ended.set()
        proxy.shutdown()
        proxy.server_close()
        thread.join()

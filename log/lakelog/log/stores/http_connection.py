"""An HTTP/1.1 connection to a server, for a single request at a time, which is sent and answered in two steps.

So a thread can send many requests over many connections before it reads the first answer. This module resends
nothing and follows no redirect. Incomplete answers and answers that are not HTTP are errors. The standard
library's client takes three times as long for a small answer, because it parses headers like e-mail.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl

LINE_MAX = 64 * 1024
HEADERS_MAX = 256
SENT_AT_ONCE = 64 * 1024
"""Bytes of a body that are sent together with the head."""


class HttpServer(NamedTuple):
    """The address to connect to; `tls` for https."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class HttpResponse(NamedTuple):
    """An answer. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class ConnectFailed(ConnectionError):
    """There is no connection, so nothing was sent."""


class BrokenAnswer(ConnectionError):
    """The answer ended early, or is not an HTTP answer."""


class HttpConnection:
    """A connection. Threads may not use it at the same time."""

    def __init__(self, server: HttpServer, connect_timeout_s: float, read_timeout_s: float) -> None:
        try:
            new_socket = socket.create_connection((server.host, server.port), connect_timeout_s)
            try:
                new_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                self._socket = (
                    new_socket
                    if server.tls is None
                    else server.tls.wrap_socket(new_socket, server_hostname=server.host)
                )
            except BaseException:
                new_socket.close()
                raise
        except OSError as error:
            raise ConnectFailed(f"{type(error).__name__}: {error}") from error
        self._socket.settimeout(read_timeout_s)
        self._reader = self._socket.makefile("rb")
        self._asked = ""
        self._broken: OSError | None = None
        self.reusable = False
        """Whether the last answer was read to its end, and the server keeps the connection."""

    def is_dropped(self) -> bool:
        """Return whether the server has closed it, or has sent unrequested data."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a request. If it could not be sent to its end, `answer` raises the error, unless there is an answer."""
        self.reusable = False
        self._asked, self._broken = method, None
        lines = [
            f"{method} {target} HTTP/1.1\r\n",
            *[f"{name}: {text}\r\n" for name, text in headers.items()],
        ]
        if body or method in ("PUT", "POST"):
            lines.append(f"content-length: {len(body)}\r\n")
        head = "".join([*lines, "\r\n"]).encode("latin-1")
        try:
            if len(body) <= SENT_AT_ONCE:
                self._socket.sendall(head + body)
            else:
                self._socket.sendall(head)
                self._socket.sendall(body)
        except OSError as error:
            # A server that refuses may answer before it has read everything, and then close.
            self._broken = error

    def answer(self) -> HttpResponse:
        """Return the answer to the request. Raises OSError (or TimeoutError) if it is absent or incomplete."""
        try:
            status = 100
            while status == 100:
                status, keeps_by_default, headers = self._head()
            body, ends = self._body(status, headers)
        except OSError as error:
            raise self._broken or error from None
        connection_header = headers.get("connection", "").lower()
        self.reusable = (
            ends
            and self._broken is None
            and (connection_header != "close" if keeps_by_default else connection_header == "keep-alive")
        )
        return HttpResponse(status, headers, body)

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def _head(self) -> tuple[int, bool, dict[str, str]]:
        """Return the status, whether connections are kept by default, and the headers.

        Reads them at once if all are in the buffer in the usual form, otherwise line by line.
        """
        buffer = self._reader.peek()
        end = buffer.find(b"\r\n\r\n")
        if end >= 0:
            first, *lines = buffer[:end].split(b"\r\n")
            if len(lines) <= HEADERS_MAX and buffer.count(b"\n", 0, end) == len(lines):
                self._reader.read(end + 4)
                return *_status(first), dict(map(_header, lines))
        return *_status(self._line()), self._headers()

    def _line(self) -> bytes:
        line = self._reader.readline(LINE_MAX)
        if not line.endswith(b"\n"):
            raise BrokenAnswer("the connection was closed" if len(line) < LINE_MAX else "a line without end")
        return line.rstrip(b"\r\n")

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(HEADERS_MAX):
            line = self._line()
            if not line:
                return headers
            name, text = _header(line)
            headers[name] = text
        raise BrokenAnswer("too many headers")

    def _body(self, status: int, headers: Mapping[str, str]) -> tuple[bytes, bool]:
        """Return the body, and whether its end is known without the end of the connection."""
        if self._asked == "HEAD" or status in (204, 304):
            return b"", True
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks(), True
        length = headers.get("content-length")
        if length is None:
            return self._reader.read(), False
        if not (length.isascii() and length.isdigit()):
            raise BrokenAnswer("a length that is no number")
        return self._exactly(int(length)), True

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while True:
            try:
                size = int(self._line().split(b";")[0], 16)
            except ValueError:
                raise BrokenAnswer("a piece without a length") from None
            if size < 0:
                raise BrokenAnswer("a piece without a length")
            if size == 0:
                self._headers()
                return b"".join(parts)
            parts.append(self._exactly(size))
            self._line()

    def _exactly(self, size: int) -> bytes:
        data = self._reader.read(size)
        if len(data) != size:
            raise BrokenAnswer(f"{len(data)} of {size} bytes came")
        return data


def _status(line: bytes) -> tuple[int, bool]:
    version, _, status_text = line.partition(b" ")
    code = status_text[:3]
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not code.isdigit() or len(code) != 3:
        raise BrokenAnswer("this is not HTTP")
    return int(code), version == b"HTTP/1.1"


def _header(line: bytes) -> tuple[str, str]:
    name, colon, text = line.partition(b":")
    if not colon:
        raise BrokenAnswer("a header without a name")
    return name.decode("latin-1").lower(), text.strip().decode("latin-1")

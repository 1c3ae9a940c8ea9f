"""Clients that are slow, many, large or rude: each costs the server a bounded amount, and others are answered."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from tests.integration.serving.requests import send
from tests.patience import PATIENCE_S, wait_until

from lakelog.rest import HttpAnswer, serve
from lakelog.rest.access import KnownCaller, OpenGate, UnknownCaller
from lakelog.rest.serving import RequestRecord, RunningServer, ServerLimits, ServerSettings

HEAD = b"GET /x HTTP/1.1\r\nHost: localhost\r\n"


class TestedAnswers:
    """Answers that a test holds back, or makes large."""

    __test__ = False
    body_bytes_max = 1 << 20

    def __init__(self) -> None:
        self.is_free = threading.Event()
        self.is_free.set()
        self.begun = 0
        self.size_bytes = 0
        self.bodies: list[bytes] = []

    def answer(
        self,
        method: str,
        target: str,
        known: str = "",
        body: bytes = b"",
        client: str = "",
        caller: Any = None,
        delegation: str = "",
        idempotency_key: str = "",
    ) -> HttpAnswer:
        self.begun += 1
        self.bodies.append(body)
        assert self.is_free.wait(PATIENCE_S)
        return HttpAnswer(200, b"{}" + b" " * self.size_bytes)


class Server:
    """A server in a thread of this process."""

    def __init__(self, url: str, answers: TestedAnswers, records: list[RequestRecord]) -> None:
        self.url, self.answers, self.records = url, answers, records
        self.port = int(url.rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)


@contextmanager
def running(gate: Any = None, **limits: Any) -> Iterator[Server]:
    answers, records = TestedAnswers(), list[RequestRecord]()
    servers: list[tuple[str, RunningServer]] = []
    ready = threading.Event()

    def began(url: str, server: RunningServer) -> None:
        servers.append((url, server))
        ready.set()

    settings = ServerSettings(port=0, limits=ServerLimits(**limits))
    options: dict[str, Any] = {"began": began, "asked": records.append, "settings": settings, "gate": gate}
    thread = threading.Thread(target=lambda: serve(answers, **options))
    thread.start()
    assert ready.wait(PATIENCE_S)
    ((url, server),) = servers
    try:
        yield Server(url, answers, records)
    finally:
        answers.is_free.set()
        server.shutdown()
        thread.join()


def everything(connection: socket.socket) -> bytes:
    """Return what a connection brings until its end. A reset is an end."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def answer_of(connection: socket.socket) -> bytes:
    """Return the next answer. Its head and its body may arrive apart."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1 << 16)
        assert part, "the connection was closed before its answer"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.splitlines()
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        part = connection.recv(1 << 16)
        assert part, "the connection was closed within its answer"
        data, body = data + part, body + part
    return data


def status_of(data: bytes) -> int:
    return int(data.split()[1])


@pytest.mark.parametrize("start", [HEAD, HEAD[:3], b""])
def test_hundreds_of_slow_connections_take_no_threads_and_are_closed(start: bytes) -> None:
    threads_before = threading.active_count()
    with running(threads=4, head_s=4.0, idle_s=4.0) as server, ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(300)]
        for connection in connections:
            connection.sendall(start)
        for _ in range(20):
            assert send(server.url, "/x")[0] == 200
        # The server's own thread, those that answer, those of the gate, and this test's server.
        assert threading.active_count() - threads_before <= 4 + 2 + 2
        assert all(everything(connection) == b"" for connection in connections)
        assert send(server.url, "/x")[0] == 200


def test_a_client_that_drips_its_head_is_closed_all_the_same() -> None:
    with running(head_s=1.0) as server, server.connect() as connection:
        began_s = time.monotonic()
        connection.setblocking(False)
        with pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe
            while time.monotonic() < began_s + PATIENCE_S:
                try:
                    connection.sendall(b"G" if time.monotonic() == began_s else b"X")
                    if connection.recv(100) == b"":
                        raise ConnectionResetError
                except BlockingIOError:
                    time.sleep(0.05)


def test_connections_beyond_the_limit_are_closed_at_once() -> None:
    with running(connections=5) as server, ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(5)]
        for connection in connections:
            connection.sendall(HEAD + b"\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        with server.connect() as surplus:
            assert everything(surplus) == b""
        connections[0].close()
        wait_until(lambda: _is_answered(server), "a connection became free")


def _is_answered(server: Server) -> bool:
    try:
        return send(server.url, "/x")[0] == 200
    except OSError:
        return False


def test_requests_beyond_the_threads_wait_and_beyond_the_queue_are_refused() -> None:
    with running(threads=2, queue=1) as server:
        server.answers.is_free.clear()
        statuses: list[int] = []
        threads = [
            threading.Thread(target=lambda: statuses.append(send(server.url, "/x")[0])) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: server.answers.begun == 2, "two requests had a thread")
        wait_until(lambda: send(server.url, "/x")[0] == 503, "the third request waited")
        assert server.answers.begun == 2
        with server.connect() as connection:
            connection.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert b"retry-after: 1" in everything(connection).lower()
        server.answers.is_free.set()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 3 and server.answers.begun == 3


def test_a_request_that_takes_too_long_is_answered_and_goes_on() -> None:
    with running(threads=1, answer_s=0.5) as server:
        server.answers.is_free.clear()
        assert send(server.url, "/x")[1]["type"] == "GatewayTimeoutException"
        # This request never got the thread, so nothing was done, and it may be sent again.
        assert send(server.url, "/x", "POST", {})[0] == 503
        server.answers.is_free.set()
        wait_until(lambda: send(server.url, "/x")[0] == 200, "the thread was free again")
        server.answers.is_free.clear()
        status, error = send(server.url, "/x", "POST", {})
        assert (status, error["type"]) == (504, "CommitStateUnknownException")
        assert server.answers.begun == 3


def post(length: int, more: bytes = b"") -> bytes:
    return b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n" % (length, more)


def test_a_body_that_does_not_arrive_in_time_is_refused() -> None:
    with running(body_s=0.5) as server, server.connect() as connection:
        connection.sendall(post(1000) + b"x" * 10)
        assert status_of(connection.recv(1000)) == 408
        assert server.answers.begun == 0


def test_bodies_together_have_a_limit() -> None:
    with running(body_bytes=1000, body_s=600.0) as server:
        with server.connect() as first:
            first.sendall(post(600) + b"x")
            wait_until(lambda: send(server.url, "/x", "POST", "x" * 500)[0] == 503, "the budget was taken")
        # A client that goes away gives its part back.
        wait_until(lambda: send(server.url, "/x", "POST", "x" * 500)[0] == 200, "the budget was given back")


def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    with running() as server:
        for length, status in ((2 << 20, 413), (10**16, 413)):
            with server.connect() as connection:
                connection.sendall(post(length, b"Expect: 100-continue\r\nConnection: close\r\n"))
                assert status_of(everything(connection)) == status
        with server.connect() as connection:
            fields = b"Host: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
            connection.sendall(b"POST /x HTTP/1.1\r\n" + fields + b"\r\n0\r\n\r\n")
            assert status_of(everything(connection)) == 411
        assert server.answers.begun == 0


def test_a_compressed_body_is_refused_before_it_is_read() -> None:
    with running() as server, server.connect() as connection:
        connection.sendall(post(5, b"Content-Encoding: gzip\r\nConnection: close\r\n") + b"12345")
        data = everything(connection)
        assert status_of(data) == 415 and b"without a Content-Encoding" in data
        assert server.answers.begun == 0


def test_a_chunked_body_without_an_end_is_refused_and_cut_off() -> None:
    with running(linger_s=0.5) as server, server.connect() as connection:
        connection.sendall(
            b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nxxxx\r\n"
        )
        assert status_of(answer_of(connection)) == 411
        with pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe
            for _ in range(1 << 20):
                connection.sendall(b"10000\r\n%s\r\n" % (b"x" * (1 << 16)))
        assert server.answers.begun == 0


def test_a_head_that_comes_along_with_another_request_has_the_same_limit() -> None:
    with running(head_bytes=10_000) as server, server.connect() as connection:
        large_head = HEAD + b"Connection: close\r\nX: %s\r\n\r\n" % (b"y" * 12_000)
        connection.sendall(HEAD + b"\r\n" + large_head)
        assert re.findall(rb"HTTP/1.1 (\d+)", everything(connection)) == [b"200", b"431"]
        assert server.answers.begun == 1


def test_a_body_of_its_length_arrives_whole() -> None:
    with running() as server:
        body = "x" * (1 << 19)
        assert send(server.url, "/x", "POST", body)[0] == 200
        assert json.loads(server.answers.bodies[0]) == body
        wait_until(lambda: server.records, "the request was recorded")
        (record,) = server.records
        assert (record.status, record.body_bytes, record.method) == (200, len(body) + 2, "POST")


class ClosedGate(OpenGate):
    """A gate that knows no caller."""

    def caller_of(self, authorization: Any) -> KnownCaller:
        raise UnknownCaller("nothing is known")


def test_a_client_that_is_not_known_gets_no_further() -> None:
    """Its body is not read into memory, and no thread that answers is taken."""
    with running(ClosedGate(), body_bytes=10) as server, server.connect() as connection:
        connection.sendall(post(1 << 19) + b"x" * (1 << 19))
        data = answer_of(connection)
        assert status_of(data) == 401 and b"www-authenticate: bearer" in data.lower()
        # The connection stays in step: the body was not taken for a request.
        connection.sendall(HEAD + b"\r\n")
        assert status_of(answer_of(connection)) == 401
        assert server.answers.begun == 0


def test_an_unwanted_body_without_an_end_is_cut_off() -> None:
    with running(ClosedGate(), linger_s=0.5) as server, server.connect() as connection:
        connection.sendall(post(1 << 40))
        with pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe
            for _ in range(1 << 20):
                connection.sendall(b"x" * (1 << 16))


def test_a_client_that_takes_no_answer_is_closed() -> None:
    with running(sending_s=1.0) as server:
        server.answers.size_bytes = 64 << 20
        with server.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(HEAD + b"\r\n")
            # The answer is done with once its connection is closed.
            wait_until(lambda: server.records, "the connection was closed")
        server.answers.size_bytes = 0
        assert send(server.url, "/x")[0] == 200


def test_a_busy_connection_is_not_taken_for_a_silent_one() -> None:
    with running(idle_s=2.0, head_s=2.0) as server, server.connect() as connection:
        until_s = time.monotonic() + 6
        while time.monotonic() < until_s:
            connection.sendall(HEAD + b"\r\n")
            data = b""
            while not data.endswith(b"{}"):
                data += connection.recv(1 << 16)
            assert status_of(data) == 200
            time.sleep(0.1)


def test_a_request_upgrades_to_nothing() -> None:
    with running() as server, server.connect() as connection:
        connection.sendall(HEAD + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n")
        assert status_of(everything(connection)) == 200

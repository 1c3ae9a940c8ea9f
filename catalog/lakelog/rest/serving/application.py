"""The ASGI application of a server: a request passes the checks that cost nothing first, then a thread answers it.

The order is the rule: the host's name, the page's origin, the token, the length of the body, the body, a thread. A
client that is not known gets no further than its token, and holds neither memory nor a thread that answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from lakelog.log import new_id
from lakelog.log.clocks import host_clock_us, steady_clock_us
from lakelog.rest.access import LOCAL_CALLER, IssuerUnavailable, KnownCaller, RequestGate, UnknownCaller
from lakelog.rest.answers import HttpAnswer, error_answer
from lakelog.rest.hosts import is_of_this_host
from lakelog.rest.serving.bodies import BodyBudget, ClientGone, IncomingBody, Receive
from lakelog.rest.serving.limits import ServerLimits
from lakelog.rest.serving.probes import ServerProbes
from lakelog.rest.serving.records import RequestRecord

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
RequestSpan = Callable[[str, Mapping[str, str]], AbstractContextManager[Any]]
"""Begins the span of a request, from its method and headers. It gets the status by `set_status`."""

_READS = ("GET", "HEAD")
_GATE_THREADS = 2
_RETRY_AFTER = {"Retry-After": "1"}
_LOGGER = logging.getLogger("lakelog.rest")


class AnswerSource(Protocol):
    """The source of a server's answers, for several threads at once.

    `body_bytes_max` is the limit of a request's body. If it is 0, bodies are not read.
    """

    @property
    def body_bytes_max(self) -> int: ...

    def answer(
        self,
        method: str,
        target: str,
        known: str = "",
        body: bytes = b"",
        client: str = "",
        caller: KnownCaller = LOCAL_CALLER,
        delegation: str = "",
        idempotency_key: str | None = None,
    ) -> HttpAnswer: ...


@dataclass(slots=True)
class HttpExchange:
    """A request, and all that its log entry has."""

    method: str
    target: str
    headers: Mapping[str, str]
    authorization: Sequence[str]
    hosts: Sequence[str]
    address: str
    head_bytes: int
    """The size of its line and headers."""
    request_id: str = field(default_factory=new_id)
    began_us: int = field(default_factory=host_clock_us)
    steady_us: int = field(default_factory=steady_clock_us)
    caller: KnownCaller | None = None
    body_bytes: int = 0
    is_begun: bool = False
    """Whether a thread has the request, or will have it."""

    def record(self, answer: HttpAnswer) -> RequestRecord:
        return RequestRecord(
            request_id=self.request_id,
            began_us=self.began_us,
            duration_s=(steady_clock_us() - self.steady_us) / 1_000_000,
            method=self.method,
            target=self.target,
            status=answer.status,
            body_bytes=self.body_bytes,
            answer_bytes=len(answer.body),
            caller="" if self.caller is None else self.caller.name,
            address=self.address,
            client=self.headers.get("user-agent", ""),
        )


class AnswerApplication:
    """Answers requests by ASGI, from an event loop that runs nothing else."""

    def __init__(
        self,
        answers: AnswerSource,
        gate: RequestGate,
        limits: ServerLimits,
        *,
        record: Callable[[RequestRecord], None],
        local_host: str | None,
        probes: ServerProbes | None,
        span: RequestSpan | None,
    ) -> None:
        """`local_host` is the address of a server that only this host reaches. Other names are refused there."""
        self._answers = answers
        self._gate = gate
        self._limits = limits
        self._record = record
        self._local_host = local_host
        self._probes = probes
        self._span = span
        self._budget = BodyBudget(limits.body_bytes)
        self._answer_threads = ThreadPoolExecutor(limits.threads, "lakelog-answer")
        self._gate_threads = ThreadPoolExecutor(_GATE_THREADS, "lakelog-gate")
        self._running: set[Future[HttpAnswer]] = set()
        self._is_stopping = False
        # A thread of its own, as it may wait for an issuer that does not answer.
        self._refresh_thread = ThreadPoolExecutor(1, "lakelog-refresh")
        self._refresh: Future[None] | None = None

    @property
    def running_count(self) -> int:
        """The number of requests that have a thread, or wait for a thread."""
        return len(self._running)

    def refresh(self) -> None:
        """Let the gate look for changes of files and keys, unless it still does. Returns at once."""
        if self._refresh is None or self._refresh.done():
            self._refresh = self._refresh_thread.submit(self._refresh_now)

    def _refresh_now(self) -> None:
        try:
            self._gate.refresh()
        except Exception:
            _LOGGER.exception("files and keys were not looked at")

    def stop(self) -> None:
        """Say that the server ends, to those who ask if it is ready, and to clients that would keep a connection."""
        self._is_stopping = True
        if self._probes is not None:
            self._probes.stop()

    def close(self) -> None:
        self._answer_threads.shutdown(wait=False, cancel_futures=True)
        self._gate_threads.shutdown(wait=False, cancel_futures=True)
        self._refresh_thread.shutdown(wait=False, cancel_futures=True)
        if self._probes is not None:
            self._probes.close()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        exchange = _exchange_of(scope)
        body = IncomingBody(exchange.headers, receive, self._limits)
        try:
            answer = await self._answer(exchange, body)
        except ClientGone:
            return
        except asyncio.CancelledError:
            # The time of a server that ends is over. Its loop sends what it can before it closes.
            answer = (
                _unavailable("the server ends")
                if not exchange.is_begun
                else _unknown("the server ends", exchange.method)
            )
        except Exception:
            _LOGGER.exception(
                "request %s, %s %r, was not answered", exchange.request_id, exchange.method, exchange.target
            )
            answer = error_answer(
                500,
                "InternalServerError",
                f"the server failed: its log has the reason of {exchange.request_id}",
            )
        if self._is_stopping:
            answer = replace(answer, headers={**answer.headers, "Connection": "close"})
        await _send_answer(send, exchange, answer, body)
        if exchange.target not in ServerProbes.PATHS or answer.status != 200:
            self._record(exchange.record(answer))

    async def _answer(self, exchange: HttpExchange, body: IncomingBody) -> HttpAnswer:
        if exchange.head_bytes > self._limits.head_bytes:
            # The connection measures a head that arrives by itself, and none that came along with another request.
            return error_answer(
                431,
                "BadRequestException",
                f"the line and the headers are larger than the limit of {self._limits.head_bytes:,} bytes",
            )
        if self._probes is not None and exchange.target in ServerProbes.PATHS:
            return await self._probes.answer(exchange.method, exchange.target)
        refusal = self._refusal(exchange)
        if refusal is not None:
            return refusal
        loop = asyncio.get_running_loop()
        try:
            exchange.caller = await loop.run_in_executor(
                self._gate_threads, self._gate.caller_of, exchange.authorization
            )
        except UnknownCaller as error:
            return _unknown_caller(error)
        except IssuerUnavailable as error:
            return _unavailable(str(error))
        if not body.is_present or not self._answers.body_bytes_max:
            return await self._answer_in_thread(exchange, b"")
        refusal = body.refusal(self._answers.body_bytes_max)
        if refusal is not None:
            return refusal
        exchange.body_bytes = body.size_bytes
        if not self._budget.take(body.size_bytes):
            return _unavailable("the server has too many large requests: send the request again")
        try:
            data = await body.read()
            return data if isinstance(data, HttpAnswer) else await self._answer_in_thread(exchange, data)
        finally:
            self._budget.give_back(exchange.body_bytes)

    def _refusal(self, exchange: HttpExchange) -> HttpAnswer | None:
        local_host = self._local_host
        if local_host is not None:
            foreign = [name for name in exchange.hosts if not is_of_this_host(name, local_host)]
            if foreign:
                return error_answer(
                    403,
                    "ForbiddenException",
                    f"this server is for clients on its own host, and {foreign[0]} was asked for: use localhost or "
                    f"{local_host} in the URL",
                )
        if exchange.method not in _READS and "origin" in exchange.headers:
            # Browsers send it with every change that a page of another site makes, and no other client does.
            return error_answer(403, "ForbiddenException", "pages in a browser may not change anything here")
        return None

    async def _answer_in_thread(self, exchange: HttpExchange, data: bytes) -> HttpAnswer:
        if len(self._running) >= self._limits.threads + self._limits.queue:
            return _unavailable("the server has too many requests: send the request again")
        future = self._answer_threads.submit(partial(self._answer_now, exchange, data))
        self._running.add(future)
        exchange.is_begun = True
        loop = asyncio.get_running_loop()
        future.add_done_callback(partial(_call_soon, loop, self._running.discard))
        waited_future = asyncio.wrap_future(future)
        finished_futures, _ = await asyncio.wait([waited_future], timeout=self._limits.answer_s)
        if finished_futures:
            return waited_future.result()
        # A request that waits for a thread is not begun any more. A request that has one goes on.
        if future.cancel():
            return _unavailable("the server has too many requests: send the request again")
        return _unknown(
            f"the request took more than {self._limits.answer_s:g} s, and it goes on", exchange.method
        )

    def _answer_now(self, exchange: HttpExchange, data: bytes) -> HttpAnswer:
        assert exchange.caller is not None
        arguments = (
            exchange.method,
            exchange.target,
            exchange.headers.get("if-none-match", ""),
            data,
            exchange.headers.get("user-agent", ""),
            exchange.caller,
            exchange.headers.get("x-iceberg-access-delegation", ""),
            exchange.headers.get("idempotency-key"),
        )
        if self._span is None:
            return self._answers.answer(*arguments)
        with self._span(exchange.method, exchange.headers) as span:
            answer = self._answers.answer(*arguments)
            span.set_status(answer.status)
            return answer


def _call_soon(loop: asyncio.AbstractEventLoop, discard: Callable[[Any], None], future: Any) -> None:
    with suppress(RuntimeError):  # the server has ended
        loop.call_soon_threadsafe(discard, future)


def _exchange_of(scope: Mapping[str, Any]) -> HttpExchange:
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    headers: dict[str, str] = {}
    for name, value in pairs:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    query = scope["query_string"].decode("latin-1")
    path = scope["raw_path"].decode("latin-1")
    address = scope.get("client")
    return HttpExchange(
        method=scope["method"],
        target=f"{path}?{query}" if query else path,
        headers=headers,
        authorization=[value for name, value in pairs if name == "authorization"],
        hosts=[value for name, value in pairs if name == "host"],
        address=f"{address[0]}:{address[1]}" if address else "",
        head_bytes=len(path) + len(query) + sum(len(name) + len(value) for name, value in pairs),
    )


def _unavailable(message: str) -> HttpAnswer:
    """Return the answer to a request of which nothing was done, so that it may be sent again."""
    return error_answer(503, "ServiceUnavailableException", message, _RETRY_AFTER)


def _unknown(message: str, method: str = "POST") -> HttpAnswer:
    """Return the answer to a request that goes on, so that its outcome is not known."""
    name = "GatewayTimeoutException" if method in _READS else "CommitStateUnknownException"
    return error_answer(504, name, f"{message}: look for the outcome")


def _unknown_caller(error: UnknownCaller) -> HttpAnswer:
    """Return the answer to a request without a good token. Iceberg's clients renew an expired token after a 419."""
    status, name = (
        (419, "AuthenticationTimeoutException") if error.is_expired else (401, "NotAuthorizedException")
    )
    return error_answer(status, name, str(error), {"WWW-Authenticate": 'Bearer realm="lakelog"'})


async def _send_answer(send: Send, exchange: HttpExchange, answer: HttpAnswer, body: IncomingBody) -> None:
    headers = {"Content-Type": "application/json", "X-Request-Id": exchange.request_id, **answer.headers}
    if answer.status not in (204, 304):
        headers["Content-Length"] = str(len(answer.body))
    if body.must_close:
        headers["Connection"] = "close"
    raw_headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw_headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": True})
    await body.drain()
    await send({"type": "http.response.body", "body": b"", "more_body": False})

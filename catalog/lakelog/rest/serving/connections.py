"""Connections with limits: uvicorn has none for a client that is slow to send a request, or to take an answer.

A connection is always in a phase, which says for whom it waits. Now and then all connections are looked at. Those that
were in a phase of the client's for too long are closed. This needs no thread and no timer for a connection.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from lakelog.log.clocks import steady_clock_us
from lakelog.rest.answers import error_answer
from lakelog.rest.serving.limits import ServerLimits

ANSWERING, DRAINING, HEAD, IDLE, SENDING = "answering", "draining", "head", "idle", "sending"
_LOGGER = logging.getLogger("lakelog.rest")
_PIECE_BYTES = 1024


class LimitedConnection(H11Protocol):
    """A connection of a client, for `close_overdue`. Beyond the limit of connections it is closed at once."""

    def __init__(self, *arguments: Any, limits: ServerLimits, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self._phase: tuple[str, object] = (IDLE, None)
        self._since_us = steady_clock_us()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        # h11 measures only a head that is not complete, so none that arrives at once.
        start = 0
        while start < len(data) and not self.transport.is_closing():
            end = start + _PIECE_BYTES if self.conn.their_state is h11.IDLE else len(data)
            super().data_received(data[start:end])
            start = end

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is no HTTP, in JSON as all others."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        answer = error_answer(status, "BadRequestException", f"this is no request that can be read: {error}")
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(answer.body))),
            ("Connection", "close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            events = (
                h11.Response(status_code=status, headers=headers, reason=b""),
                h11.Data(data=answer.body),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def overdue_phase(self, now_us: int) -> str | None:
        """Return the phase that has lasted too long. None if the client still has time."""
        phase = self._phase_now()
        # Each request has a cycle of its own, so a new request is a new phase.
        if phase != self._phase:
            self._phase, self._since_us = phase, now_us
        return phase[0] if (now_us - self._since_us) / 1_000_000 > self._seconds(phase[0]) else None

    def abort(self) -> None:
        self.transport.abort()

    def _phase_now(self) -> tuple[str, object]:
        cycle: Any = self.cycle
        if self.transport.get_write_buffer_size():
            return SENDING, cycle
        if cycle is not None and not cycle.response_complete:
            return ANSWERING, cycle
        if self.conn.their_state is h11.SEND_BODY:
            return DRAINING, cycle
        return HEAD if self.conn.trailing_data[0] else IDLE, cycle

    def _seconds(self, phase: str) -> float:
        limits = self._limits
        match phase:
            case "answering":
                # The application has limits of its own, which are part of this limit.
                return limits.body_s + limits.answer_s + limits.linger_s + 60
            case "sending":
                return limits.sending_s
            case "draining":
                return limits.linger_s
            case "head":
                return limits.head_s
            case _:
                return limits.idle_s


def close_overdue(connections: Iterable[Any]) -> None:
    """Close the connections whose clients have taken too long."""
    now_us = steady_clock_us()
    for connection in list(connections):
        phase = connection.overdue_phase(now_us)
        if phase is not None:
            if phase != IDLE:
                _LOGGER.info("a connection of %s is closed: %s took too long", connection.client, phase)
            connection.abort()

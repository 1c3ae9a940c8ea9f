"""uvicorn's server, with an orderly end, connections that are looked after, and certificates that are renewed."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import socket
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import uvicorn

from lakelog.log.clocks import steady_clock_us
from lakelog.rest.serving.application import AnswerApplication
from lakelog.rest.serving.connections import LimitedConnection, close_overdue
from lakelog.rest.serving.limits import ServerLimits
from lakelog.rest.serving.settings import TlsFiles

_TICKS_A_SECOND = 10
_TLS_TICKS = 60 * _TICKS_A_SECOND
_LOGGER = logging.getLogger("lakelog.rest")


class GracefulServer(uvicorn.Server):
    """Ends by a signal or by `should_exit`: it finishes the requests that it has begun, for a bounded time.

    A first signal begins the end, and a second signal of Ctrl-C makes it short. After SIGTERM it takes new requests for
    a while: those who send them may not know yet that it ends.
    """

    def __init__(self, application: AnswerApplication, limits: ServerLimits, tls: TlsFiles | None) -> None:
        super().__init__(_config(application, limits, tls))
        self._application = application
        self._limits = limits
        self._drained_us: int | None = None
        """When a server that drains stops to listen, on the steady clock."""
        self._tls = tls
        self._tls_stamp = None if tls is None else tls.stamp()
        self.is_interrupted = False

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_SECOND == 0:
            close_overdue(self.server_state.connections)
            self._application.refresh()
            parent = multiprocessing.parent_process()
            if parent is not None and not parent.is_alive():
                _LOGGER.error("the server's first process has ended, and so does this one")
                self.should_exit = True
        if self._drained_us is not None and steady_clock_us() >= self._drained_us:
            self.should_exit = True
        if self._tls is not None and counter % _TLS_TICKS == 0:
            self._renew_certificate(self._tls)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own sends itself the signal again at the end, which would kill work in the background.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former_handlers = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in former_handlers.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        is_interrupt = number == signal.SIGINT
        self.force_exit = self.force_exit or (is_interrupt and self.should_exit)
        self.is_interrupted = self.is_interrupted or is_interrupt
        if is_interrupt or self._drained_us is not None or not self._limits.drain_s:
            self.should_exit = True
            return
        self._drained_us = steady_clock_us() + round(self._limits.drain_s * 1_000_000)
        self._application.stop()

    def _renew_certificate(self, tls: TlsFiles) -> None:
        """Use a certificate that was renewed, for connections from now on."""
        stamp = tls.stamp()
        if stamp is None or stamp == self._tls_stamp or self.config.ssl is None:
            return
        self._tls_stamp = stamp
        try:
            tls.check()
            self.config.ssl.load_cert_chain(tls.certificate, tls.key)
        except Exception as error:
            _LOGGER.error("the new certificate is not used: %s", error)
        else:
            _LOGGER.warning("the certificate %s was renewed, and is used from now on", tls.certificate)


def _config(application: AnswerApplication, limits: ServerLimits, tls: TlsFiles | None) -> uvicorn.Config:
    return uvicorn.Config(
        cast(Any, application),
        http=cast(Any, partial(LimitedConnection, limits=limits)),
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        # The address of a request is that of the connection: a header with another address proves nothing.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=round(limits.idle_s),
        timeout_graceful_shutdown=max(1, round(limits.stop_s)),
        h11_max_incomplete_event_size=limits.head_bytes,
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
    )

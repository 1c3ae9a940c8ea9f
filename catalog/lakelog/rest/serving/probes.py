"""Whether the server lives, and whether it is ready: for whatever starts, stops and balances servers.

They need no token, and say nothing about the warehouse. Readiness reads the warehouse, at most once in a while,
however often it is asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import msgspec

from lakelog.log.clocks import steady_clock_us
from lakelog.rest.answers import HttpAnswer, error_answer

READY_FOR_S = 5.0
CHECK_S = 20.0
_LOGGER = logging.getLogger("lakelog.rest")


class ServerProbes:
    """Answers `/health` and `/ready`. Used in the server's own thread alone, except for `check`."""

    PATHS: ClassVar[tuple[str, ...]] = ("/health", "/ready")

    def __init__(self, check: Callable[[], None]) -> None:
        """`check` raises an error if requests could not be answered now. It runs in a thread."""
        self._check = check
        # A thread of its own, as it may wait for a store that does not answer.
        self._thread = ThreadPoolExecutor(1, "lakelog-probe")
        self._lock: asyncio.Lock | None = None
        self._checked_us: int | None = None
        self._is_good = False
        self._is_stopping = False

    def stop(self) -> None:
        self._is_stopping = True

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def answer(self, method: str, target: str) -> HttpAnswer:
        if method not in ("GET", "HEAD"):
            return error_answer(405, "BadRequestException", "probes are read by GET", {"Allow": "GET, HEAD"})
        if target == "/health":
            return _state(200, "alive")
        if self._is_stopping:
            return _state(503, "stopping")
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self._checked_us is None or steady_clock_us() - self._checked_us > READY_FOR_S * 1_000_000:
                self._is_good = await self._is_ready()
                self._checked_us = steady_clock_us()
        if self._is_stopping:  # since it has asked
            return _state(503, "stopping")
        return _state(200, "ready") if self._is_good else _state(503, "not ready")

    async def _is_ready(self) -> bool:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(loop.run_in_executor(self._thread, self._check), CHECK_S)
        except Exception as error:
            _LOGGER.warning("the server is not ready: %s", error or type(error).__name__)
            return False
        return True


def _state(status: int, state: str) -> HttpAnswer:
    return HttpAnswer(status, msgspec.json.encode({"status": state}))

"""The body of a request as it arrives, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from lakelog.rest.answers import HttpAnswer, error_answer
from lakelog.rest.serving.limits import ServerLimits

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class ClientGone(Exception):
    """The client has closed its connection, so nothing can be answered."""


class BodyBudget:
    """The bytes that all bodies may have together. Used in the server's own thread alone."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max

    def take(self, size_bytes: int) -> bool:
        """Return whether there is room for a body, and keep it."""
        if size_bytes > self._left:
            return False
        self._left -= size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        self._left += size_bytes


class IncomingBody:
    """The body of a request. It is read if the request may have a body."""

    def __init__(self, headers: Mapping[str, str], receive: Receive, limits: ServerLimits) -> None:
        self._receive = receive
        self._limits = limits
        self._length = headers.get("content-length", "")
        self._is_chunked = "transfer-encoding" in headers
        self._expects_word = "expect" in headers
        self._encoding = headers.get("content-encoding", "identity")
        self.is_present = self._is_chunked or self._length not in ("", "0")
        self._is_open = self.is_present

    @property
    def size_bytes(self) -> int:
        """The length that the client has announced."""
        return int(self._length) if self._length.isascii() and self._length.isdigit() else 0

    def refusal(self, bytes_max: int) -> HttpAnswer | None:
        """Return the answer to a body that is refused before it is read."""
        if self._is_chunked:
            return error_answer(411, "BadRequestException", "send the body with its Content-Length")
        if self._encoding.strip().lower() not in ("", "identity"):
            return error_answer(
                415, "BadRequestException", "the body is compressed: send it without a Content-Encoding"
            )
        if len(self._length) > 15 or self.size_bytes > bytes_max:
            return error_answer(
                413, "BadRequestException", f"the body is larger than the limit of {bytes_max:,} bytes"
            )
        return None

    async def read(self) -> bytes | HttpAnswer:
        """Return the body, or the answer to a client that is too slow. Raises ClientGone."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_s):
                while self._is_open:
                    parts.append(await self._part())
        except TimeoutError:
            return error_answer(
                408, "BadRequestException", f"the body did not arrive within {self._limits.body_s:g} s"
            )
        return b"".join(parts)

    @property
    def must_close(self) -> bool:
        """Whether the connection cannot be used again, as a client waits for a word before it sends the body."""
        return self._is_open and self._expects_word

    async def drain(self) -> None:
        """Read the rest for a moment. A connection that is closed before is reset, and its client loses the answer."""
        if self.must_close:
            return
        try:
            async with asyncio.timeout(self._limits.linger_s):
                while self._is_open:
                    await self._part()
        except (TimeoutError, ClientGone):
            pass

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            self._is_open = False
            raise ClientGone
        self._is_open = message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part

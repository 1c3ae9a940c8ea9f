"""The limits of a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits of a process of the server, for all of its clients together, and for each connection."""

    threads: int = 16
    """The requests that are answered at the same time."""
    queue: int = 64
    """The requests that wait for a thread. Others are refused with status 503."""
    connections: int = 800
    """The open connections. Others are closed at once."""
    body_bytes: int = 256 * 1024 * 1024
    """The bodies of all requests that are read or answered at the same time."""
    head_bytes: int = 64 * 1024
    """A request's line and headers."""
    head_s: float = 20.0
    """The time in which a request's line and headers arrive, from their first byte on."""
    body_s: float = 120.0
    """The time in which a body arrives."""
    linger_s: float = 5.0
    """How long an unwanted body is still read after its answer, so that the client gets the answer."""
    idle_s: float = 60.0
    """How long a connection may be silent between requests."""
    sending_s: float = 300.0
    """The time in which a client takes an answer."""
    answer_s: float = 600.0
    """After so long a request gets status 504. Its thread goes on."""
    stop_s: float = 30.0
    """How long a server that ends goes on with requests that have begun."""
    drain_s: float = 0.0
    """How long a server that got SIGTERM still takes new requests, until all know that it ends."""

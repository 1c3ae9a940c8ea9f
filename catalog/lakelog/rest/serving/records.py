"""A request in the server's log."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request and its answer. It has no token, and nothing of a body."""

    request_id: str
    began_us: int
    """When the request arrived, in microseconds since 1970."""
    duration_s: float
    method: str
    target: str
    status: int
    body_bytes: int
    answer_bytes: int
    caller: str
    """The caller's name. It is empty if it is not known."""
    address: str
    """The address that the request came from. If there is a proxy, it is the proxy's address."""
    client: str
    """The client's name for itself."""

    @property
    def members(self) -> dict[str, Any]:
        return asdict(self)

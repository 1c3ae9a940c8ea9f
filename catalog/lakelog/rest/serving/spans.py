"""Requests as spans of OpenTelemetry, below the span that the client names in `traceparent`.

The operations of the catalog are spans below them, by its own hook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakelog.catalog.engine import package
from lakelog.rest.serving.application import RequestSpan

_LIBRARY, _EXTRA = "opentelemetry-sdk", "otel"
SERVER_ERROR = 500


class RequestStatus:
    """The status of a request, for its span."""

    def __init__(self, span: Any, trace: Any) -> None:
        self._span = span
        self._trace = trace

    def set_status(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if status >= SERVER_ERROR:
            self._span.set_status(self._trace.StatusCode.ERROR)


def request_spans(tracer_provider: Any = None) -> RequestSpan:
    """Return a hook that makes a span of each request. Raises Unsupported if OpenTelemetry is not installed."""
    trace = package("opentelemetry.trace", "a span of a request", _LIBRARY, _EXTRA)
    propagate = package("opentelemetry.propagate", "a span of a request", _LIBRARY, _EXTRA)
    tracer = trace.get_tracer("lakelog", tracer_provider=tracer_provider)

    @contextmanager
    def begin(method: str, headers: Mapping[str, str]) -> Iterator[RequestStatus]:
        attributes = {"http.request.method": method, "user_agent.original": headers.get("user-agent", "")}
        with tracer.start_as_current_span(
            method, context=propagate.extract(headers), kind=trace.SpanKind.SERVER, attributes=attributes
        ) as span:
            yield RequestStatus(span, trace)

    return begin

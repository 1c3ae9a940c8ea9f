"""Operations as spans and metrics of OpenTelemetry.

catalog = Catalog("/tmp/lake", observe=to_opentelemetry())

A span is made after its operation has ended, with the operation's times, as a child of the caller's span.
Names of tables stand in spans, but not in metrics, which would grow with them. The user sets up the
exporters.
"""

from __future__ import annotations

from typing import Any

from lakelog.catalog.core.logs import Observation, Observe
from lakelog.catalog.core.tools import package

_LIBRARY, _EXTRA = "opentelemetry-sdk", "otel"
_SCOPE = "lakelog"


def to_opentelemetry(tracer_provider: Any = None, meter_provider: Any = None) -> Observe:
    """Return a hook for `Catalog(…, observe=…)`.

    It makes a span of each operation, and metrics of its counts. Without providers, it uses OpenTelemetry's
    providers of the process. Raises Unsupported if OpenTelemetry is not installed.
    """
    trace = package("opentelemetry.trace", "a hook for OpenTelemetry", _LIBRARY, _EXTRA)
    metrics = package("opentelemetry.metrics", "a hook for OpenTelemetry", _LIBRARY, _EXTRA)
    return _Hook(
        trace, trace.get_tracer(_SCOPE, tracer_provider=tracer_provider), _meter(metrics, meter_provider)
    )


def _meter(metrics: Any, provider: Any) -> Any:
    return metrics.get_meter(_SCOPE) if provider is None else provider.get_meter(_SCOPE)


class _Hook:
    def __init__(self, trace: Any, tracer: Any, meter: Any) -> None:
        self._trace = trace
        self._tracer = tracer
        self._durations = meter.create_histogram(
            "lakelog.operation.duration", unit="s", description="How long operations took"
        )
        self._requests = meter.create_counter(
            "lakelog.requests", unit="{request}", description="Requests to object stores"
        )
        self._bytes = meter.create_counter(
            "lakelog.bytes", unit="By", description="Bytes of objects, read and written"
        )
        self._commits = meter.create_counter(
            "lakelog.commits", unit="1", description="Versions of logs that were put, rebases, and waits"
        )
        self._waited = meter.create_counter(
            "lakelog.waited", unit="s", description="Time that operations waited for others, or to try again"
        )

        self._rows = meter.create_counter(
            "lakelog.rows", unit="{row}", description="Rows that changes of tables have changed"
        )

    def __call__(self, seen: Observation) -> None:
        self._span(seen)
        attributes = {"lakelog.operation": seen.operation}
        duration_attributes = attributes if seen.error is None else {**attributes, "error.type": seen.error}
        self._durations.record(seen.duration_s, duration_attributes)
        for kind, count in seen.requests.items():
            self._requests.add(count, {**attributes, "lakelog.request": kind})
        for direction, count in (("read", seen.bytes_read), ("written", seen.bytes_written)):
            if count:
                self._bytes.add(count, {**attributes, "lakelog.direction": direction})
        for kind_of_count, count in (
            ("attempt", seen.attempts),
            ("rebase", seen.rebases),
            ("wait", seen.waits),
        ):
            if count:
                self._commits.add(count, {**attributes, "lakelog.what": kind_of_count})
        if seen.waits:
            self._waited.add(seen.waited_s, attributes)
        for kind_of_count, count in _rows(seen).items():
            if count:
                self._rows.add(count, {**attributes, "lakelog.what": kind_of_count})

    def _span(self, seen: Observation) -> None:
        start_ns = seen.begun_us * 1000
        span = self._tracer.start_span(
            f"lakelog.{seen.operation}", kind=self._trace.SpanKind.CLIENT, start_time=start_ns
        )
        if span.is_recording():
            span.set_attributes(_attributes(seen))
            if seen.error is not None:
                span.set_status(self._trace.StatusCode.ERROR, seen.error)
        span.end(end_time=start_ns + round(seen.duration_s * 1e9))


def _attributes(seen: Observation) -> dict[str, str | int | float | bool]:
    attributes: dict[str, str | int | float | bool] = {
        "lakelog.operation": seen.operation,
        "lakelog.name": seen.name,
        "lakelog.warehouse": seen.warehouse,
        "lakelog.background": seen.is_background,
        "lakelog.bytes.read": seen.bytes_read,
        "lakelog.bytes.written": seen.bytes_written,
        "lakelog.attempts": seen.attempts,
        "lakelog.rebases": seen.rebases,
        "lakelog.waits": seen.waits,
        "lakelog.waited_s": seen.waited_s,
    }
    attributes |= {f"lakelog.requests.{kind}": count for kind, count in seen.requests.items()}
    attributes |= {f"lakelog.rows.{kind_of_count}": count for kind_of_count, count in _rows(seen).items()}
    if seen.error is not None:
        attributes["error.type"] = seen.error
    return attributes


def _rows(seen: Observation) -> dict[str, int]:
    """Return the known row counts."""
    if seen.rows is None:
        return {}
    numbers = {name: getattr(seen.rows, name) for name in ("inserted", "updated", "deleted", "copied")}
    return {name: number for name, number in numbers.items() if number is not None}

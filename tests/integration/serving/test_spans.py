"""Requests as spans of OpenTelemetry, below the client's span and above the catalog's operations."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from tests.integration.iceberg.serving import served
from tests.integration.serving.requests import send

from lakelog.catalog import Catalog, to_opentelemetry
from lakelog.rest.serving import request_spans

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_request_is_a_span_with_the_operations_below_it(tmp_path: Path) -> None:
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    Catalog(str(tmp_path / "w")).create_namespace("shop")
    catalog = Catalog(str(tmp_path / "w"), observe=to_opentelemetry(tracers, MeterProvider()))
    with served(catalog, span=request_spans(tracers)) as url:
        headers = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01"}
        assert send(url, "/v1/namespaces", headers=headers)[0] == 200
    spans = {span.name: span for span in exporter.get_finished_spans()}
    request, operation = spans["GET"], spans["lakelog.list_namespaces"]
    assert request.kind is SpanKind.SERVER and request.attributes["http.response.status_code"] == 200
    assert f"{request.context.trace_id:032x}" == TRACE_ID and f"{request.parent.span_id:016x}" == SPAN_ID
    assert operation.parent.span_id == request.context.span_id

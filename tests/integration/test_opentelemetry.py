"""Operations as OpenTelemetry has them: what its exporters are given, and nothing secret."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from lakelog.catalog import Catalog, NoSuchTable, Observation, Unsupported, to_opentelemetry
from lakelog.log import LogOptions


def test_each_operation_is_a_span_below_the_callers_and_adds_to_the_metrics(tmp_path: Any) -> None:
    spans, metrics, seen_observations = InMemorySpanExporter(), InMemoryMetricReader(), list[Observation]()
    tracers, meters = TracerProvider(), MeterProvider([metrics])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    hook = to_opentelemetry(tracers, meters)

    def both(each: Observation) -> None:
        seen_observations.append(each)
        hook(each)

    options = LogOptions(snapshot_every_versions=0)
    catalog = Catalog(str(tmp_path), observe=both, log_options=options)
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}))
    with tracers.get_tracer("mine").start_as_current_span("job") as job:
        table.append(pa.table({"id": [1]}))
        with pytest.raises(NoSuchTable):
            catalog.load_table("none")

    new_spans = {span.name: span for span in spans.get_finished_spans()}
    append, load = new_spans["lakelog.append"], new_spans["lakelog.load_table"]
    assert append.parent.span_id == load.parent.span_id == job.get_span_context().span_id
    record = next(observation for observation in seen_observations if observation.operation == "append")
    assert append.attributes == {
        "lakelog.operation": "append",
        "lakelog.name": "`t`",
        "lakelog.warehouse": str(tmp_path),
        "lakelog.background": False,
        "lakelog.bytes.read": record.bytes_read,
        "lakelog.bytes.written": record.bytes_written,
        "lakelog.attempts": 1,
        "lakelog.rebases": 0,
        "lakelog.waits": 0,
        "lakelog.waited_s": 0.0,
        "lakelog.requests.put": 1,
        "lakelog.requests.put_if_absent": 1,
        "lakelog.rows.inserted": 1,
        "lakelog.rows.updated": 0,
        "lakelog.rows.deleted": 0,
        "lakelog.rows.copied": 0,
    }
    assert append.start_time == record.begun_us * 1000
    assert append.end_time - append.start_time == round(record.duration_s * 1e9)
    assert load.status.status_code is StatusCode.ERROR and load.attributes["error.type"] == "no-such-table"

    points = read(metrics)
    assert points["lakelog.requests", "append", "put_if_absent"] == 1
    assert points["lakelog.bytes", "append", "written"] == record.bytes_written
    assert points["lakelog.commits", "append", "attempt"] == 1
    assert points["lakelog.rows", "append", "inserted"] == 1
    assert points["lakelog.operation.duration", "load_table", "no-such-table"] == 1


def read(metrics: InMemoryMetricReader) -> Mapping[tuple[str, ...], float]:
    """Return values, and counts of histograms, by the name of the metric and the values of its attributes."""
    found = {}
    for resource in metrics.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            assert scope.scope.name == "lakelog"
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    key = (metric.name, *map(str, point.attributes.values()))
                    found[key] = point.value if hasattr(point, "value") else point.count
    return found


def test_without_the_package_the_error_names_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(Unsupported, match="pip install 'opentelemetry-api<2,.*' 'opentelemetry-sdk<2,"):
        to_opentelemetry()

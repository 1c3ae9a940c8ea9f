"""Tables to be."""

from __future__ import annotations

from lakelog.catalog.core.ddl import Stage
from lakelog.catalog.core.schema import schema_from_spark
from lakelog.spark.facts import of_stage
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import staged as ask
from lakelog.spark.requests.tables import TableFacts


def stage(at: OpenCatalog, asked: ask.StageTable) -> ask.Staged:
    made = _staged(at, asked)
    return ask.Staged(stage=made, table=of_stage(made))


def prepare(at: OpenCatalog, asked: ask.PrepareTable) -> Stage:
    return _staged(at, asked)


def commit(at: OpenCatalog, asked: ask.CommitStage) -> TableFacts:
    table = at.of(asked.transaction).commit_stage(asked.stage, asked.files)
    return at.handles.facts(table, asked.transaction)


def _staged(at: OpenCatalog, asked: ask.ToBe) -> Stage:
    return at.of(asked.transaction).stage(
        asked.kind,
        asked.identifier,
        schema_from_spark(asked.schema),
        partitioning=asked.partitioning,
        sort_by=asked.sort_by,
        cluster_by=asked.cluster_by,
        properties=asked.properties,
        location=asked.location or asked.own_location,
        comment=asked.comment,
        provider=asked.provider,
        constraints=asked.constraints,
    )

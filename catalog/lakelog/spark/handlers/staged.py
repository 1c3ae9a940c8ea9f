"""Staged tables."""

from __future__ import annotations

from lakelog.catalog import engine
from lakelog.catalog.engine import StagedTable, schema_from_spark
from lakelog.spark.facts import of_stage
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import staged as ask
from lakelog.spark.requests.tables import TableFacts


def stage(at: ServedCatalog, asked: ask.StageTable) -> ask.StageFacts:
    staged_table = _staged(at, asked)
    return ask.StageFacts(stage=staged_table, table=of_stage(staged_table))


def prepare(at: ServedCatalog, asked: ask.PrepareTable) -> StagedTable:
    return _staged(at, asked)


def commit(at: ServedCatalog, asked: ask.CommitStage) -> TableFacts:
    table = engine.commit_stage(at.of(asked.transaction), asked.stage, asked.files)
    return at.handles.facts(table, asked.transaction)


def _staged(at: ServedCatalog, asked: ask.FutureTable) -> StagedTable:
    return engine.stage(
        at.of(asked.transaction),
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

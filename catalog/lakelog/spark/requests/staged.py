"""Staged tables, which no reader sees before their single commit."""

from __future__ import annotations

from lakelog.catalog.engine import DataFile, StagedTable, StatedConstraint, StatedField
from lakelog.spark.requests.base import Answer, CatalogRequest, FreeJson, NamedObject, Path, UserStatement
from lakelog.spark.requests.tables import TableFacts


class FutureTable(NamedObject, frozen=True, kw_only=True):
    """A table to be created.

    `kind` is `create`, `replace` or `create-or-replace`. `schema` is Spark's JSON of a struct.
    """

    kind: str
    schema: FreeJson
    partitioning: tuple[str | StatedField, ...]
    sort_by: tuple[str | StatedField, ...] = ()
    cluster_by: tuple[Path, ...] = ()
    properties: dict[str, str]
    own_location: str | None
    comment: str | None
    provider: str | None
    constraints: tuple[StatedConstraint, ...] = ()


class StageTable(FutureTable, frozen=True, tag="stage"):
    """Prepare a table, which needs its rows before it is committed."""


class StageFacts(Answer, frozen=True, kw_only=True):
    """`stage` is all that the commit needs. `table` are the facts of the future table."""

    stage: StagedTable
    table: TableFacts


class PrepareTable(FutureTable, frozen=True, tag="prepare_table"):
    """Prepare a table. The answer becomes the `stage` of the request that commits it."""


class CommitStage(CatalogRequest, frozen=True, kw_only=True, tag="commit_stage"):
    """Make a staged table visible, with the files that were written for it."""

    stage: StagedTable
    files: tuple[DataFile, ...]
    query: UserStatement | None = None

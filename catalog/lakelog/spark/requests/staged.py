"""Tables to be, which no reader sees before their one commit."""

from __future__ import annotations

from lakelog.catalog.core.ddl import Stage
from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.schema import Stated, StatedField
from lakelog.spark.requests.base import Answer, FreeJson, InCatalog, Named, Path, Statement
from lakelog.spark.requests.tables import TableFacts


class ToBe(Named, frozen=True, kw_only=True):
    """A table to be. `kind` is `create`, `replace` or `create-or-replace`; `schema` is Spark's JSON of a struct."""

    kind: str
    schema: FreeJson
    partitioning: tuple[str | StatedField, ...]
    sort_by: tuple[str | StatedField, ...] = ()
    cluster_by: tuple[Path, ...] = ()
    properties: dict[str, str]
    own_location: str | None
    comment: str | None
    provider: str | None
    constraints: tuple[Stated, ...] = ()


class StageTable(ToBe, frozen=True, tag="stage"):
    """Prepare a table, which needs its rows before it is committed."""


class Staged(Answer, frozen=True, kw_only=True):
    """`stage` is all that its commit needs; `table` are the facts of the table as it will be."""

    stage: Stage
    table: TableFacts


class PrepareTable(ToBe, frozen=True, tag="prepare_table"):
    """Prepare a table; what is answered becomes the `stage` of the request that commits it."""


class CommitStage(InCatalog, frozen=True, kw_only=True, tag="commit_stage"):
    """Make a staged table visible, with the files that were written for it."""

    stage: Stage
    files: tuple[DataFile, ...]
    query: Statement | None = None

"""Tables for readers of Iceberg, and tables of other formats."""

from __future__ import annotations

from lakelog.catalog.operations.formats import ADOPT_FILES, EXPORT_ICEBERG, IMPORT_TABLE
from lakelog.spark.procedures.declare import ProcedureCall, Rows, procedure_of
from lakelog.spark.procedures.sources import known_folder, source_of
from lakelog.spark.requests.jobs import FindSource, SourceFound


def _export(call: ProcedureCall) -> Rows:
    return EXPORT_ICEBERG.rows([call.loaded("table").export_iceberg(call["to"])])


def _prepare_import(call: ProcedureCall) -> FindSource:
    format = call["format"].lower()
    # Later imports read few new files, whose footers take little time.
    is_new = not call.catalog.table_exists(call.table("table"))
    return FindSource(
        source=source_of(call["source"], format), format=format, footers=is_new and format == "parquet"
    )


def _import(call: ProcedureCall) -> Rows:
    source = call.came_of(SourceFound)
    folder = known_folder(source) if call["format"].lower() == "parquet" else None
    keywords = call.keywords("source", "table")
    return IMPORT_TABLE.rows(
        [call.catalog.import_table(source.url, call.table("table"), **keywords, known=folder)]
    )


def _adopt(call: ProcedureCall) -> Rows:
    return ADOPT_FILES.rows([call.catalog.adopt_files(call.table("table"), dry_run=call["dry_run"])])


PROCEDURES = (
    procedure_of(EXPORT_ICEBERG, _export, in_transaction=False),
    procedure_of(IMPORT_TABLE, _import, rows=True, prepare=_prepare_import, in_transaction=False),
    procedure_of(ADOPT_FILES, _adopt, in_transaction=False),
)

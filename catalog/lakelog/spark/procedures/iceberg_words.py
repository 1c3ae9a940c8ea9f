"""Iceberg's procedures by their names and arguments, if they mean the same for lakelog's tables.

An argument that lakelog handles differently is never ignored. It is refused by an error that names lakelog's
own procedure. Deletions keep lakelog's fences. Files of writes that may be under way stay, and so do files
that saved cuts, tags and branches need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.log.errors import InvalidInput, NotFound
from lakelog.spark.procedures import compaction
from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)
from lakelog.spark.requests.jobs import CompactFiles, CompactResult

if TYPE_CHECKING:
    from lakelog.catalog import Table

_TABLE = OperationParameter("table", "STRING", "the table")

# ---- versions


def _rollback_to_snapshot(call: ProcedureCall) -> Rows:
    table = call.catalog.load_table(call.table("table"))
    new_table = table.set_current_version(call["snapshot_id"], token=call.token)
    return [(table.version, new_table.version)]


# ---- files


def _goal(call: ProcedureCall) -> dict[str, Any]:
    """Return Iceberg's options as arguments of `compact`."""
    goal: dict[str, Any] = {"target_size": None, "deleted_ratio": None}
    for option, value in (call["options"] or {}).items():
        try:
            if option == "target-file-size-bytes":
                goal["target_size"] = int(value)
            elif option == "delete-ratio-threshold":
                goal["deleted_ratio"] = float(value)
            else:
                raise InvalidInput(
                    f"rewrite_data_files does not know the option {option!r} for lakelog's tables: leave it out, and "
                    "see the arguments target_size and deleted_ratio of compact"
                )
        except ValueError as error:
            raise InvalidInput(f"the option {option} is {value!r}: give a number") from error
    return goal


def _refuse_layout(call: ProcedureCall, table: Table) -> None:
    strategy = call["strategy"]
    if strategy not in (None, "binpack", "sort"):
        raise InvalidInput(f"the strategy is {strategy!r}: give binpack or sort, or leave it out")
    if call["sort_order"] is not None:
        raise InvalidInput(
            f"rewrite_data_files keeps the order that {table.name} has: leave sort_order out, and set the order by "
            "ALTER TABLE … WRITE ORDERED BY, or a layout by several columns by ALTER TABLE … CLUSTER BY"
        )


def _prepare_rewrite(call: ProcedureCall) -> CompactFiles:
    table = call.loaded("table")
    _refuse_layout(call, table)
    return compaction.job(call, table, **_goal(call))


def _rewritten(call: ProcedureCall) -> Rows:
    result = call.came_of(CompactResult)
    return [(result.rewritten_files, result.added_files, result.rewritten_bytes, 0, result.current_version)]


# ---- deletion


def _refuse_tuning(call: ProcedureCall, *names: str) -> None:
    for name in names:
        if call[name] is not None:
            raise InvalidInput(
                f"lakelog has no use for the argument {name}: leave it out, and see expire and vacuum"
            )


def _wish(call: ProcedureCall, table: Table) -> dict[str, Any] | None:
    """Return the versions to expire, as arguments of `expire`.

    None if all versions are newer than requested.
    """
    age, time_us, last = call["age"], call["older_than"], call["retain_last"]
    if age is not None and time_us is not None:
        raise InvalidInput("age and older_than cannot be combined: give only one of them")
    if last is not None and last < 1:
        raise InvalidInput(f"retain_last is {last}: give a whole number of at least 1")
    if time_us is None:
        if last is not None:
            raise InvalidInput(
                "retain_last says how many versions are kept beside those that older_than keeps: give older_than too, "
                "or call expire with retain_last"
            )
        return {} if age is None else {"older_than": age}
    try:
        version = table.at(timestamp=time_us).version
    except NotFound:
        return None
    return {"version": max(1, min(version, table.version - (last or 1) + 1))}


def _expire_snapshots(call: ProcedureCall) -> Rows:
    _refuse_tuning(call, "max_concurrent_deletes", "stream_results", "snapshot_ids", "clean_expired_metadata")
    name = call.table("table")
    wish = _wish(call, call.catalog.load_table(name))
    dry_run = call["dry_run"]
    expiries = [] if wish is None else call.catalog.expire(table=name, **wish, dry_run=dry_run)
    vacuums = call.catalog.vacuum(table=name, dry_run=dry_run)
    # Vacuum counts the files that only expired versions had, unless these have not expired.
    files = sum(log_result.files for log_result in vacuums) + (
        sum(log_result.files for log_result in expiries) if dry_run else 0
    )
    size = sum(log_result.size_bytes for log_result in vacuums)
    size += sum(log_result.file_bytes for log_result in expiries) if dry_run else 0
    errors = [
        log_result.error
        for results in (expiries, vacuums)
        for log_result in results
        if log_result.error is not None
    ]
    return [
        (
            files,
            size,
            sum(log_result.objects for log_result in vacuums),
            sum(log_result.waiting for log_result in vacuums),
            sum(log_result.versions for log_result in expiries),
            any(log_result.kept_for_cuts for log_result in expiries),
            "; ".join(errors) or None,
        )
    ]


def _remove_orphan_files(call: ProcedureCall) -> Rows:
    _refuse_tuning(
        call, "older_than", "location", "max_concurrent_deletes", "file_list_view", "equal_schemes",
        "equal_authorities", "prefix_mismatch_mode",
    )  # fmt: skip
    vacuums = call.catalog.vacuum(table=call.table("table"), dry_run=call["dry_run"])
    errors = [vacuum.error for vacuum in vacuums if vacuum.error is not None]
    return [
        (
            sum(vacuum.files for vacuum in vacuums),
            sum(vacuum.size_bytes for vacuum in vacuums),
            sum(vacuum.objects for vacuum in vacuums),
            sum(vacuum.waiting for vacuum in vacuums),
            sum(vacuum.foreign for vacuum in vacuums),
            "; ".join(errors) or None,
        )
    ]


def _refused(name: str, type: str) -> OperationParameter:
    return OperationParameter(name, type, "is refused: lakelog has no use for it", default="NULL")


_DRY_RUN = OperationParameter("dry_run", "BOOLEAN", "only report what would be deleted", default="false")
_ERROR = AnswerColumn("error", "STRING", "why something was not done")
_FILES = (
    AnswerColumn("deleted_data_files_count", "BIGINT"),
    AnswerColumn("deleted_data_files_bytes", "BIGINT"),
    AnswerColumn("deleted_objects_count", "BIGINT", "all others except commits"),
    AnswerColumn("waiting_files_count", "BIGINT", "of writes of the last 3 days: they may be under way"),
)

PROCEDURES = (
    SystemProcedure(
        name="rollback_to_snapshot",
        rows=True,
        description="Iceberg's word for set_current_version: a table gets the rows of a version.",
        run=_rollback_to_snapshot,
        parameters=(_TABLE, OperationParameter("snapshot_id", "BIGINT", "the version that has the rows")),
        columns=(
            AnswerColumn("previous_snapshot_id", "BIGINT", "the version that was the current one"),
            AnswerColumn("current_snapshot_id", "BIGINT", "the new version"),
        ),
        changes=lambda call: call.table("table"),
    ),
    SystemProcedure(
        name="rewrite_data_files",
        description="Iceberg's word for compact: small files of a table are rewritten into larger ones.",
        prepare=_prepare_rewrite,
        run=_rewritten,
        parameters=(
            _TABLE,
            OperationParameter(
                "strategy", "STRING", "binpack or sort: the table's order is kept in both", default="NULL"
            ),
            OperationParameter("sort_order", "STRING", "is refused: the table has its order", default="NULL"),
            OperationParameter(
                "options",
                "MAP<STRING, STRING>",
                "target-file-size-bytes, delete-ratio-threshold",
                default="NULL",
            ),
            OperationParameter(
                "where", "STRING", "only files that may have rows that match; NULL: all", default="NULL"
            ),
        ),
        columns=(
            AnswerColumn("rewritten_data_files_count", "BIGINT", "that the table no longer has"),
            AnswerColumn("added_data_files_count", "BIGINT", "in their place"),
            AnswerColumn("rewritten_bytes_count", "BIGINT"),
            AnswerColumn("failed_data_files_count", "BIGINT", "0: a failure is an error"),
            AnswerColumn("current_version", "BIGINT"),
        ),
    ),
    SystemProcedure(
        name="expire_snapshots",
        description="Iceberg's word for expire, then vacuum: old versions go, and files that only these have.",
        run=_expire_snapshots,
        parameters=(
            _TABLE,
            OperationParameter(
                "older_than",
                "TIMESTAMP",
                "versions that were replaced before; NULL: as keep-for says, or 7 days ago",
                default="NULL",
            ),
            OperationParameter(
                "retain_last", "INT", "keep at least so many, with older_than", default="NULL"
            ),
            _refused("max_concurrent_deletes", "INT"),
            _refused("stream_results", "BOOLEAN"),
            _refused("snapshot_ids", "ARRAY<BIGINT>"),
            _refused("clean_expired_metadata", "BOOLEAN"),
            OperationParameter(
                "age", "INTERVAL DAY TO SECOND", "in place of older_than: how long ago", default="NULL"
            ),
            _DRY_RUN,
        ),
        columns=(
            *_FILES,
            AnswerColumn("expired_versions_count", "BIGINT"),
            AnswerColumn("kept_for_cuts", "BOOLEAN", "saved cuts keep more than was requested"),
            _ERROR,
        ),
        in_transaction=False,
    ),
    SystemProcedure(
        name="remove_orphan_files",
        description="Iceberg's word for vacuum: files that nothing can reach are deleted.",
        run=_remove_orphan_files,
        parameters=(
            _TABLE,
            _refused("older_than", "TIMESTAMP"),
            _refused("location", "STRING"),
            _DRY_RUN,
            _refused("max_concurrent_deletes", "INT"),
            _refused("file_list_view", "STRING"),
            _refused("equal_schemes", "MAP<STRING, STRING>"),
            _refused("equal_authorities", "MAP<STRING, STRING>"),
            _refused("prefix_mismatch_mode", "STRING"),
        ),
        columns=(*_FILES, AnswerColumn("foreign_files_count", "BIGINT", "not lakelog's; they stay"), _ERROR),
        in_transaction=False,
    ),
)

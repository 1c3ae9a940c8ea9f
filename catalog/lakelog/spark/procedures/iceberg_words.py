"""Procedures that Iceberg has, by its names and arguments, where they mean the same for lakelog's tables.

What lakelog does in another way is refused by an error that names lakelog's own procedure, never passed over. What
deletes keeps lakelog's fences: files of writes that may be under way stay, and so does what saved cuts, tags and
branches need.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lakelog.log.errors import InvalidInput, NotFound
from lakelog.spark.procedures import compaction
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import Compact, Compacted

if TYPE_CHECKING:
    from lakelog.catalog.table import Table

_TABLE = Parameter("table", "STRING", "the table")

# ---- versions


def _rollback_to_snapshot(call: Call) -> Rows:
    table = call.catalog.load_table(call.table("table"))
    now = table.set_current_version(call["snapshot_id"], token=call.token)
    return [(table.version, now.version)]


# ---- files


def _goal(call: Call) -> dict[str, Any]:
    """Return what Iceberg's options say as arguments of `compact`."""
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


def _refuse_layout(call: Call, table: Table) -> None:
    strategy = call["strategy"]
    if strategy not in (None, "binpack", "sort"):
        raise InvalidInput(f"the strategy is {strategy!r}: give binpack or sort, or leave it out")
    if call["sort_order"] is not None:
        raise InvalidInput(
            f"rewrite_data_files keeps the order that {table.name} has: leave sort_order out, and set the order by "
            "ALTER TABLE … WRITE ORDERED BY, or a layout by several columns by ALTER TABLE … CLUSTER BY"
        )


def _prepare_rewrite(call: Call) -> Compact:
    table = call.loaded("table")
    _refuse_layout(call, table)
    return compaction.job(call, table, **_goal(call))


def _rewritten(call: Call) -> Rows:
    done = call.came_of(Compacted)
    return [(done.rewritten_files, done.added_files, done.rewritten_bytes, 0, done.current_version)]


# ---- deletion


def _refuse_tuning(call: Call, *names: str) -> None:
    for name in names:
        if call[name] is not None:
            raise InvalidInput(
                f"lakelog has no use for the argument {name}: leave it out, and see expire and vacuum"
            )


def _wish(call: Call, table: Table) -> dict[str, Any] | None:
    """Return what is to expire, as arguments of `expire`; None where all versions are newer than requested."""
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
        return {} if age is None else {"older_than": dt.timedelta(microseconds=age)}
    try:
        version = table.at(timestamp_us=time_us).version
    except NotFound:
        return None
    return {"version": max(1, min(version, table.version - (last or 1) + 1))}


def _expire_snapshots(call: Call) -> Rows:
    _refuse_tuning(call, "max_concurrent_deletes", "stream_results", "snapshot_ids", "clean_expired_metadata")
    name = call.table("table")
    wish = _wish(call, call.catalog.load_table(name))
    dry_run = call["dry_run"]
    expired = [] if wish is None else call.catalog.expire(table=name, **wish, dry_run=dry_run)
    vacuumed = call.catalog.vacuum(table=name, dry_run=dry_run)
    # Files that only expired versions had are vacuum's to count, unless these have not expired.
    files = sum(each.files for each in vacuumed) + (sum(each.files for each in expired) if dry_run else 0)
    size = sum(each.size_bytes for each in vacuumed)
    size += sum(each.file_bytes for each in expired) if dry_run else 0
    errors = [each.error for found in (expired, vacuumed) for each in found if each.error is not None]
    return [
        (
            files,
            size,
            sum(each.objects for each in vacuumed),
            sum(each.waiting for each in vacuumed),
            sum(each.versions for each in expired),
            any(each.kept_for_cuts for each in expired),
            "; ".join(errors) or None,
        )
    ]


def _remove_orphan_files(call: Call) -> Rows:
    _refuse_tuning(
        call, "older_than", "location", "max_concurrent_deletes", "file_list_view", "equal_schemes",
        "equal_authorities", "prefix_mismatch_mode",
    )  # fmt: skip
    found = call.catalog.vacuum(table=call.table("table"), dry_run=call["dry_run"])
    errors = [each.error for each in found if each.error is not None]
    return [
        (
            sum(each.files for each in found),
            sum(each.size_bytes for each in found),
            sum(each.objects for each in found),
            sum(each.waiting for each in found),
            sum(each.foreign for each in found),
            "; ".join(errors) or None,
        )
    ]


def _refused(name: str, type: str) -> Parameter:
    return Parameter(name, type, "is refused: lakelog has no use for it", default="NULL")


_DRY_RUN = Parameter("dry_run", "BOOLEAN", "only report what would be deleted", default="false")
_ERROR = Column("error", "STRING", "why something was not done")
_FILES = (
    Column("deleted_data_files_count", "BIGINT"),
    Column("deleted_data_files_bytes", "BIGINT"),
    Column("deleted_objects_count", "BIGINT", "all others except commits"),
    Column("waiting_files_count", "BIGINT", "of writes of the last 3 days: they may be under way"),
)

PROCEDURES = (
    Procedure(
        name="rollback_to_snapshot",
        rows=True,
        description="Iceberg's word for set_current_version: a table gets the rows of a version.",
        run=_rollback_to_snapshot,
        parameters=(_TABLE, Parameter("snapshot_id", "BIGINT", "the version that has the rows")),
        columns=(
            Column("previous_snapshot_id", "BIGINT", "the version that was the current one"),
            Column("current_snapshot_id", "BIGINT", "the new version"),
        ),
        changes=lambda call: call.table("table"),
    ),
    Procedure(
        name="rewrite_data_files",
        description="Iceberg's word for compact: small files of a table are rewritten into larger ones.",
        prepare=_prepare_rewrite,
        run=_rewritten,
        parameters=(
            _TABLE,
            Parameter(
                "strategy", "STRING", "binpack or sort: the table's order is kept in both", default="NULL"
            ),
            Parameter("sort_order", "STRING", "is refused: the table has its order", default="NULL"),
            Parameter(
                "options",
                "MAP<STRING, STRING>",
                "target-file-size-bytes, delete-ratio-threshold",
                default="NULL",
            ),
            Parameter(
                "where", "STRING", "only files that may have rows that match; NULL: all", default="NULL"
            ),
        ),
        columns=(
            Column("rewritten_data_files_count", "BIGINT", "that the table no longer has"),
            Column("added_data_files_count", "BIGINT", "in their place"),
            Column("rewritten_bytes_count", "BIGINT"),
            Column("failed_data_files_count", "BIGINT", "0: a failure is an error"),
            Column("current_version", "BIGINT"),
        ),
    ),
    Procedure(
        name="expire_snapshots",
        description="Iceberg's word for expire, then vacuum: old versions go, and files that only these have.",
        run=_expire_snapshots,
        parameters=(
            _TABLE,
            Parameter(
                "older_than",
                "TIMESTAMP",
                "versions that were replaced before; NULL: as keep-for says, or 7 days ago",
                default="NULL",
            ),
            Parameter("retain_last", "INT", "keep at least so many, with older_than", default="NULL"),
            _refused("max_concurrent_deletes", "INT"),
            _refused("stream_results", "BOOLEAN"),
            _refused("snapshot_ids", "ARRAY<BIGINT>"),
            _refused("clean_expired_metadata", "BOOLEAN"),
            Parameter(
                "age", "INTERVAL DAY TO SECOND", "in place of older_than: how long ago", default="NULL"
            ),
            _DRY_RUN,
        ),
        columns=(
            *_FILES,
            Column("expired_versions_count", "BIGINT"),
            Column("kept_for_cuts", "BOOLEAN", "saved cuts keep more than was requested"),
            _ERROR,
        ),
        in_transaction=False,
    ),
    Procedure(
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
        columns=(*_FILES, Column("foreign_files_count", "BIGINT", "not lakelog's; they stay"), _ERROR),
        in_transaction=False,
    ),
)

"""Operations of upkeep: compact, cluster, expire, vacuum, maintain, health, fsck, forget."""

from __future__ import annotations

from lakelog.catalog.operations.declare import (
    ACTS_AT_ONCE,
    REPORTS_FIRST,
    SCOPE,
    TABLE,
    WHERE,
    AnswerColumn,
    DeclaredOperation,
    OperationEffect,
    OperationParameter,
    age,
    flag,
    optional,
    size,
    text,
)

_TABLE_OR_ALL, _NAMESPACE = SCOPE
_TRUST_CLOCK = flag(
    "trust_clock",
    "the clock of this host, in Spark of the driver, is right, though in a folder nothing was committed for more than "
    "a day",
)
_CLOCKS = """
In a folder, no clock but this host's says how old things are. If it is more than a day past the newest commit, and
only that makes something old enough, nothing is changed unless the clock is trusted.
"""

_REWRITTEN = (
    AnswerColumn("rewritten_files", "BIGINT", "that the table no longer has"),
    AnswerColumn("rewritten_bytes", "BIGINT"),
    AnswerColumn("added_files", "BIGINT", "in their place"),
    AnswerColumn("added_bytes", "BIGINT"),
    AnswerColumn("deleted_rows", "BIGINT", "that were still in those files"),
)
_PLACE = (
    AnswerColumn("kind", "STRING"),
    AnswerColumn("name", "STRING"),
    AnswerColumn("location", "STRING", "relative to the warehouse"),
)
_END = (
    AnswerColumn("kept_for_cuts", "BOOLEAN", "saved cuts keep more than was requested"),
    AnswerColumn("error", "STRING", "why nothing was done here"),
)

COMPACT = DeclaredOperation(
    name="compact",
    summary="Rewrite small files of a table into larger ones.",
    details="""
Files with many deleted rows are rewritten, too, without these. No row changes, and older versions keep their files
until they expire and are vacuumed. Large tables take several commits; files that others change at the same time are
left for the next call. The command reads and writes the rows itself. For very large tables, CALL lake.system.compact
in Spark does the same by its executors.
""",
    effect=OperationEffect.REWRITES,
    parameters=(
        TABLE,
        WHERE,
        size("target_size", "how many bytes a file should have", "the table's property"),
        optional(
            "deleted_ratio",
            "DOUBLE",
            "the share of deleted rows from which on any file is rewritten",
            "the table's property, or 0.3",
            metavar="SHARE",
        ),
    ),
    columns=(*_REWRITTEN, AnswerColumn("current_version", "BIGINT")),
)

CLUSTER = DeclaredOperation(
    name="cluster",
    summary="Put the rows of a table in the order of its CLUSTER BY.",
    details="""
No row changes. Files without that order are rewritten, together with others if these are not much larger, so that a
call after some new rows rewrites little more than these. After a limit, the next call goes on. The command reads and
writes the rows itself. For very large tables, CALL lake.system.cluster in Spark does the same by its executors.
""",
    effect=OperationEffect.REWRITES,
    parameters=(
        TABLE,
        WHERE,
        size("limit_bytes", "start no new step after so many bytes were read", "no limit"),
        flag("full", "leave no two files that overlap, whatever that rewrites"),
        ACTS_AT_ONCE,
    ),
    columns=(
        *COMPACT.columns,
        AnswerColumn("is_left", "BOOLEAN", "the limit was reached before the end: call it again"),
        AnswerColumn(
            "overlap_before", "DOUBLE", "files that a value of each key column may be in, on average"
        ),
        AnswerColumn("overlap_after", "DOUBLE"),
    ),
)

EXPIRE = DeclaredOperation(
    name="expire",
    summary="Expire versions that were replaced long ago.",
    details="""
It does so for a table, for a namespace with all that is in it, or for the whole warehouse. Current versions stay, and
so do versions that saved cuts need. AGE is a number and s, m, h, d or w. Without any limit, each table is kept for as
long as its property lakelog.maintenance.keep-for says, or that of a namespace above it, and for 7 days if none does.

Only the log shrinks: lakelog vacuum deletes the data files that no version has any more. Each log that is expired
gets a commit that says so.
"""
    + _CLOCKS,
    effect=OperationEffect.DELETES,
    parameters=(
        _TABLE_OR_ALL,
        age("older_than", "expire versions that were replaced longer ago", "as keep-for says, or 7 days"),
        optional(
            "retain_last",
            "INT",
            "expire all but the newest versions of each log, so many of them",
            metavar="N",
        ),
        optional(
            "version",
            "BIGINT",
            "expire the versions of a table before this one",
            option="--before-version",
            metavar="N",
        ),
        _NAMESPACE,
        REPORTS_FIRST,
        _TRUST_CLOCK,
    ),
    columns=(
        *_PLACE,
        AnswerColumn("versions", "BIGINT", "how many expire"),
        AnswerColumn("first_version", "BIGINT", "the first that can be read afterwards", "first"),
        AnswerColumn("head_version", "BIGINT", member="head"),
        AnswerColumn("commits", "BIGINT"),
        AnswerColumn("commit_bytes", "BIGINT", member="size_bytes"),
        AnswerColumn("files", "BIGINT", "data files that vacuum can delete then"),
        AnswerColumn("file_bytes", "BIGINT"),
        *_END,
    ),
)

VACUUM = DeclaredOperation(
    name="vacuum",
    summary="Delete files that nothing can reach any more.",
    details="""
It does so for a table, for a namespace with all that is in it, or for the whole warehouse. AGE is a number and s, m,
h, d or w.

\b
It deletes:
  data files of no readable version and of no write under way
  tables and namespaces that were dropped longer ago than the limit
  leftovers of unfinished creations in a namespace
  leftovers of writers that died

Time travel keeps what it needs: lakelog expire decides which versions stay. Files that are not lakelog's are never
touched. Writes older than the limit fail with a clear error; the limit must be longer than your longest write.
"""
    + _CLOCKS,
    effect=OperationEffect.DELETES,
    parameters=(
        _TABLE_OR_ALL,
        age("older_than", "writes that began longer ago fail from then on", "3 days"),
        age("dropped_older_than", "what was dropped longer ago is purged for good", "7 days"),
        _NAMESPACE,
        REPORTS_FIRST,
        _TRUST_CLOCK,
    ),
    columns=(
        *_PLACE,
        AnswerColumn("files", "BIGINT", "data files"),
        AnswerColumn("file_bytes", "BIGINT", member="size_bytes"),
        AnswerColumn("objects", "BIGINT", "all others except commits"),
        AnswerColumn("object_bytes", "BIGINT"),
        AnswerColumn(
            "waiting_files",
            "BIGINT",
            "of writes that began after older_than: they may be under way",
            "waiting",
        ),
        AnswerColumn("foreign_files", "BIGINT", "not lakelog's; they stay", "foreign"),
        AnswerColumn("fence", "BIGINT", "the first version whose writes go on"),
        *_END,
        AnswerColumn("kept_for_clones", "ARRAY<STRING>", "clones that need what was dropped"),
    ),
)

MAINTAIN = DeclaredOperation(
    name="maintain",
    summary="Do what is due for tables, by their policies.",
    details="""
It does so for a table, for each table of a namespace, or for the whole warehouse: it compacts, clusters, and computes
old statistics anew, and expires and vacuums if a policy says so. Small files of about one size are joined, and files
with many deleted rows rewritten without these. Versions expire, and files are deleted, only if a policy says how long
to keep them: the properties lakelog.maintenance.keep-for and .vacuum-age of the table, or of a namespace above it. A
table whose lakelog.maintenance is off is left alone.

No writer fails or waits because of it. At a limit it stops with all that was done by then, and the next call goes on;
a step that has begun is completed. Exit code 1 if a table failed; it hides no other.
""",
    effect=OperationEffect.REWRITES,
    parameters=(
        *SCOPE,
        ACTS_AT_ONCE,
        age("limit_time", "start no new step after that time, as 30m", "no limit"),
        size("limit_bytes", "start no new step after compactions have read so many bytes", "no limit"),
    ),
    columns=(
        AnswerColumn("name", "STRING"),
        *_REWRITTEN,
        AnswerColumn("statistics", "BIGINT", "columns whose statistics were computed anew"),
        AnswerColumn("versions", "BIGINT", "how many have expired"),
        AnswerColumn("freed_files", "BIGINT", "that were deleted, as no version had them"),
        AnswerColumn("freed_bytes", "BIGINT"),
        AnswerColumn("is_left", "BOOLEAN", "a limit was reached before the end: call it again"),
        AnswerColumn("note", "STRING", "why something was left"),
        AnswerColumn("error", "STRING", "what failed"),
    ),
)

HEALTH = DeclaredOperation(
    name="health",
    summary="Say how tables are, and what is to be done about it.",
    details="""
It says so for a table, for each table of a namespace, or for the whole warehouse, from metadata alone: the sizes of
files, deleted rows, how files overlap along the columns that rows are clustered by, versions that only time travel
needs, and the commits and lost races of the last day. For each thing to do it names the command, what that would read
and write, and what it is expected to save. Exit code 4 if a table cannot be read.
""",
    effect=OperationEffect.READS,
    parameters=(
        *SCOPE,
        flag("listing", "count what a vacuum would delete now, by listing it", option="--list"),
    ),
    columns=(
        AnswerColumn("name", "STRING"),
        AnswerColumn("version", "BIGINT"),
        AnswerColumn("files", "BIGINT"),
        AnswerColumn("size_bytes", "BIGINT"),
        AnswerColumn("small_files", "BIGINT", "that a compaction may join"),
        AnswerColumn("rows", "BIGINT"),
        AnswerColumn("deleted_rows", "BIGINT", "that are still in their files"),
        AnswerColumn("old_versions", "BIGINT", "that only time travel needs"),
        AnswerColumn("past_bytes", "BIGINT", "estimate: what expiry of all of these and a vacuum would free"),
        AnswerColumn("unreachable_bytes", "BIGINT", "what a vacuum would delete now; NULL: not counted"),
        AnswerColumn("day_commits", "BIGINT", "commits of the last day"),
        AnswerColumn("day_lost_races", "BIGINT", "of which so many were rebased over others"),
        AnswerColumn("level", "STRING", "good, could or should"),
        AnswerColumn("advice", "STRING"),
        AnswerColumn("action", "STRING"),
        AnswerColumn("reads_bytes", "BIGINT", "that the action would read"),
        AnswerColumn("writes_bytes", "BIGINT"),
        AnswerColumn("saves_files", "BIGINT", "that a scan of all rows no longer opens"),
        AnswerColumn("frees_bytes", "BIGINT"),
        AnswerColumn("statement", "STRING", "that does it in Spark"),
        AnswerColumn("command", "STRING", "that does it on a command line"),
        AnswerColumn("problem", "STRING", "why no more is known"),
    ),
)

FSCK = DeclaredOperation(
    name="fsck",
    summary="Check every object of the warehouse, or of a part of it.",
    details="""
PLACE is a warehouse, or the folder or URL of one table or namespace; NAME is one thing in the warehouse. Without
PLACE, the warehouse that is set is checked.

\b
Findings are of three kinds:
  damage      data or history is lost or wrong: restore the named object
  repairable  derived or unfinished: a repair or normal work fixes it
  note        good to know: leftovers of writers that died, foreign objects

A repair writes hints and snapshots anew, aborts undecided transactions, and removes the names of unfinished drops. It
never touches commits, decisions, bases or data files. All that can be read before can be read after: if it could not
be, nothing is changed. What a repair removes or replaces is moved to _log/_lost/, with a list of it.

Exit codes: 0 if all is clean (notes at most), 1 if it could not check, 2 for wrong usage, 3 if something repairable
is left, and 4 for damage.
""",
    effect=OperationEffect.READS,
    parameters=(
        _TABLE_OR_ALL,
        flag("repair", "do what is provably safe, then check again"),
        flag("deep", "read every page of the data files too, in Spark by a job"),
        flag("all_versions", "check the data files of all versions that can be read"),
        _NAMESPACE,
    ),
    columns=(
        AnswerColumn(
            "severity", "STRING", "damage, repairable or note; repaired: what a repair did, or why not"
        ),
        AnswerColumn("kind", "STRING", "a stable word"),
        AnswerColumn("location", "STRING", "the URL of the object", "where"),
        AnswerColumn("what", "STRING", "what is wrong"),
        AnswerColumn("todo", "STRING", "what to do about it"),
    ),
)

FORGET = DeclaredOperation(
    name="forget",
    summary="Erase rows from all that a table has or had.",
    details="""
That is every version, tag, branch and clone, change data, statistics, proposals, Iceberg's metadata, and dropped
tables of its name. All older versions of these expire. Tags that have such rows, and saved cuts that need older
versions, are dropped. Writes under way fail. All of it is reported first. At the end, every object that is left is
read, and a receipt is committed to the table's log.

The next call ends a call that was stopped. Exit code 1 if such rows are left somewhere, or may be.
""",
    effect=OperationEffect.DELETES,
    parameters=(
        TABLE,
        OperationParameter("where", "STRING", "which rows, as in a WHERE clause"),
        optional("namespace", "STRING", "the table's namespace", "as named", in_command=False),
        REPORTS_FIRST,
        text("reference", "what the receipt names as the reason, as a ticket", metavar="TEXT"),
        text("key", "a PEM file, in Spark the driver's, with an Ed25519 key that signs", metavar="PEM"),
        flag("leave_foreign", "leave such rows in files of another writer, and name these"),
    ),
    columns=(
        AnswerColumn(
            "what", "STRING", "table, clone, dropped-table, namespace, lost …, left, out of reach, receipt"
        ),
        AnswerColumn("name", "STRING"),
        AnswerColumn("details", "STRING", "of a receipt, its text"),
        AnswerColumn("files", "BIGINT", "that have such rows now"),
        AnswerColumn("rows", "BIGINT", "of these files, with those that are marked as deleted"),
        AnswerColumn("past_files", "BIGINT", "that older versions have, or none"),
        AnswerColumn("versions", "BIGINT", "that expire"),
        AnswerColumn("version", "BIGINT", "the first without such rows; of a receipt, its own"),
        AnswerColumn("checked", "BIGINT", "objects that were read at the end"),
    ),
)

"""The advice for each kind of error, for `lakelog explain` and for the site's page of errors.

Each kind has an entry, and a test holds that. A message says what happened to which object. The advice is the same
for all messages of its kind. Pages are named as in `docs/`.
"""

from __future__ import annotations

_NAMES = (
    "Names are case-sensitive, and the message suggests those that are near. `lakelog ls` lists what a "
    "namespace has; "
)
_TAKEN = (
    "Choose another name, drop what has it, or say `IF NOT EXISTS` (`if_not_exists=True`) where it may be"
    " there. "
)
_RACE = (
    "Nothing of the request was done. Load the table again, look at what the other commit changed "
    "(`lakelog history`), and redo the work. "
)

EXPLANATIONS: dict[str, str] = {
    "lakelog": ("The base of all others: catch it to catch every error that lakelog raises on purpose."),
    "conflict": _RACE
    + ("A loop of a few attempts is enough, as another writer has succeeded each time. Pages: transactions."),
    "write-fenced": (
        "The write took longer than vacuum waits for writes under way (3 days), so its files may be gone. Run"
        " it again; a write that long is better cut into several. Pages: maintenance."
    ),
    "batch-committed": (
        "The batch of the stream is in the table: go on with the next one. Pages: streaming."
    ),
    "commit-conflict": _RACE
    + (
        "The message names the other version and its author, and what of this request it has changed or read."
        " Appends never fail so; UPDATE, DELETE and MERGE do where both changed the same rows, or where the "
        "table is serializable and a row was added that the condition takes. Fewer conflicts: conditions on "
        "the partition or cluster columns, and `'lakelog.isolation' = 'snapshot'` where a row added meanwhile"
        " may be left out. Pages: transactions, properties."
    ),
    "name-reassigned": (
        "The name that was given leads to another table by now: look whether that is the one you mean, then "
        "run the statement again."
    ),
    "stream-stopped": (
        "The versions that the stream would read next are not as it needs them: they have expired, rows were "
        "changed in them, or the table was replaced. The message says from which version it can go on; with a"
        " new checkpoint it begins anew. `skipChangeCommits` passes over versions that change rows. Pages: "
        "streaming."
    ),
    "transaction-lost": (
        "The process that held the open transaction has ended, and nothing of it was committed. Roll back, "
        "and run the whole transaction again."
    ),
    "transaction-ended": (
        "The transaction was committed or rolled back between two parts of one statement: run the statement "
        "again, outside or in a new transaction. Pages: transactions."
    ),
    "commit-unknown": (
        "The store did not answer, and whether the commit is there could not be read. Do not simply repeat an"
        " INSERT. Once the store answers again, look the id of the message up by `lakelog history` or "
        "`lakelog audit`: if it is there, all is done; if it is not, nothing is. A request that is repeated "
        "with its id (a stream's batch, a token) is not applied twice. Pages: operations."
    ),
    "not-found": ("The message says what is missing and where it was looked for."),
    "log-sealed": (
        "The table or namespace was dropped after it was loaded: load its name again. `lakelog dropped` lists"
        " what can be restored, `lakelog undrop` restores it. Pages: undo."
    ),
    "no-such-column": (
        "Columns are as `DESCRIBE` lists them; `spark.sql.caseSensitive` decides whether letters count. A "
        "column of an older version is read by `VERSION AS OF`."
    ),
    "no-such-namespace": _NAMES + ("a namespace is made by `CREATE NAMESPACE`, each level by itself."),
    "no-such-warehouse": (
        "The folder is not there: check for a mistake in its path, and whether a disk or bucket is mounted. "
        "An empty folder is an empty warehouse, and the first write into a path makes it. Pages: quick-start."
    ),
    "no-such-table": _NAMES + ("`lakelog dropped` lists tables that were dropped and can be restored."),
    "table-renamed": ("The table was renamed after it was loaded: load it by its new name."),
    "no-such-ref": ("`lakelog refs`, or `SHOW BRANCHES IN t`, lists tags and branches. Pages: branches."),
    "no-such-view": _NAMES + ("`SHOW VIEWS` lists views only."),
    "no-such-function": _NAMES + ("`SHOW USER FUNCTIONS IN lake.x` lists those of a namespace."),
    "no-such-constraint": ("`SHOW CREATE TABLE` shows a table's constraints with their names."),
    "already-exists": _TAKEN,
    "column-already-exists": ("Names of columns differ in more than upper and lower case. Pages: sql/alter."),
    "ref-already-exists": ("Choose another name, or say `CREATE OR REPLACE` (`--replace`). Pages: branches."),
    "namespace-already-exists": _TAKEN,
    "table-already-exists": _TAKEN + ("`CREATE OR REPLACE TABLE` keeps the history."),
    "view-already-exists": _TAKEN + ("Tables and views of a namespace share their names."),
    "function-already-exists": _TAKEN,
    "constraint-already-exists": ("Choose another name, or drop the constraint first."),
    "invalid-input": ("The request cannot work as it stands; the message says what to change."),
    "unsupported": (
        "lakelog understands the request and has no answer to it; the message says what to do instead. Pages:"
        " limits."
    ),
    "source-diverged": (
        "Both the table and the source of its import were changed since the last import. Decide which one "
        "counts: the message names the versions, `lakelog import` into another name shows the source as it "
        "is. Pages: sql/imports."
    ),
    "owners-unknown": (
        "Before files that were adopted are deleted, all tables that may have them are read, and one of them "
        "cannot be. Nothing was deleted. Mend what the message names, or wait for it, and run the same again."
        " Pages: sql/imports."
    ),
    "namespace-not-empty": (
        "Drop what it has first, or say `DROP NAMESPACE … CASCADE`; both can be undone until vacuum. Pages: "
        "undo."
    ),
    "multiple-primary-keys": ("Drop the primary key that the table has first. Pages: sql/constraints."),
    "check-violated": (
        "At least one row breaks the condition, and nothing was written. Query the source with `WHERE NOT "
        "(condition)` to find it. Pages: sql/constraints."
    ),
    "rows-unproven": (
        "Statistics of files do not show that all rows keep the condition. The same statement in Spark reads "
        "the rows; from Python, use the table's method that does, as the message says. Pages: "
        "sql/constraints."
    ),
    "clock-not-trusted": (
        "Files are about to be deleted, and only this host's clock says that they are old enough. Compare it "
        "with another one, then say that it is right by `--trust-clock`. Pages: maintenance."
    ),
    "stored-code-refused": (
        "A view, function, default or condition that another writer has stored would run in your session. The"
        " message says who wrote it; the setting `stored-code` says what may run. Pages: security."
    ),
    "format": (
        "An object in the store is not what the log says of it: cut off, altered, missing, or written by "
        "another program. Nothing was changed. `lakelog fsck` lists all that is wrong, and `--repair` mends "
        "what can be derived from the log. If a data file is missing: a backup, the bucket's own versions, or"
        " `lakelog restore` of a version without it. Pages: maintenance, backup."
    ),
    "unsupported-format": (
        "A newer lakelog has written with a feature that this one does not have; the message names it. "
        "Upgrade lakelog and its jar: nothing was read by half."
    ),
    "linked-elsewhere": (
        "A name leads to a log that says it is called otherwise: a copied or restored folder, or a damaged "
        "one. Nothing was changed. `lakelog fsck` says which; a copy of a warehouse is made by `lakelog "
        "backup`. Pages: backup."
    ),
    "storage": (
        "The store failed after retries; what it said is in the message. Try again later; `lakelog doctor` "
        "proves a store, its rights and its speed. Pages: doctor."
    ),
    "permission-denied": (
        "The store refused the credentials, and nothing was changed. Which rights on which prefix are needed "
        "for reading, writing and vacuum stands on the page; `lakelog doctor URL` tries them. Pages: "
        "security."
    ),
    "done-in-part": (
        "The request takes several commits, and some of them stay. The message says which are done; the same "
        "request again does the rest."
    ),
    "call-lost": (
        "lakelog's Python process ended several times while a call of `forget` or `materialize` waited for Spark. What "
        "it had committed stays: make the same call again, and it goes on. Pages: erasure, clones."
    ),
    "job-failed": (
        "A job that a call has asked Spark for failed, and Spark's own error says why. What was committed before it "
        "stays: mend that, and make the same call again. Pages: erasure, clones."
    ),
    "unclear": ("No user sees this kind: the caller reads whole files in place of rows."),
    "version-mismatch": (
        "The jar in Spark and the Python package beside it are of different versions: install the same in "
        "both places. Without `spark.jars` of your own, `lakelog spark-conf` names the right jar. Pages: "
        "spark."
    ),
    "maven-failed": (
        "Jars for tests could not be fetched: put `mvn` on the PATH, and look at what it says. Pages: "
        "testing."
    ),
}

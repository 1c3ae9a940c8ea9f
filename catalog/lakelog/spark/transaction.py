"""A transaction of several statements of a Spark session, which happen together or not at all.

with lakelog.spark.transaction(spark, "lake"):
    spark.sql("INSERT INTO lake.bank.savings VALUES …")
    spark.table("lake.staged").writeTo("lake.bank.checking").append()

Every statement of this session on the catalog is part of it, from any thread. Other sessions see nothing of
it before the end. Only `spark.sql` is used, so any kind of session will do. Streaming queries are not part of
it. Spark's caches of the catalog's tables are dropped at the begin and at the end. A DataFrame that was made
before is read as of the transaction. But after its rows were collected, `collect` repeats them because Spark
keeps the plan that it ran.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class transaction:
    """Begins when the block is entered.

    Commits at its end, or rolls back if it raises an exception. `isolation` is snapshot or serializable. None
    leaves that to each table. Transactions do not nest. A commit with an unknown outcome leaves the
    transaction open, and `commit` can be retried.
    """

    def __init__(self, spark: SparkSession, catalog: str = "lake", *, isolation: str | None = None) -> None:
        self._spark = spark
        self._system = f"`{catalog.replace('`', '``')}`.system"
        self._isolation = isolation
        self.id: str | None = None
        """The id of the transaction, and of its commits. None before it has begun."""

    def __enter__(self) -> transaction:
        if self._isolation is not None and not self._isolation.isidentifier():
            raise InvalidInput(f"{self._isolation!r} is not an isolation level: use snapshot or serializable")
        isolation = "NULL" if self._isolation is None else f"'{self._isolation}'"
        self.id = self._call(f"begin_transaction(isolation => {isolation})")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
            return
        try:
            self._call("rollback_transaction()")
        except Exception as rollback_error:
            # The first error is reported. Changes that are not committed have no effect, rolled back or not.
            error.add_note(f"and the transaction {self.id} could not be rolled back: {rollback_error}")

    def commit(self) -> None:
        """Commit now. Use it to retry a commit after an unknown outcome."""
        self._call("commit_transaction()")

    def _call(self, call: str) -> str:
        [row] = self._spark.sql(f"CALL {self._system}.{call}").collect()
        return str(row[0])

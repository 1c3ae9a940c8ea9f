"""Several statements of a Spark session that happen together or not at all.

with lakelog.spark.transaction(spark, "lake"):
    spark.sql("INSERT INTO lake.bank.savings VALUES …")
    spark.table("lake.staged").writeTo("lake.bank.checking").append()

Every statement of this session on the catalog is part of it, from whatever thread; other sessions see nothing of it
before the end. Nothing but `spark.sql` is used, so any kind of session will do. Streaming queries are not part of it.
Spark's caches of the catalog's tables are dropped at the begin and at the end. A DataFrame that was made before is read
as of the transaction; but once its rows were collected, `collect` repeats them, for Spark keeps the plan that it ran.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class transaction:
    """Begins when the block is entered; commits at its end, or rolls back when it raises.

    `isolation` is snapshot or serializable; None leaves that to each table. Transactions do not nest. A commit whose
    outcome could not be learned leaves the transaction open: `commit` can be retried then.
    """

    def __init__(self, spark: SparkSession, catalog: str = "lake", *, isolation: str | None = None) -> None:
        self._spark = spark
        self._system = f"`{catalog.replace('`', '``')}`.system"
        self._isolation = isolation
        self.id: str | None = None
        """Once it has begun: the id of the transaction, and of its commits."""

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
        except Exception as failed:
            # The first error is the one to report. What is not committed has no effect, rolled back or not.
            error.add_note(f"and the transaction {self.id} could not be rolled back: {failed}")

    def commit(self) -> None:
        """Commit now. For the end of the block, and for a retry after an unknown outcome."""
        self._call("commit_transaction()")

    def _call(self, call: str) -> str:
        [row] = self._spark.sql(f"CALL {self._system}.{call}").collect()
        return str(row[0])

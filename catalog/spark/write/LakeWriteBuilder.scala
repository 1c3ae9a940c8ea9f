package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, SupportsDynamicOverwrite, SupportsOverwriteV2, Write, WriteBuilder}
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.table.LakeTable

/** Collects what kind of write a statement is. */
private[lakelog] final class LakeWriteBuilder(table: LakeTable, info: LogicalWriteInfo, commit: FileCommit)
  extends WriteBuilder with SupportsOverwriteV2 with SupportsDynamicOverwrite {

  private var operation = WriteOperation("append")

  /** Others are found by rows: see [[OverwriteByRows]], which is not there in each session. */
  override def canOverwrite(predicates: Array[Predicate]): Boolean =
    predicates.find(each => !table.canOverwrite(Array(each))).forall(unknown =>
      throw Failures.unsupported(
        s"${table.name} cannot be overwritten by the condition ${Predicates.words(unknown)} in a session without lakelog's " +
          "extension, by which Spark finds the rows of such a condition: set spark.sql.extensions to " +
          s"${EntranceNames.Extensions}, or compare columns with values."))

  override def overwrite(predicates: Array[Predicate]): WriteBuilder = replacing(RowsToReplace.of(predicates.toSeq))

  def replacing(rows: RowsToReplace): LakeWriteBuilder = {
    operation = WriteOperation("overwrite", Some(rows.filter), Some(rows))
    this
  }

  override def truncate(): WriteBuilder = {
    operation = WriteOperation("truncate")
    this
  }

  override def overwriteDynamicPartitions(): WriteBuilder = {
    operation = WriteOperation("overwrite-partitions")
    this
  }

  override def build(): Write = new LakeWrite(table, info, operation, commit)
}

package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, SupportsDynamicOverwrite, SupportsOverwriteV2, Write, WriteBuilder}

/**
 * What a write does with the rows that are there: keeps them all, or replaces some. The filter says which these are, or,
 * of a MERGE that only adds rows, which ones it has looked at. An overwrite by `replaced` has found which rows these are in
 * files that it `cut`s through; None where it has not.
 */
private[lakelog] final case class WriteOperation(
    name: String, filter: Option[wire.Expression] = None, replaced: Seq[Predicate] = Nil,
    cut: Option[Cut] = None)

private[lakelog] object WriteOperation {
  val Merge = "merge"
}

/** Collects what kind of write a statement is. */
private[lakelog] final class LakeWriteBuilder(table: LakeTable, info: LogicalWriteInfo, commit: FileCommit)
  extends WriteBuilder with SupportsOverwriteV2 with SupportsDynamicOverwrite {

  private var operation = WriteOperation("append")

  override def canOverwrite(predicates: Array[Predicate]): Boolean = table.canOverwrite(predicates)

  override def overwrite(predicates: Array[Predicate]): WriteBuilder = {
    operation = WriteOperation("overwrite", Some(Predicates.toPython(predicates.toSeq)), predicates.toSeq)
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

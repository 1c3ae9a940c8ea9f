package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{NamedReference, SortOrder}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.files.{RowIds, RowPlace}
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.read.ScanUse
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.write.Positions

/**
 * Changes rows without writing those beside them: a row that is deleted or updated is marked as deleted in its file, and
 * new rows are written to files of their own.
 */
private[lakelog] final class MergeOnRead(table: LakeTable, kind: Command)
  extends RowOperation(table, kind, ScanUse.Places(firstLook = MergeOnRead.canLookFirst(table))) with SupportsDelta {

  override def rowId(): Array[NamedReference] = Array(fact(RowPlace.File), fact(RowPlace.Position))

  /** What is updated keeps its id, and the version is that of the commit. */
  override def requiredMetadataAttributes(): Array[NamedReference] =
    if (kind == Command.DELETE) Array.empty else Array(fact(RowIds.Id))

  override def newWriteBuilder(info: LogicalWriteInfo): DeltaWriteBuilder = {
    val prepared = commit
    new DeltaWriteBuilder {
      override def build(): DeltaWrite = new DeltaRows(table, kind, info, fact(RowPlace.File), prepared)
    }
  }
}

private object MergeOnRead {

  /**
   * To find rows to be changed, Spark would collect all different values that such rows have in the columns of partitions, so
   * that it is given one that has few of them, or none.
   */
  def canLookFirst(table: LakeTable): Boolean =
    EntranceNames.hasExtension && table.facts.partitionFields.count(_.transform.isIdentity) == 1
}

/**
 * A deletion has nothing to write, so that its rows stay where they are. Updated rows of an unpartitioned table meet by the
 * file that they were in, which spreads them; of how many tasks they come at last, Spark decides by their size.
 */
private final class DeltaRows(
    table: LakeTable, kind: Command, info: LogicalWriteInfo, file: NamedReference, commit: RowCommit)
  extends RowWrite(table, commit) with DeltaWrite {

  override def description(): String = s"lakelog changes of rows of ${table.name}"

  override def requiredDistribution(): Distribution =
    if (kind == Command.DELETE) Distributions.unspecified() else order.distribution(otherwise = Seq(file))

  override def requiredOrdering(): Array[SortOrder] =
    if (kind == Command.DELETE) Array.empty else super.requiredOrdering()

  override def toBatch: DeltaBatchWrite = new DeltaBatch(table, kind, info, commit)
}

private final class DeltaBatch(table: LakeTable, kind: Command, info: LogicalWriteInfo, commit: RowCommit)
  extends RowBatch(table, commit) with DeltaBatchWrite {

  override def createBatchWriterFactory(physical: PhysicalWriteInfo): DeltaWriterFactory = new DeltaTaskFactory(
    if (kind == Command.DELETE) None else Some(RowSettings.of(table, kind, info, physical.numPartitions, commit)),
    PlaceOrdinals.in(info.rowIdSchema.get, table.physical.metadata))

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    val rows = written(messages)
    commit.commit(Nil, Positions.united(rows.flatMap(_.positions), twice = None), rows, Some(rows.map(_.updated).sum))
  }
}

package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.connector.write.{DataWriterFactory, LogicalWriteInfo, PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.lakelog.internals.seam.{MergeSummary, NewerBatchWrite, WriteSummary}
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.lakelog.wire

/** The driver's part of a write: it prepares the tasks and commits their files at once. */
private[lakelog] final class LakeBatchWrite(
    table: LakeTable, info: LogicalWriteInfo, operation: WriteOperation, commit: FileCommit, description: String)
  extends NewerBatchWrite {

  private val together = ReadTogether.known(table)
  private val isMerge = AddingMerges.contains(table)

  override def createBatchWriterFactory(physical: PhysicalWriteInfo): DataWriterFactory = new LakeWriterFactory(
    WriteTasks.settings(
      table, info.schema, commit.filePrefix,
      IdentityValues.starts(table.identities, nextValues, physical.numPartitions)))

  private lazy val nextValues = if (table.identities.isEmpty) Map.empty[Long, BigInt] else commit.nextValues

  override def toString: String = description

  override def commit(messages: Array[WriterCommitMessage]): Unit =
    commit(messages, if (isMerge) merge else operation)

  override def commit(messages: Array[WriterCommitMessage], summary: WriteSummary): Unit = summary match {
    case _: MergeSummary => commit(messages, merge)
    case _ => commit(messages)
  }

  /**
   * A MERGE that only adds rows is an append to Spark. But it adds them as there are none like them, which must stay true.
   */
  private def merge: WriteOperation =
    WriteOperation(WriteOperation.Merge, together.flatMap(all => RowsSeen.condition(table, all.filters(table))))

  private def commit(messages: Array[WriterCommitMessage], as: WriteOperation): Unit = {
    val taken = messages.toSeq.collect { case written: FilesWritten => written.values }.flatten
    val cut = as.replaced.flatMap(CutRows.find(table, _, commit.filePrefix))
    try commit.commit(as.copy(cut = cut), filesOf(messages), IdentityValues.united(table.identities, nextValues, taken))
    catch {
      case failed: Throwable =>
        if (!commit.mayHaveHappened) WriteTasks.deleteFiles(table, cut.flatMap(_.copies).getOrElse(Nil))
        throw failed
    }
  }

  /** Removes the files, unless they may have become part of the table. */
  override def abort(messages: Array[WriterCommitMessage]): Unit =
    if (!commit.mayHaveHappened) WriteTasks.deleteFiles(table, filesOf(messages))

  private def filesOf(messages: Array[WriterCommitMessage]): Seq[wire.DataFile] =
    messages.toSeq.collect { case written: FilesWritten => written.files }.flatten.map(wire.DataFile.parsed)
}

package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, DataWriterFactory, PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.lakelog.internals.CheckpointMark
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire

/** The driver's part of one batch of a streaming query: written as any other write, and committed once. */
private[lakelog] final class LakeStreamingWrite(batch: LakeBatchWrite, batches: BatchCommit) extends StreamingWrite {

  override def createStreamingWriterFactory(physical: PhysicalWriteInfo): StreamingDataWriterFactory =
    new LakeStreamingWriterFactory(batch.createBatchWriterFactory(physical))

  override def commit(number: Long, messages: Array[WriterCommitMessage]): Unit = {
    batches.number = Some(number)
    batch.commit(messages)
  }

  override def toString: String = batch.toString

  override def abort(number: Long, messages: Array[WriterCommitMessage]): Unit = batch.abort(messages)
}

private[lakelog] final class LakeStreamingWriterFactory(factory: DataWriterFactory) extends StreamingDataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long, batch: Long): DataWriter[InternalRow] =
    factory.createWriter(partitionId, taskId)
}

/**
 * Commits the files of a batch of a streaming query, on the newest version. Its rows were made to fit the version
 * `prepared`; Python sees to it that they still do, and that the table has all batches before.
 */
private[lakelog] final class BatchCommit(table: LakeTable, query: String, prepared: StreamPreparation.Prepared)
  extends TableCommit(table.access, table.facts) {

  private val mark = new CheckpointMark(prepared.checkpoint)

  /** Known at the commit only. */
  var number: Option[Long] = None

  override protected def begin(): wire.BegunWrite =
    table.access.ask(wire.BeginBatch(prepared.version.referenceIn(table.facts), table.name, table.facts.version))

  /** Spark asks no stream's driver for numbers. */
  override def isReported: Boolean = false

  override protected def batch: Option[wire.StreamBatch] =
    number.map(wire.StreamBatch(query, _, fromCheckpoint = true, after = mark.read()))

  /** Whether the batch was written now or by a run that was killed: Spark does not repeat it after this. */
  override protected def answered(answer: wire.WriteResult): Unit = answer.mark.foreach(mark.write)

  /** A batch without rows changes nothing: whether it is retried makes no difference. */
  override def commit(operation: WriteOperation, files: Seq[wire.DataFile], values: Seq[wire.ValuesTaken]): Unit =
    if (files.nonEmpty || operation.name != "append") super.commit(operation, files, values)
}

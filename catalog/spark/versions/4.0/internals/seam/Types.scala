package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.write.{BatchWrite, WriterCommitMessage}
import org.apache.spark.sql.types.DataType

/** A time of day, which no column has here. */
sealed abstract class TimeType extends DataType {
  override def defaultSize: Int = 8
  override private[spark] def asNullable: TimeType = this
}

/** What Spark says of the rows of a write: here, nothing. */
trait WriteSummary

trait MergeSummary extends WriteSummary {
  def numTargetRowsCopied: Long
  def numTargetRowsDeleted: Long
  def numTargetRowsUpdated: Long
}

/** A write to which Spark says, since version 4.1, how many rows it has written. */
private[lakelog] trait NewerBatchWrite extends BatchWrite {
  def commit(messages: Array[WriterCommitMessage], summary: WriteSummary): Unit = commit(messages)
}

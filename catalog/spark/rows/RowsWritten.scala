package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.{FilePositions, IdentityTaken}

/**
 * What one task of a row-level operation has written, and which rows that were there it is about. Of the rows in its files, so
 * many are new, and so many have the place of others; the rest are copies.
 */
private[lakelog] final case class RowsWritten(
    files: Array[String], positions: Array[FilePositions], values: Array[IdentityTaken], inserted: Long, updated: Long)
  extends WriterCommitMessage {
  def dataFiles: Seq[wire.DataFile] = files.toSeq.map(wire.DataFile.parsed)
}

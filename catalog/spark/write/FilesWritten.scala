package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.connector.write.WriterCommitMessage

/** The files that one task wrote, as the JSON of data files, and what it took of identity columns. */
private[lakelog] final case class FilesWritten(files: Array[String], values: Array[IdentityTaken])
  extends WriterCommitMessage

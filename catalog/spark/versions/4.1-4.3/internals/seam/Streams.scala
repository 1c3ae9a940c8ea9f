package org.apache.spark.sql.lakelog.internals.seam

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/** Streaming queries. */
private[lakelog] object Streams {

  /** The local property with the id of the streaming query that a thread runs. */
  val QueryId: String = StreamExecution.QUERY_ID_KEY

  def checkpoint(folder: Path, conf: Configuration): CheckpointFileManager = CheckpointFileManager.create(folder, conf)
}

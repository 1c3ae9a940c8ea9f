package org.apache.spark.sql.lakelog.internals

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.lakelog.internals.seam.Streams

/**
 * What a streaming query that writes to a table keeps in its checkpoint beside what Spark has there: the mark of the last
 * batch that the table has taken. Spark goes on with the next batch once the mark of this one is there.
 */
private[lakelog] final class CheckpointMark(checkpoint: String) {

  private val file = new Path(checkpoint, CheckpointMark.Name)
  private lazy val files = Streams.checkpoint(file.getParent, SettingInternals.hadoopConf)

  def read(): Option[String] = Option.when(files.exists(file)) {
    val in = files.open(file)
    try new String(in.readAllBytes(), UTF_8)
    finally in.close()
  }

  def write(mark: String): Unit = {
    val out = files.createAtomic(file, overwriteIfPossible = true)
    try {
      out.write(mark.getBytes(UTF_8))
      out.close()
    } catch {
      case failure: Throwable =>
        out.cancel()
        throw failure
    }
  }
}

private[lakelog] object CheckpointMark {
  val Name = "lakelog-sink.json"
}

package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.lakelog.files.PlannedFiles

/** The tasks that read a scan's files. */
private[lakelog] final class ScanTasks(reading: FileReading) {

  private var splitBytes: Option[Long] = None
  private var packed: Option[(PlannedFiles, Array[InputPartition])] = None

  /**
   * For files of one key, the same with filters at run time as before: these leave out files, and Spark fails if the
   * rest of a key's files are more parts than all of them were. Fewer files in the same order are never packed into more.
   */
  def splitBytesAtFirst(files: PlannedFiles): Long = synchronized {
    splitBytes = splitBytes.orElse(Some(FileReading.splitBytes(files)))
    splitBytes.get
  }

  /** The files as tasks read them, whatever keys they have. Of many files that takes a while, and Spark wants it twice. */
  def packedOf(files: PlannedFiles): Array[InputPartition] = synchronized {
    packed match {
      case Some((`files`, partitions)) => partitions
      case _ =>
        val partitions = reading.partitions(files)
        packed = Some((files, partitions))
        partitions
    }
  }
}

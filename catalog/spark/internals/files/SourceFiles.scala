package org.apache.spark.sql.lakelog.internals.files

import org.apache.hadoop.fs.FileStatus

import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex
import org.apache.spark.sql.lakelog.internals.SettingInternals

/**
 * The files of a source, as they were when the statement was planned. Unlike those of a table of lakelog's, a file may hold
 * other rows when it is read again: another program has written it anew.
 */
private[lakelog] final class SourceFiles(indexes: Seq[PartitioningAwareFileIndex]) {
  import SourceFiles._

  private def listed: Seq[FileStatus] = indexes.flatMap(_.allFiles())

  private val before = listed

  def isEmpty: Boolean = indexes.isEmpty

  /** Whether all files are still what they were. That has to be asked after they have been read. */
  def areSame: Boolean = before.length <= Limit && {
    val configuration = SettingInternals.hadoopConf
    before.map(facts) == listed.map(facts) && before.forall { file =>
      val path = file.getPath
      facts(file) == facts(path.getFileSystem(configuration).getFileStatus(path))
    }
  }
}

private object SourceFiles {

  /** So many files are looked at, each by a request. */
  private val Limit = 1000

  private def facts(file: FileStatus): (String, Long, Long) =
    (file.getPath.toString, file.getLen, file.getModificationTime)
}

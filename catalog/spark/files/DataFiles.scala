package org.apache.spark.sql.lakelog.files

import java.nio.channels.FileChannel
import java.nio.file.{Files, Paths, StandardOpenOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.util.HadoopOutputFile
import org.apache.parquet.io.LocalOutputFile

import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire

/**
 * Data files as files: local ones are written as such, all others through Hadoop.
 *
 * Hadoop's local file system would leave a checksum file beside every data file, and would never sync one to disk.
 */
private[lakelog] object DataFiles {

  def create(path: Path, configuration: Configuration): MeasuredFile = new MeasuredFile(
    if (isLocal(path)) {
      val local = Paths.get(path.toUri.getPath)
      Files.createDirectories(local.getParent)
      new LocalOutputFile(local)
    } else HadoopOutputFile.fromPath(path, configuration))

  /** Makes a closed file survive a power failure if that is up to the writer. */
  def sync(path: Path): Unit = if (isLocal(path)) {
    val file = Paths.get(path.toUri.getPath)
    Seq(file -> StandardOpenOption.WRITE, file.getParent -> StandardOpenOption.READ).foreach { case (target, mode) =>
      val channel = FileChannel.open(target, mode)
      try channel.force(true)
      finally channel.close()
    }
  }

  def delete(path: Path, configuration: Configuration): Unit =
    if (isLocal(path)) Files.deleteIfExists(Paths.get(path.toUri.getPath))
    else path.getFileSystem(configuration).delete(path, false)

  /** Deletes data files of the table at `location`. */
  def deleteAll(location: String, files: Seq[wire.DataFile], configuration: Configuration): Unit =
    files.foreach(file => delete(Locations.file(location, file.path), configuration))

  private def isLocal(path: Path): Boolean = path.toUri.getScheme == "file"
}
